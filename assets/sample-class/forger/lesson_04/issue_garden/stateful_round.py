"""One round that can be interrupted: claim, resume, and a decision with its evidence. Rules P2, P6 to P8, P13 and P15.

Several files cannot change together, so their order carries the meaning. Two sentences explain all of it:

1. A record is durable before the thing that it announces: facts before the claim, claim before the move,
   ``agent_running`` before the agent. After a crash the records say "maybe" too early, never too late.
2. Only ``active`` with ``claimed`` is gone on from: it is the one state of which one knows that nothing was begun.

docs/formats-spine.md lists every step, and what a kill right after it leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from issue_garden.agents import Agent
from issue_garden.answers import Answer, blocked
from issue_garden.contract import Contract, load_contract
from issue_garden.git_view import GitLook, look, outside_queue
from issue_garden.json_files import BadFileError
from issue_garden.judging import Evidence, decide, gather_evidence, message_for, report_of
from issue_garden.queue_check import check_record, check_records, check_unknown, places_of, stop_resume
from issue_garden.records import Claim, Facts, State, as_object, new_claim, now_utc
from issue_garden.runner_lock import runner_lock
from issue_garden.state_store import (
    CorruptEventsError,
    StateFolder,
    append_event,
    atomic_write_json,
    canonical_digest,
    publish_json,
    read_events,
)
from issue_garden.task import Task, list_queue, load_task, move_task
from issue_garden.verification import require_tools

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Checkpoint:
    """A claimed task that may go on: its task as read now, its state as on disk, and Git's look at the lab."""

    task: Task
    state: State
    look: GitLook


@dataclass(frozen=True)
class Desk:
    """What one run works with; ``lock`` is the descriptor that every program of the round inherits."""

    lab: Path
    folder: StateFolder
    contract: Contract
    lock: int


def run_round(lab: Path, agent: Agent, *, interrupt_after_claim: bool = False) -> Answer:
    """Do at most one round and say what came of it. The order of checks is P13's.

    Raises StoppedError for every refusal; then nothing was moved and no record was written or changed.
    """
    folder = StateFolder(lab)
    folder.make_root()
    with runner_lock(folder.lock) as lock:
        contract = load_contract(lab)
        require_tools(contract)
        desk = Desk(lab, folder, contract, lock)
        file_name = _in_processing(desk)
        if resumed := file_name is not None:
            check_resumable(desk, file_name)
        check_records(folder)
        if file_name is None:
            waiting = list_queue(lab, "inbox")
            if not waiting:
                return Answer(
                    "idle", "inbox_empty", message="inbox 里没有任务 (there is no task in the inbox)"
                )
            file_name = _claim_first(desk, waiting[0])
        if interrupt_after_claim:
            return _interrupt(desk, file_name, known=resumed)
        return _work(desk, file_name, agent, resumed=resumed)


def _in_processing(desk: Desk) -> str | None:
    """Return the one task that was begun, or None. One that came to its end is for a person."""
    names = list_queue(desk.lab, "processing")
    if len(names) > 1:
        stop_resume(
            names[0].removesuffix(".json"),
            "several_processing",
            f"processing 里有 {len(names)} 个任务，一次只能有一个 (processing holds {len(names)} tasks, and may hold one)",
        )
    if not names:
        return None
    task_id = names[0].removesuffix(".json")
    state = _load(lambda: desk.folder.load_state(task_id))
    if state is not None and state.status != "active":
        check_record(desk.folder, task_id, desk.folder.records()[task_id])
    return names[0]


def _claim_first(desk: Desk, file_name: str) -> str:
    """Claim the first task of the inbox, if it is a task, is new, and the tree is clean enough to tell its work apart."""
    task = load_task(desk.lab, "inbox", file_name)
    check_unknown(desk.folder, task.id)
    now = look(desk.lab)
    if dirty := outside_queue(now):
        raise blocked(
            "unsafe_start",
            "dirty_tree",
            f"{dirty[0]}: 有未提交的改动，会和 Agent 的混在一起；先提交或撤销 "
            "(has changes that are not committed and would mix with the agent's; commit or undo them first)",
            paths=dirty,
        )
    claim_task(desk, task, now.head)
    return file_name


def claim_task(desk: Desk, task: Task, head: str) -> None:
    """Take ownership of a task in the inbox: facts, claim, ``claiming``, the move, ``claimed`` (P2).

    Killed before the facts are published, nothing happened: the next run claims afresh. Killed after that and before
    ``claiming``, records exist of a task in the inbox: ``claim_exists``. Killed around the move, the state says
    ``claiming``, wherever the file is: ``unsafe_resume``. From ``claimed`` on, the next run goes on.
    Were the file moved first, a kill would leave a task in ``processing`` that nothing explains.
    """
    # BEGIN SOLUTION: 实现领取顺序 (implement the claim order)
    folder, file_name = desk.folder, f"{task.id}.json"
    folder.prepare(task.id)
    digests = {
        "task_digest": canonical_digest(task.document),
        "contract_digest": canonical_digest(desk.contract.document),
        "head": head,
    }
    try:
        # Exclusive even under the lock: where locks do not work, the file system still lets one claim win.
        publish_json(
            folder.facts(task.id), as_object(Facts(task.id, task.document, **digests, recorded_at=now_utc()))
        )
        publish_json(folder.claim(task.id), as_object(new_claim(task.id, file_name, digests)))
    except FileExistsError:
        check_unknown(folder, task.id)
        raise
    append_event(folder.events(task.id), "claim_started", round=1)
    state = State(task.id, "active", "claiming", 1, now_utc())
    atomic_write_json(folder.state(task.id), as_object(state))
    move_task(desk.lab, file_name, "inbox", "processing")
    # The event before the state, here as everywhere: the log may be a step ahead of the state, never behind it.
    append_event(folder.events(task.id), "claim_completed")
    _advance(folder, state, phase="claimed")
    # END SOLUTION


def _interrupt(desk: Desk, file_name: str, *, known: bool) -> Answer:
    """End by choice at the checkpoint. This kills nothing; a second time there is nothing new to record."""
    task_id = file_name.removesuffix(".json")
    if not known:
        append_event(desk.folder.events(task_id), "controlled_interruption")
    checkpoint = desk.folder.relative(desk.folder.state(task_id))
    details = {"task_id": task_id, "checkpoint": checkpoint}
    return Answer("interrupted", "controlled_after_claim", details=details)


# --- Resume: everything must be as it was ---


def check_resumable(desk: Desk, file_name: str) -> Checkpoint:
    """Return the checkpoint if the task may go on, having changed nothing; otherwise stop with one cause (P6, P7).

    Asked twice: when a run finds a task in ``processing``, and for every task at the moment its agent starts, since
    between the two somebody may commit, edit or move something.
    """
    # BEGIN SOLUTION: 实现恢复检查 (implement the resume checks)
    task = load_task(desk.lab, "processing", file_name, same_name=False)
    claim, state = _load_records(desk.folder, task.id)
    if not state.resumable:
        _stop_at_phase(desk.folder, state)
    _check_log(desk.folder, state)
    _check_identity(desk, file_name, task, claim, state)
    return Checkpoint(task, state, _check_tree(desk.lab, claim))
    # END SOLUTION


# BEGIN SOLUTION
def _load_records(folder: StateFolder, task_id: str) -> tuple[Claim, State]:
    """Load claim and state: all three records there before any is judged, each sound, and the facts like the claim."""
    paths = {"claim": folder.claim(task_id), "facts": folder.facts(task_id), "state": folder.state(task_id)}
    for kind, path in paths.items():
        if not path.exists():
            name = folder.relative(path)
            stop_resume(task_id, f"{kind}_missing", f"缺少 {name} ({name} is missing)")
    claim = _sound(task_id, "claim", lambda: folder.load_claim(task_id))
    facts = _sound(task_id, "facts", lambda: folder.load_facts(task_id))
    state = _sound(task_id, "state", lambda: folder.load_state(task_id))
    ground = (facts.task_id, facts.task_digest, facts.contract_digest, facts.head)
    claimed = (claim.task_id, claim.task_digest, claim.contract_digest, claim.head)
    if ground != claimed or canonical_digest(facts.task) != facts.task_digest or state.task_id != task_id:
        what = "claim、facts、state 说的不是一回事 (claim, facts and state disagree)"
        stop_resume(task_id, "facts_disagree", what)
    return claim, state


def _sound(task_id: str, kind: str, load: Callable[[], Kind]) -> Kind:
    try:
        return load()
    except BadFileError as bad:
        stop_resume(task_id, f"{kind}_invalid", f"{kind}: {bad.reason}")


def _check_identity(desk: Desk, file_name: str, task: Task, claim: Claim, state: State) -> None:
    """Stop unless this is the task, under the contract, in the round that was claimed; reformatting changes nothing."""
    places = places_of(desk.lab, task.id)
    attempts = desk.folder.attempts(task.id)
    questions = (
        (
            "attempts_disagree",
            attempts == state.round - 1,
            f"已有 {attempts} 次尝试 (has {attempts} attempts on disk)",
        ),
        (
            "task_duplicated",
            len(places) < 2,
            f"同时在 {', '.join(places)} (stands in {', '.join(places)} at once)",
        ),
        (
            "file_name_changed",
            file_name == claim.file_name,
            f"文件名变成了 {file_name} (is called {file_name} now)",
        ),
        ("task_changed", canonical_digest(task.document) == claim.task_digest, "任务内容变了 (was changed)"),
        (
            "contract_changed",
            canonical_digest(desk.contract.document) == claim.contract_digest,
            "契约变了 (the contract was changed)",
        ),
    )
    for cause, holds, what in questions:
        if not holds:
            stop_resume(task.id, cause, f"与领取时不符 (not as it was claimed): {what}")


def _check_tree(lab: Path, claim: Claim) -> GitLook:
    """Stop unless Git is where it was: on the claim's commit, with nothing changed but the queue."""
    now = look(lab)
    if now.head != claim.head:
        stop_resume(
            claim.task_id, "head_moved", "领取之后 Git HEAD 移动了 (Git's HEAD has moved since the claim)"
        )
    if dirty := outside_queue(now):
        what = f"{dirty[0]} 有未提交的改动 ({dirty[0]} has changes that are not committed)"
        stop_resume(claim.task_id, "dirty_tree", what, paths=dirty)
    return now


def _stop_at_phase(folder: StateFolder, state: State) -> None:
    """Stop before anything that may have been begun, and say what the log holds: it may be one step ahead."""
    try:
        last = "".join(read_events(folder.events(state.task_id)).types[-1:])
    except (CorruptEventsError, BadFileError):
        last = "?"
    stop_resume(
        state.task_id,
        f"phase_{state.phase}",
        f"上次停在 {state.phase}，日志最后是 {last} (it stopped in {state.phase}; the last event is {last})",
        phase=state.phase,
        last_event=last,
    )


def _check_log(folder: StateFolder, state: State) -> None:
    """Stop unless the log is sound and tells of a task that was claimed, and of nothing after that."""
    try:
        log = read_events(folder.events(state.task_id))
    except CorruptEventsError as error:
        stop_resume(state.task_id, "events_corrupt", f"events.jsonl {error}", line=error.line)
    except BadFileError as bad:
        stop_resume(state.task_id, "events_corrupt", f"events.jsonl {bad.reason}")
    if not log.events:
        stop_resume(state.task_id, "events_missing", "没有事件日志 (there is no event log)")
    waits = {"controlled_interruption", "resumed"}
    if log.types[:2] != ["claim_started", "claim_completed"] or not waits.issuperset(log.types[2:]):
        stop_resume(
            state.task_id,
            "events_disagree",
            f"状态是 claimed，日志最后是 {log.types[-1]} (its state is claimed, and the last event is {log.types[-1]})",
            last_event=log.types[-1],
        )


# END SOLUTION


# --- The round itself ---


def _work(desk: Desk, file_name: str, agent: Agent, *, resumed: bool) -> Answer:
    """Start the agent, once, then turn what is really there into a decision (P7).

    Killed before ``agent_started`` is in the log, nothing was begun: the next run goes on, as from ``claimed``. Killed
    between that event and the state, the log is ahead: refused, although the agent cannot have run. Killed later, it
    may have. A run that dies in here is therefore repeated never, or before the agent; it is not repeated after.
    """
    checkpoint = check_resumable(desk, file_name)
    started_at, task, events = now_utc(), checkpoint.task, desk.folder.events(checkpoint.task.id)
    desk.folder.prepare(task.id)
    if resumed:
        append_event(events, "resumed")
    append_event(events, "agent_started", round=checkpoint.state.round, agent=agent.kind)
    # Durable before the agent exists: killed one instant later or one hour, the next run finds a phase that it
    # never goes on from. That is why an agent runs at most once for a claim.
    state = _advance(desk.folder, checkpoint.state, phase="agent_running")
    report = agent.run(desk.lab, task, desk.contract, (desk.lock,))
    _note(desk.folder, task.id, "agent_finished", status=report.status)
    state = _advance(desk.folder, state, phase="agent_finished")
    evidence = gather_evidence(desk.lab, desk.contract, task, checkpoint.look, report, (desk.lock,))
    times = {"started_at": started_at, "finished_at": now_utc()}
    return _finish(desk, checkpoint, state, evidence, {"resumed": resumed, **times})


def _finish(
    desk: Desk, checkpoint: Checkpoint, state: State, evidence: Evidence, about: dict[str, Any]
) -> Answer:
    """Record in the order of P15: attempt, result, state, and the move last.

    Whatever says "done" rests on something that is durable already: a state on its result, the queue on the state.
    Killed in between, the next start finds state and queue apart and names it; it never judges twice.
    """
    folder, task = desk.folder, checkpoint.task
    attempt = folder.attempt(task.id, state.round)
    _publish(folder, task.id, attempt, {
        "task_id": task.id,
        "round": state.round,
        **about,
        "agent": evidence.report.words(),
        "evidence": evidence.as_object(desk.contract.output_bytes),
    })  # fmt: skip
    _note(folder, task.id, "evidence_recorded", attempt=f"attempts/{attempt.name}")
    answer = _answer(folder, evidence, task, state, attempt, resumed=about["resumed"])
    _publish(folder, task.id, folder.result(task.id), answer.as_object())
    _note(folder, task.id, "decided", decision=answer.decision, reason=answer.reason)
    _advance(folder, state, status=answer.decision, phase="finished")
    if answer.decision == "completed":
        move_task(desk.lab, f"{task.id}.json", "processing", "done")
    return answer


def _answer(
    folder: StateFolder, evidence: Evidence, task: Task, state: State, attempt: Path, *, resumed: bool
) -> Answer:
    decision, reason, cause = decide(evidence)
    details = report_of(decision, reason, cause, evidence, task, round=state.round, resumed=resumed)
    details |= {"attempt": folder.relative(attempt), "decided_at": now_utc()}
    return Answer(decision, reason, cause, message_for(decision, reason, cause, evidence), details)


def _advance(folder: StateFolder, old: State, **changes: Any) -> State:
    """Replace the state, if it is still the one that this round wrote.

    Otherwise somebody else decided meanwhile, and a result of ours would overrule them: stop, and leave theirs.
    """
    if _load(lambda: folder.load_state(old.task_id)) != old:
        _stop_meddled(folder, old.task_id, folder.state(old.task_id), "state_replaced")
    new = replace(old, updated_at=now_utc(), **changes)
    atomic_write_json(folder.state(old.task_id), as_object(new))
    return new


def _note(folder: StateFolder, task_id: str, event_type: str, **fields: Any) -> None:
    """Append an event after the agent had its turn: it could write here too, and may have spoiled the log."""
    path = folder.events(task_id)
    try:
        if "agent_started" not in read_events(path).types:  # a log that was removed must not begin anew
            _stop_meddled(folder, task_id, path, "events_replaced")
        append_event(path, event_type, **fields)
    except (CorruptEventsError, BadFileError, FileNotFoundError):
        _stop_meddled(folder, task_id, path, "events_replaced")


def _publish(folder: StateFolder, task_id: str, path: Path, value: dict[str, Any]) -> None:
    """Publish a record of this round; one that is there already was made by somebody else, and is not believed."""
    try:
        publish_json(path, value)
    except FileExistsError:
        _stop_meddled(folder, task_id, path, "record_exists")


def _stop_meddled(folder: StateFolder, task_id: str, path: Path, cause: str) -> NoReturn:
    raise blocked(
        "state_changed",
        cause,
        f"{folder.relative(path)}: 这一轮进行中被别人写过；看它现在的内容 "
        "(was written by somebody else during this round; look at what it says now)",
        task_id=task_id,
    )


def _load(load: Callable[[], Kind]) -> Kind | None:
    """Give what ``load`` gives, or None where the record is missing or damaged."""
    try:
        return load()
    except (FileNotFoundError, BadFileError):
        return None
