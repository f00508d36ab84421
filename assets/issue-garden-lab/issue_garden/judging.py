"""From an agent's report and what is really in the folder to one decision. Only evidence can complete a task (P10)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from issue_garden.agents import AgentReport
from issue_garden.boundary import BoundaryError, SizedChange, check_boundary
from issue_garden.contract import Contract
from issue_garden.git_view import REGULAR, Change, GitLook, Measure, changed_since, glance, look, measure
from issue_garden.task import Task
from issue_garden.verification import CommandResult, verify


@dataclass(frozen=True)
class Evidence:
    """What the runner saw by itself after the agent had ended."""

    report: AgentReport
    changes: list[SizedChange]
    diff: bytes
    boundary_errors: list[BoundaryError]
    commands: list[CommandResult]

    @property
    def files(self) -> list[str]:
        """Changed paths, sorted."""
        return [sized.change.path for sized in self.changes]

    @property
    def lines(self) -> int:
        """Removed plus added lines of all changes."""
        return sum(sized.lines for sized in self.changes)

    def as_object(self, output_bytes: int) -> dict[str, Any]:
        """The evidence as it stands in an attempt; at most ``output_bytes`` of the diff are kept."""
        process = self.report.process
        return {
            "agent_process": None if process is None else dict(vars(process)),
            "changes": {
                "files": self.files,
                "lines": self.lines,
                "entries": [_entry(s) for s in self.changes],
            },
            "diff": self.diff[:output_bytes].decode("utf-8", "replace"),
            "diff_dropped_bytes": max(0, len(self.diff) - output_bytes),
            "boundary_errors": [error.as_object() for error in self.boundary_errors],
            "commands": [command.as_object() for command in self.commands],
        }


def _entry(sized: SizedChange) -> dict[str, Any]:
    change = sized.change
    return {"path": change.path, "kind": change.kind, "removed": sized.removed, "added": sized.added}


def gather_evidence(
    lab: Path,
    contract: Contract,
    task: Task,
    before: GitLook,
    report: AgentReport,
    inherit: tuple[int, ...] = (),
) -> Evidence:
    """Look, compare with the contract, and verify.

    Nothing is verified once the boundary is crossed (the tests themselves may have been changed) or the agent gave
    up. What was judged must be what was tested, so the folder is looked at again after the commands.
    """
    after = look(lab)
    sizes = measure(lab, before.head)
    changes = [_sized(lab, change, sizes) for change in changed_since(before, after)]
    errors = check_boundary(changes, contract)
    if after.head != before.head:
        errors.insert(0, _crossing("head_moved", "Agent 移动了 HEAD (the agent moved HEAD)"))
    if after.settings != before.settings:
        reason = "Agent 改了仓库的 Git 设置，Git 可能看不全 (the agent changed the repository's Git settings, and Git may not see all)"
        errors.append(_crossing("git_settings_changed", reason))
    if errors or _gave_up(report):
        return Evidence(report, changes, sizes.diff, errors, [])
    commands = verify(lab, contract, task, inherit)
    if changed_since(after, glance(lab)):
        reason = "验证期间文件变了，测过的不是看到的 (files changed during verification: what was tested is not what was seen)"
        errors.append(_crossing("changed_during_verification", reason))
    return Evidence(report, changes, sizes.diff, errors, commands)


def _crossing(cause: str, message: str) -> BoundaryError:
    return BoundaryError(cause, None, message)


def _sized(lab: Path, change: Change, sizes: Measure) -> SizedChange:
    """Count lines: Git knows them for tracked paths; a new file is counted here, as all added."""
    if change.path in sizes.lines:
        counted = sizes.lines[change.path]
        return SizedChange(change, None, None) if counted is None else SizedChange(change, *counted)
    if change.kind != "untracked":
        return SizedChange(change, 0, 0)
    # Only a regular file is read: a link may lead to a device that never ends.
    added = _count_lines(lab / change.path) if change.mode.startswith(REGULAR) else None
    return SizedChange(change, None if added is None else 0, added)


def _count_lines(path: Path) -> int | None:
    """Count the lines of a new file, an unended last one included; None for a binary one, as Git judges it."""
    count, last = 0, b"\n"
    try:
        with path.open("rb") as content:
            while piece := content.read(65_536):
                if b"\0" in piece:
                    return None
                count, last = count + piece.count(b"\n"), piece[-1:]
    except OSError:  # a name that is no UTF-8 cannot be opened by what is said of it
        return None
    return count + (last != b"\n")


def _gave_up(report: AgentReport) -> bool:
    return report.status == "stopped" or _agent_failure(report) is not None


def _agent_failure(report: AgentReport) -> str | None:
    """How the agent's process failed, whatever the agent says: its exit code wins over its words."""
    process = report.process
    if process is None or (process.exit_code == 0 and not process.timed_out):
        return None
    return "time_limit" if process.timed_out else "exit_code"


def decide(evidence: Evidence) -> tuple[str, str, str | None]:
    """Return decision, reason and cause. The agent's words can stop a task, and can never complete one."""
    report = evidence.report
    failed = [command.name for command in evidence.commands if not command.passed]
    if evidence.boundary_errors:
        return "rejected", "boundary", evidence.boundary_errors[0].cause
    if failure := _agent_failure(report):
        return "rejected", "agent_failed", failure
    if report.status == "stopped":
        return "rejected", "agent_stopped", report.cause
    if failed:
        return "rejected", "verification_failed", failed[0]
    if not evidence.changes:
        return "rejected", "no_change", "empty_diff"
    return "completed", "verified", None


def message_for(decision: str, reason: str, cause: str | None, evidence: Evidence) -> str:
    """Say in both languages what was decided and what to look at next."""
    sentences = {
        "verified": "证据齐全；看一眼 git diff，再由你来提交 (the evidence is whole; look at git diff, then commit it yourself)",
        "boundary": "改动越界；看 boundary_errors 和 git diff (the change crosses its boundary; look at boundary_errors and git diff)",
        "agent_failed": f"Agent 的进程失败：{cause}；看尝试文件里的 agent_process (the agent's process failed: {cause}; "
        "look at agent_process in the attempt)",
        "agent_stopped": f"Agent 自己停下：{evidence.report.summary} (the agent stopped by itself)",
        "verification_failed": f"验证命令 {cause} 没有通过；看尝试文件里它的输出 (the command {cause} did not pass; "
        "look at its output in the attempt)",
        "no_change": "没有任何改动，无从接受 (nothing was changed, so there is nothing to accept)",
    }
    away = (
        ""
        if decision == "completed"
        else "。先看清，再用 tools/close_task.py 关闭任务 (look first, then close the task)"
    )
    return sentences[reason] + away


def report_of(
    decision: str, reason: str, cause: str | None, evidence: Evidence, task: Task, **details: Any
) -> dict[str, Any]:
    """The fields of a decision that every round reports, with or without a memory."""
    return {
        "task_id": task.id,
        **details,
        "agent": {"status": evidence.report.status, "summary": evidence.report.summary},
        "changes": {"files": evidence.files, "lines": evidence.lines},
        "boundary_errors": [error.as_object() for error in evidence.boundary_errors],
        "commands": [
            {"name": c.name, "exit_code": c.exit_code, "passed": c.passed} for c in evidence.commands
        ],
    }
