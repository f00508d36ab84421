"""Going on from the checkpoint, and three looks at what came of it."""

from __future__ import annotations

from labkit.experiments.lesson_04.garden import TASK, Garden
from labkit.experiments.lesson_04.interrupting import PUNCTUATION_TEST
from labkit.experiments.lesson_04.scenes import Scene, Scenes, compare, scene, scenes

COUNTS = ("tests ", "pass ", "fail ")


async def resume() -> Scenes:
    """Run again on a lab that was interrupted after its claim (C04-21)."""

    def script(garden: Garden) -> None:
        answer = garden.run().answer
        for field in ("round", "resumed", "changes", "boundary_errors"):
            garden.note(field, answer.get(field))
        garden.note("agent", answer.get("agent", {}).get("status"))
        garden.note("events", garden.types())

    return await compare("resume", script, "claimed", quick=False)


async def two_boundaries() -> Scenes:
    """Look at the change of the simulated agent, then let another agent change a test instead (C04-22)."""

    def inside(garden: Garden) -> None:
        garden.run()
        garden.type("git diff -- src/search.mjs", keep=("-  return", "+  return"))

    def outside(garden: Garden) -> None:
        garden.run(*garden.agent("meddler"))
        garden.note(
            "boundary_errors", [error["path"] for error in garden.record("result")["boundary_errors"]]
        )

    return await scenes("boundary", {"inside": inside, "outside": outside}, "claimed")


async def first_look() -> Scene:
    """Run the four commands by hand on the finished lab (C04-23)."""

    def script(garden: Garden) -> None:
        for line in (
            PUNCTUATION_TEST,
            "node --test acceptance/fullwidth-space.test.mjs",
            "npm test",
            "npm run check",
        ):
            garden.type(line, keep=(*COUNTS, "> node"))

    return await scene("first-look", script, "finished", quick=False)


async def second_look() -> Scene:
    """List the queue, and ask Git what was left for a person to commit (C04-24)."""

    def script(garden: Garden) -> None:
        for queue in ("inbox", "processing", "done"):
            garden.note(f"tasks/{queue}", garden.queue(queue))
        garden.type("git status --short")
        garden.type("git log --oneline", keep=("feat:", "fix:"))

    return await scene("second-look", script, "finished", quick=False)


async def third_look() -> Scene:
    """Open state, result and attempt (C04-25)."""

    def script(garden: Garden) -> None:
        state, result, attempt = (garden.record(kind) for kind in ("state", "result", "attempt"))
        garden.note("state.json", (state["status"], state["phase"]))
        garden.note(f"results/{TASK}.json", (result["decision"], result["reason"]))
        garden.note("round-001.json: resumed", attempt["resumed"])
        garden.note("round-001.json: agent", attempt["agent"]["summary"])
        commands = attempt["evidence"]["commands"]
        garden.note("round-001.json: exit codes", {one["name"]: one["exit_code"] for one in commands})
        garden.note(
            "round-001.json: bytes of output", {one["name"]: len(one["output"].encode()) for one in commands}
        )

    return await scene("third-look", script, "finished", quick=False)
