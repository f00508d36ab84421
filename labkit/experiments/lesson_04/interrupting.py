"""A task that is claimed and not begun: by choice, and by SIGKILL."""

from __future__ import annotations

from labkit.experiments.lesson_04.garden import Garden
from labkit.experiments.lesson_04.scenes import Scene, Scenes, compare, scene, scenes

PUNCTUATION_TEST = "node --test acceptance/punctuation-search.test.mjs"
AT_THE_CHECKPOINT = {"op": "replace", "match": "state.json", "nth": 2, "do": "full,kill"}
"""Ends the runner as soon as the state says claimed."""


async def not_there_yet() -> Scene:
    """Run the acceptance test of issue-002 before anybody has worked on it (C04-11)."""

    def script(garden: Garden) -> None:
        marks = ("not ok", "✖", "actual - expected", "+ [", "- [", "'Computer Systems'", "fail ")
        garden.type(PUNCTUATION_TEST, keep=marks)

    return await scene("not-there-yet", script, "ready", quick=False)


async def interrupt() -> Scenes:
    """Claim and end on purpose; with the reference's spine, and with the learner's (C04-12)."""

    def script(garden: Garden) -> None:
        garden.interrupt()

    return await compare("interrupt", script, "ready")


async def where_it_stands() -> Scenes:
    """Interrupt two fresh labs, and look at queue, state, events and source of each (C04-13)."""

    def script(garden: Garden) -> None:
        garden.interrupt()
        for queue in ("inbox", "processing"):
            garden.note(f"tasks/{queue}", garden.queue(queue))
        state = garden.record("state")
        garden.note("state", (state["status"], state["phase"], state["round"]))
        garden.note("events", garden.types())
        garden.note("at", state["updated_at"])
        garden.type("git diff -- src/search.mjs")

    sides: list[Scene] = []
    for name in ("once", "again"):  # one after the other: at the same moment, they could not differ in time
        one = await scenes(f"where-it-stands-{name}", {name: script}, "ready", "state", "events", quick=False)
        sides += one.sides
    return Scenes(tuple(sides))


async def killed_at_the_checkpoint() -> Scenes:
    """End one runner by its flag and one by SIGKILL at the same point; compare, then resume both (C04-14)."""

    def by_flag(garden: Garden) -> None:
        garden.interrupt()
        _look_and_go_on(garden)

    def by_signal(garden: Garden) -> None:
        garden.kill_at(AT_THE_CHECKPOINT)
        _look_and_go_on(garden)

    return await scenes("at-the-checkpoint", {"by-flag": by_flag, "by-signal": by_signal}, "ready")


def _look_and_go_on(garden: Garden) -> None:
    garden.note("events", garden.types())
    garden.note("phase", garden.record("state")["phase"])
    garden.run()
