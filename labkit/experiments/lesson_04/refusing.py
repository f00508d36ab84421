"""What a runner must not go on from: one change behind its back at a time, then a run."""

from __future__ import annotations

from labkit import lab_actions
from labkit.experiments.lesson_04.garden import TASK, Garden
from labkit.experiments.lesson_04.scenes import Scene, Scenes, Script, Trials, compare, scene, trials


def by_hand(*kinds: str) -> dict[str, Script]:
    """Return the changes of these kinds, as the control room makes them (``labkit.lab_actions.TAMPERINGS``)."""

    def change(kind: str) -> Script:
        return lambda garden: lab_actions.tamper(garden.root, kind)

    return {kind: change(kind) for kind in kinds}


async def missing_records() -> Trials:
    """Remove claim, facts and state, each in a lab of its own (C04-18)."""
    return await trials("missing-records", by_hand("delete-claim", "delete-facts", "delete-state"))


async def changed_task() -> Trials:
    """Edit the claimed task, rename it, reformat it (C04-19)."""
    return await trials("changed-task", by_hand("task", "task-name", "task-spacing"))


async def changed_ground() -> Trials:
    """Edit the contract, move HEAD, leave a stray file (C04-20)."""
    return await trials("changed-ground", by_hand("contract", "head", "tree"))


async def forced_phases() -> Trials:
    """Let the state say each phase that is not to be gone on from (C04-26)."""
    return await trials(
        "forced-phases", by_hand("phase-claiming", "phase-agent_running", "phase-agent_finished")
    )


async def eight_refusals() -> Trials:
    """Cause every refusal that lesson 04 names, each in a lab of its own."""
    phases = ("phase-agent_running", "phase-agent_finished")
    rest = ("task", "contract", "head", "delete-facts", "tree", "back-to-inbox")
    return await trials("refusals", by_hand(*phases, *rest))


async def put_back() -> Scenes:
    """Carry a claimed task back, then edit it, then hand a corrected one in under a new id (C04-30)."""

    def script(garden: Garden) -> None:
        garden.move("inbox")
        garden.run()
        garden.edit(garden.path("task"), title="a better title")
        garden.run()
        garden.type(f'python tools/close_task.py {TASK} --reason "the title was wrong"')
        garden.put_task("issue-003")
        garden.run()
        garden.note("tasks/done", garden.queue("done"))
        garden.note("tasks/closed", garden.queue("closed"))

    return await compare("put-back", script, "claimed")


async def only_the_claim_deleted() -> Scene:
    """Finish a task, delete only its claim, hand the task in again, and run (C04-32)."""

    def script(garden: Garden) -> None:
        garden.path("claim").unlink()
        garden.move("inbox")
        garden.note(
            ".loop",
            [kind for kind in ("claim", "facts", "state", "events", "result") if garden.path(kind).exists()],
        )
        garden.run()

    return await scene("only-the-claim-deleted", script, "finished")


IDS = {"path": "../x", "long": "x" * 81, "newline": "issue-009\n", "accent": "caf\u00e9"}


async def impossible_ids() -> Trials:
    """Hand in four tasks whose ids are not allowed (C04-34). What their files are called is not the question."""

    def submitted(task_id: str) -> Script:
        def change(garden: Garden) -> None:
            (garden.root / "tasks" / "inbox" / f"{TASK}.json").unlink()
            garden.put_task(task_id, file_name="issue-009.json")
            garden.commit()

        return change

    return await trials(
        "impossible-ids", {name: submitted(task_id) for name, task_id in IDS.items()}, "ready", yours=False
    )
