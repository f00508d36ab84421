"""The samples of lesson 04: classic mistakes, each a small edit of the solution, and right code in other styles."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from grader.suites.check import Text
from grader.suites.mutants import edited
from labkit.workspace import lesson_source

if TYPE_CHECKING:
    from collections.abc import Sequence

STORE, ROUND = "state_store.py", "stateful_round.py"
Edit = tuple[str, str, str]
"""File, what stands in it once, what stands there instead."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One spine: an idea, and the edits of the solution's two files that make it.

    `caught_by` is the id of the check meant to fail it; None for right code.
    """

    id: str
    idea: Text
    edits: Sequence[Edit] = ()
    caught_by: str | None = None

    def source(self, file: str) -> str:
        """Give the text of one file. Raises `ValueError` when an edit no longer fits."""
        right = (lesson_source("04", "solution") / "issue_garden" / file).read_text("utf-8")
        return edited(self.id, right, [edit[1:] for edit in self.edits if edit[0] == file])

    def lay_down(self, folder: Path) -> Path:
        """Make a submission with this spine below `folder`; give the path of its `lesson_04`."""
        package = folder / "lesson_04"
        (package / "issue_garden").mkdir(parents=True)
        for file in (STORE, ROUND):
            (package / "issue_garden" / file).write_text(self.source(file), "utf-8")
        return package


_MOVE = '    move_task(desk.lab, file_name, "inbox", "processing")\n'

MUTANTS = (
    Sample(
        "replays-agent-running",
        Text(
            "恢复时重放 agent_running：Agent 可能做两遍",
            "Resumes from agent_running: the agent may act twice",
        ),
        (
            (
                ROUND,
                "    if not state.resumable:\n",
                '    if state.phase in ("claiming", "agent_finished"):\n',
            ),
            (
                ROUND,
                "    _check_log(desk.folder, state)\n",
                '    if state.phase == "claimed":\n        _check_log(desk.folder, state)\n',
            ),
        ),
        caught_by="04-p07-phases",
    ),
    Sample(
        "digest-by-key-order",
        Text("摘要跟着键的顺序变", "The digest follows the order of keys"),
        ((STORE, "json.dumps(value, sort_keys=True, ", "json.dumps(value, "),),
        caught_by="04-09",
    ),
    Sample(
        "leaves-temp-files",
        Text(
            "把临时文件抄进目标，却不删掉它", "Copies the temporary file over the target, and leaves it there"
        ),
        (
            (
                STORE,
                "        replace_file(temporary, path)\n",
                "        path.write_bytes(temporary.read_bytes())\n",
            ),
        ),
        caught_by="04-10",
    ),
    Sample(
        "temp-after-error",
        Text("写入出错时留下临时文件", "Leaves its temporary file behind when writing fails"),
        (
            (
                STORE,
                "    except BaseException:\n        _forget(temporary)\n        raise\n    return temporary\n",
                "    except BaseException:\n        raise\n    return temporary\n",
            ),
        ),
        caught_by="04-p03-error",
    ),
    Sample(
        "non-atomic-write",
        Text("就地改写状态文件", "Writes the state file in place"),
        (
            (
                STORE,
                "    temporary = _write_temporary(path, value)\n    try:\n        replace_file(temporary, path)\n",
                '    temporary = path\n    try:\n        path.write_text(json.dumps(value, ensure_ascii=False), "utf-8")\n',
            ),
        ),
        caught_by="04-p03-whole",
    ),
    Sample(
        "no-exclusive-claim",
        Text(
            "发布 claim 时用替换：后来的抢走先来的",
            "Publishes a claim by replacing: the later one takes it over",
        ),
        ((STORE, "        os.link(temporary, path)\n", "        replace_file(temporary, path)\n"),),
        caught_by="04-p02-claim",
    ),
    Sample(
        "moves-before-recording",
        Text("先移动任务，再写记录", "Moves the task first, and records after that"),
        (
            (ROUND, _MOVE, ""),
            (
                ROUND,
                "    folder.prepare(task.id)\n    digests",
                f"    folder.prepare(task.id)\n{_MOVE}    digests",
            ),
        ),
        caught_by="04-p02-order",
    ),
    Sample(
        "trusts-the-agent",
        Text("Agent 说 changed 就算完成", 'Completes whatever the agent calls "changed"'),
        (
            (
                ROUND,
                "    decision, reason, cause = decide(evidence)\n",
                "    decision, reason, cause = decide(evidence)\n"
                '    if evidence.report.status == "changed":\n'
                '        decision, reason, cause = "completed", "verified", None\n',
            ),
        ),
        caught_by="04-p10",
    ),
    Sample(
        "resumes-on-another-head",
        Text("恢复时不比较 HEAD", "Resumes without comparing HEAD"),
        ((ROUND, "    if now.head != claim.head:\n", "    if not now.head:\n"),),
        caught_by="04-p06-ground",
    ),
    Sample(
        "resumes-another-task",
        Text("恢复时不比较任务摘要", "Resumes without comparing the task's digest"),
        ((ROUND, "canonical_digest(task.document) == claim.task_digest", "bool(claim.task_digest)"),),
        caught_by="04-p06-ground",
    ),
    Sample(
        "state-before-event",
        Text("先推进状态，再记事件", "Advances the state before the event"),
        (
            (
                ROUND,
                '    append_event(folder.events(task.id), "claim_completed")\n    _advance(folder, state, phase="claimed")\n',
                '    _advance(folder, state, phase="claimed")\n    append_event(folder.events(task.id), "claim_completed")\n',
            ),
        ),
        caught_by="04-p02-order",
    ),
    Sample(
        "glued-torn-tail",
        Text("在撕裂的尾部后面直接续写", "Appends right behind a torn tail"),
        (
            (STORE, "        if log.torn:\n", "        if log.torn is None:\n"),
            (
                STORE,
                "        _append_or_take_back(descriptor, log.good_bytes, line)\n",
                "        _append_or_take_back(descriptor, log.good_bytes + len(log.torn), line)\n",
            ),
        ),
        caught_by="04-p04-torn",
    ),
    Sample(
        "agent-before-record",
        Text("先启动 Agent，再写 agent_running", "Launches the agent before agent_running is written"),
        (
            (
                ROUND,
                '    state = _advance(desk.folder, checkpoint.state, phase="agent_running")\n'
                "    report = agent.run(desk.lab, task, desk.contract, (desk.lock,))\n",
                "    report = agent.run(desk.lab, task, desk.contract, (desk.lock,))\n"
                '    state = _advance(desk.folder, checkpoint.state, phase="agent_running")\n',
            ),
        ),
        caught_by="04-p07-killed",
    ),
)
"""One mistake each, and the check meant for it."""

_CHECKS_IN_ORDER = """\
    if not state.resumable:
        _stop_at_phase(desk.folder, state)
    _check_log(desk.folder, state)
    _check_identity(desk, file_name, task, claim, state)
    return Checkpoint(task, state, _check_tree(desk.lab, claim))
"""

_CHECKS_IN_A_TABLE = """\
    questions = {
        "phase": lambda: None if (state.status, state.phase) == ("active", "claimed") else _stop_at_phase(desk.folder, state),
        "log": lambda: _check_log(desk.folder, state),
        "identity": lambda: _check_identity(desk, file_name, task, claim, state),
        "tree": lambda: _check_tree(desk.lab, claim),
    }
    seen = {name: ask() for name, ask in questions.items()}
    return Checkpoint(task, state, seen["tree"])
"""

_WRITES_A_FILE_OBJECT = """\
            os.fchmod(descriptor, 0o600)
            with os.fdopen(descriptor, "wb", closefd=False) as file:
                file.write(content)
            os.fsync(descriptor)
        finally:
"""

_WRITES_AT_AN_OFFSET = """\
        if os.pwrite(descriptor, line, offset_bytes) != len(line):
            raise OSError(errno.EIO, os.strerror(errno.EIO), "events.jsonl")
"""

VARIANTS = (
    Sample(
        "other-calls",
        Text("同样的规则，用另一些系统调用写成", "The same rules, written with other calls"),
        (
            (
                STORE,
                "    if path.is_symlink():\n",
                "    if os.path.lexists(path) and stat.S_ISLNK(os.lstat(path).st_mode):\n",
            ),
            (
                STORE,
                "            set_private(descriptor)\n            write_all(descriptor, content)\n"
                "            os.fsync(descriptor)\n        finally:\n",
                _WRITES_A_FILE_OBJECT,
            ),
            (STORE, "        replace_file(temporary, path)\n", "        temporary.rename(path)\n"),
            (STORE, "        os.link(temporary, path)\n", "        path.hardlink_to(temporary)\n"),
            (
                STORE,
                "        os.lseek(descriptor, offset_bytes, os.SEEK_SET)\n        write_all(descriptor, line)\n",
                _WRITES_AT_AN_OFFSET,
            ),
        ),
    ),
    Sample(
        "checks-in-a-table",
        Text("恢复检查写成一张表", "The resume checks as a table"),
        ((ROUND, _CHECKS_IN_ORDER, _CHECKS_IN_A_TABLE),),
    ),
)
"""Right code that looks otherwise: no check may fail it."""
