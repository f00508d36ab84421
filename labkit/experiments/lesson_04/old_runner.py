"""Lesson 3's runner, which keeps its memory in the terminal, and the ground on which lesson 4 begins."""

from __future__ import annotations

from typing import Any

from labkit.experiments.lesson_04.garden import Garden
from labkit.experiments.lesson_04.scenes import Scene, Scenes, Script, scene, scenes

SOURCE = "src/search.mjs"


async def kill_old_runners() -> Scenes:
    """Kill the runner without a memory just before its agent works, in the middle of it, and after it (C04-01)."""
    strikes: dict[str, dict[str, Any]] = {
        "before-agent": {"op": "open", "match": SOURCE, "do": "none,kill"},
        "during-agent": {"op": "write", "match": SOURCE, "do": "half,kill"},
        # The agent opens its file twice, to read and to write; the third to open it is the runner, looking at the result.
        "after-agent": {"op": "open", "match": SOURCE, "nth": 3, "do": "none,kill"},
    }

    def script(rule: dict[str, Any]) -> Script:
        def play(garden: Garden) -> None:
            garden.kill_at(rule)
            garden.note("tasks/processing", garden.queue("processing"))
            garden.note(SOURCE, _how_far(garden))
            garden.run()

        return play

    return await scenes("old-runner", {name: script(rule) for name, rule in strikes.items()}, "first")


def _how_far(garden: Garden) -> str:
    """Say what became of the agent's one change, judged from the source alone."""
    now, before = (garden.root / SOURCE).read_bytes(), garden.git("show", f"HEAD:{SOURCE}").encode()
    if now == before:
        return "untouched"
    return "half" if len(now) < len(before) else "whole"  # the change itself makes the file longer


async def save_the_baseline() -> Scene:
    """Check lesson 3's result with its three commands, commit it, and ask Git before and after (C04-02)."""

    def script(garden: Garden) -> None:
        for line in ("node --test acceptance/fullwidth-space.test.mjs", "npm test", "npm run check"):
            garden.type(line, keep=("tests ", "pass ", "fail ", "> node"))
        for line in ("git status --short", "git add src/search.mjs tasks"):
            garden.type(line)
        garden.type('git commit -m "fix: normalize search whitespace"', keep=("fix:", "changed", "rename"))
        garden.type("git status --short")

    return await scene("baseline", script, "lesson-3", quick=False)


async def without_the_baseline() -> Scene:
    """Take lesson 3's change back, commit that, and let the simulated agent try issue-002 (C04-03)."""

    def script(garden: Garden) -> None:
        source = garden.root / SOURCE
        text = source.read_text("utf-8")
        source.write_text(text.replace(r'.replace(/\s+/gu, "")', '.replaceAll(" ", "")'), "utf-8")
        garden.commit("back to lesson 2")
        garden.run()
        garden.type("git diff --stat -- src")

    return await scene("without-baseline", script)
