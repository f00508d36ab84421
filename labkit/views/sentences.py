"""View models as sentences in the reader's language: what a widget shows, and what a screen reader says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from labkit.views.folder import Change, FileKind, FileView, Tree
from labkit.views.read_report import PATIENCE_SECONDS, Answer, Answered, Outcome, ReadReport, agree
from labkit.views.task_state import TaskState, label
from labkit.words import language, t

if TYPE_CHECKING:
    from collections.abc import Sequence

    from labkit.views.folder import Entry


@dataclass(frozen=True, slots=True)
class Card:
    """One verdict: who speaks, how it looks (``mark``), the headline, and what supports it."""

    who: str
    mark: str
    headline: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """One sentence with the way it looks: ``good``, ``bad``, ``surprise`` or ``quiet``."""

    mark: str
    text: str


@dataclass(frozen=True, slots=True)
class TaskTable:
    """The replayed tasks as rows of texts, or one sentence that says why there are none."""

    rows: tuple[tuple[str, str, str], ...]
    sentence: str = ""


def report_card(report: ReadReport) -> Card:
    """Say the kit's verdict."""
    events = len(report.events)
    headline = t(f"report.{report.outcome}", events=events, line=report.line, reason=report.reason)
    details: list[str] = []
    if report.outcome is Outcome.CORRUPT:
        details += [report.reason, t("report.before-fault", events=events)]
    elif report.outcome in (Outcome.WHOLE, Outcome.TORN):
        details.append(t("report.good-bytes", offset=report.good_bytes))
    if report.torn_bytes:
        details.append(t("report.torn-bytes", torn=report.torn_bytes))
    if report.missing_newline:
        details.append(t("report.missing-newline"))
    return Card(t("report.kit"), report.outcome, headline, tuple(details))


def answer_card(answer: Answer | None) -> Card:
    """Say what the learner's own ``read`` answered; ``None`` while it is being asked."""
    if answer is None:
        return Card(t("report.yours"), "quiet", t("report.asking"))
    headline = t(
        f"report.answer-{answer.how}",
        events=len(answer.events),
        line=answer.line,
        seconds=round(PATIENCE_SECONDS),
    )
    return Card(t("report.yours"), answer.how, headline, (answer.message,) if answer.message else ())


def agreement(report: ReadReport, answer: Answer | None) -> Line:
    """Say whether the two verdicts are the same, and how they differ."""
    if answer is None:
        return Line("quiet", t("report.asking"))
    same = agree(report, answer)
    if same is None:
        key = "agree-unknown" if answer.how is Answered.UNFINISHED else "answer-silent"
        return Line("quiet", t(f"report.{key}", seconds=round(PATIENCE_SECONDS)))
    if same:
        return Line("good", t("report.agree"))
    both_read = answer.how is Answered.EVENTS and report.outcome is not Outcome.CORRUPT
    if both_read and len(answer.events) == len(report.events):
        return Line("bad", t("report.disagree-values"))
    kit, yours = report_card(report).headline, answer_card(answer).headline
    return Line("bad", t("report.disagree", kit=kit, yours=yours))


def unseen(report: ReadReport, changed_bytes: int) -> Line | None:
    """Say that bytes were changed and the read noticed nothing; None when there is nothing to say."""
    if not changed_bytes or report.outcome is not Outcome.WHOLE:
        return None
    return Line("bad", t("report.unseen", n=changed_bytes))


def kept(saved: Sequence[Entry]) -> Line | None:
    """Say where the torn bytes went that a store moved aside; None when there are none."""
    if not saved:
        return None
    names = ", ".join(f"{one.path} ({t('files.size', n=one.size)})" for one in saved)
    return Line("quiet", t("torn.kept", names=names))


def task_table(report: ReadReport, state: TaskState) -> TaskTable:
    """Say which tasks the log leaves. A corrupt log leaves none."""
    if report.outcome is Outcome.CORRUPT:
        return TaskTable((), t("task.stopped"))
    if state.illegal_sequence is not None:
        return TaskTable((), t("task.illegal", sequence=state.illegal_sequence, reason=state.illegal_reason))
    rows = []
    for task in state.tasks:
        notes = [t("task.needs-resume")] if task.needs_resume else []
        if task.unknown_calls:
            notes.append(t("task.unknown-calls", calls=", ".join(task.unknown_calls)))
        rows.append((f"{task.todo_id}  {task.title}", label(task.status, language()), "; ".join(notes)))
    return TaskTable(tuple(rows), "" if rows else t("task.none"))


def tree_sentence(tree: Tree) -> str:
    """Say what there is to see when no file is shown, or that the list was cut."""
    if not tree.exists:
        return t("files.no-folder")
    if tree.cut:
        return t("files.cut", n=len(tree.entries))
    return "" if tree.entries else t("files.nothing")


def file_sentence(view: FileView) -> str:
    """Say what a file is when its lines alone do not."""
    said = [] if view.kind is FileKind.TEXT else [t(f"files.{view.kind}", size=view.size, reason=view.reason)]
    if view.skipped:
        said.append(t("files.skipped", n=view.skipped))
    if view.bad_bytes and view.kind is FileKind.TEXT:
        said.append(t("files.bad-bytes", n=view.bad_bytes))
    return " ".join(said)


def changes_sentence(tree: Tree) -> str:
    """Say which files are new, changed or gone since the remembered moment."""
    said = []
    for change in (Change.NEW, Change.CHANGED, Change.GONE):
        names = [entry.path for entry in tree.entries if entry.change is change and entry.kind != "folder"]
        if names:
            more = [t("files.more", n=len(names) - 3)] if len(names) > 4 else []
            said.append(t(f"files.said-{change}", names=", ".join([*names[:3], *more] if more else names)))
    return " ".join(said) or t("files.said-same")
