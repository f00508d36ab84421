"""One slip for every check of lesson 04 that no mutant is meant for: a small edit that this check must see.

The eight guards stand on code that is given: a submission breaks them only by what importing it does to that code.
"""

from __future__ import annotations

from grader.suites.check import Text
from grader.suites.mutants.lesson_04 import ROUND, STORE, Sample

END_OF_STORE = """        if path.name.endswith(suffix) and not path.name.startswith(".") and (suffix or path.is_dir())
"""
IMPORTS = "from issue_garden.task import sync_folder\n"


def slip(caught_by: str, *edits: tuple[str, str, str]) -> Sample:
    name = caught_by.removeprefix("04-")
    return Sample(f"slip-{name}", Text(name, name), edits, caught_by)


def meddling(caught_by: str, line: str) -> Sample:
    """A store that changes given code when it is imported."""
    return slip(
        caught_by, (STORE, IMPORTS, f"{IMPORTS}import dataclasses\nimport issue_garden as lab\n{line}\n")
    )


def patch(module: str, name: str, new: str) -> str:
    return f"import issue_garden.{module}\nold_{name} = lab.{module}.{name}\nlab.{module}.{name} = {new}"


SLIPS = (
    meddling(
        "04-01",
        patch(
            "contract",
            "load_contract",
            "lambda path: dataclasses.replace(old_load_contract(path), digest=secrets.token_hex(32))",
        ),
    ),
    meddling("04-02", patch("contract", "require_fields", "lambda value, names: None")),
    meddling("04-03", patch("task", "_DEVICES", "set()")),
    meddling("04-04", patch("task", "list_queue", "lambda path, queue: old_list_queue(path, queue)[::-1]")),
    meddling(
        "04-05",
        patch(
            "judging",
            "changed_since",
            "lambda a, b: [c for c in old_changed_since(a, b) if c.kind != 'untracked']",
        ),
    ),
    meddling(
        "04-06",
        patch(
            "judging",
            "check_boundary",
            "lambda a, b: [e for e in old_check_boundary(a, b) if e.cause != 'too_many_lines']",
        ),
    ),
    meddling(
        "04-07",
        patch(
            "verification", "run_command", "lambda *a: dataclasses.replace(old_run_command(*a), output='')"
        ),
    ),
    meddling(
        "04-08",
        "import issue_garden.one_round\n"
        + patch("one_round", "decide", "lambda evidence: ('completed', 'verified', None)"),
    ),
    slip("04-p01", (ROUND, '        "head": head,\n', '        "head": "0" * 40,\n')),
    slip(
        "04-p02-runner",
        (
            ROUND,
            "    with runner_lock(folder.lock) as lock:\n",
            '    with folder.lock.open("ab") as held:\n        lock = held.fileno()\n',
        ),
    ),
    slip("04-p03-place", (STORE, "    if path.is_symlink():\n", "    if False:\n")),
    slip(
        "04-p04-append",
        (
            STORE,
            "        write_all(descriptor, line)\n        os.fsync(descriptor)\n",
            "        write_all(descriptor, line)\n",
        ),
    ),
    slip("04-p05", (STORE, "allow_nan=False)\n    return", "allow_nan=True)\n    return")),
    slip("04-p06-records", (ROUND, "    if ground != claimed or ", "    if ")),
    slip(
        "04-p06-events",
        (
            ROUND,
            '        stop_resume(state.task_id, "events_corrupt", f"events.jsonl {error}", line=error.line)\n',
            "        return\n",
        ),
    ),
    slip(
        "04-p06-moment",
        (
            ROUND,
            "    if now.head != claim.head:\n",
            (
                "    log = read_events(StateFolder(lab).events(claim.task_id))\n"
                '    if now.head != claim.head and log.types[-1] == "controlled_interruption":\n'
            ),
        ),
    ),
    slip("04-p08", (ROUND, "    check_unknown(desk.folder, task.id)\n    now", "    now")),
    slip(
        "04-p09",
        (
            ROUND,
            '    task = load_task(desk.lab, "inbox", file_name)\n',
            '    task = load_task(desk.lab, "inbox", file_name, same_name=False)\n',
        ),
    ),
    slip(
        "04-p11",
        (
            ROUND,
            "    decision, reason, cause = decide(evidence)\n",
            "    evidence = replace(evidence, boundary_errors=[])\n    decision, reason, cause = decide(evidence)\n",
        ),
    ),
    slip(
        "04-p12",
        (
            ROUND,
            "    folder, task = desk.folder, checkpoint.task\n    attempt",
            (
                "    evidence = replace(evidence, commands=evidence.commands[:1])\n"
                "    folder, task = desk.folder, checkpoint.task\n    attempt"
            ),
        ),
    ),
    slip("04-p13", (ROUND, "    if not known:\n", "    if task_id:\n")),
    slip(
        "04-p14",
        (
            ROUND,
            "    report = agent.run(desk.lab, ",
            "    from issue_garden.agents import SimulatedAgent\n\n    report = SimulatedAgent().run(desk.lab, ",
        ),
    ),
    slip(
        "04-p15-points",
        (
            ROUND,
            "    folder.make_root()\n",
            '    folder.make_root()\n    (folder.root / now_utc()).write_text("ran")\n',
        ),
    ),
    slip(
        "04-p15-finish",
        (ROUND, '    _advance(folder, state, status=answer.decision, phase="finished")\n', ""),
        (
            ROUND,
            "    _publish(folder, task.id, folder.result(task.id), answer.as_object())\n",
            (
                '    _advance(folder, state, status=answer.decision, phase="finished")\n'
                "    _publish(folder, task.id, folder.result(task.id), answer.as_object())\n"
            ),
        ),
    ),
    slip("04-p15-left", (ROUND, "    desk.folder.prepare(task.id)\n    if resumed", "    if resumed")),
    slip(
        "04-p16",
        (
            STORE,
            "    log = read_events(path)\n    event",
            '    if event_type == "closed":\n        return {}\n    log = read_events(path)\n    event',
        ),
    ),
    slip(
        "04-live",
        (ROUND, "    if resumed:\n        append_event", "    if not resumed:\n        append_event"),
    ),
)
