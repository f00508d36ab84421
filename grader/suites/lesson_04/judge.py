"""What a check of lesson 04 requires of a lab: answers, records, queues, and that nothing else changed.

Formats are those of docs/formats-spine.md. Everything is read from disk, from outside the box.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

from grader.lab import ToldList, as_told, canonical
from grader.suites.check import Text
from grader.suites.expect import Trial, show_error
from grader.work_folder import OddFileError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from grader.spine import Garden, Ran, SpineLab
    from grader.tree import Tree

QUEUES = ("inbox", "processing", "done", "closed")
INFORMATION = ".loop/runner.lock"  # its content decides nothing, and every run writes it
SOURCE = "src/search.mjs"
BEFORE, AFTER = rb'.replace(/\s+/gu, "")', rb'.replace(/[\s\p{P}]+/gu, "")'
COMPLETED = ("completed", "verified", None, 0)
INTERRUPTED = ("interrupted", "controlled_after_claim", None, 75)
CLAIMED_EVENTS = ["claim_started", "claim_completed", "controlled_interruption"]
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
_WORD = re.compile(r"[a-z_]{1,40}")


class Rule(Trial):
    """A trial of lesson 04: what it requires of answers and labs besides."""

    # --- answers ---

    def answers(self, ran: Ran, *expected: Any) -> dict[str, Any]:
        """Require decision, reason, cause and exit code, in one JSON object on stdout; give it."""
        if ran.error:
            failed = self.failure(_shown(expected), show_error(ran.error))
            failed.add_note("".join(ran.error.__notes__))
            raise failed
        self.require(ran.said == expected, _shown(expected), _shown(ran.said, ran))
        assert ran.answer is not None
        return ran.answer

    def blocks(self, ran: Ran, reason: str, cause: str) -> dict[str, Any]:
        """Require that a person is asked, for this reason and this cause."""
        return self.answers(ran, "blocked", reason, cause, 3)

    def died(self, ran: Ran, zh: str, en: str) -> None:
        """Require that the round came to where it was to be killed."""
        self.require(
            ran.signal == 9,
            Text(f"这一轮会走到{zh}", f"the round comes to {en}"),
            Text("没有走到那一步", "it never does that"),
        )

    def gave(self, told: dict[str, Any], what: Text) -> None:
        """Require that a call which a scenario told of came to its end."""
        self.require("gave" in told, what, Text("报错", "it fails"))

    def raised(self, told: dict[str, Any], name: str) -> None:
        """Require that it raised an exception of this class."""
        found = Text("没有这样报错", "nothing of the kind")
        self.require(name in told.get("raised", ()), Text(name, name), found)

    # --- the disk ---

    def unchanged(self, before: Tree, after: Tree) -> None:
        """Require that nothing was written, moved or removed."""
        changed = [name for name in changes(before, after) if name != INFORMATION]
        self.require(not changed, Text("什么都没有变", "nothing changed"), _kinds(changed))

    def changed_only(self, before: Tree, after: Tree, expected: Iterable[str]) -> None:
        """Require that exactly these files were written, moved or removed."""
        found, due = set(changes(before, after)) - {INFORMATION}, set(expected)
        self.require(
            not found - due,
            Text("只改动该改的文件", "only what has to change does"),
            _kinds(sorted(found - due)),
        )
        self.require(
            not due - found,
            Text("该写的文件都写在磁盘上", "all that has to be written is on disk"),
            Text(
                "缺少或没有变：" + _kinds(sorted(due - found)).zh,
                "missing or as before: " + _kinds(due - found).en,
            ),
        )

    def stands_in(self, tree: Tree, task_id: str, *queues: str) -> None:
        """Require that the task's file is in these queues and in no other."""
        found = [queue for queue in QUEUES if f"tasks/{queue}/{task_id}.json" in tree]
        self.require(
            found == list(queues),
            Text(f"任务只在 {', '.join(queues)}", f"the task stands in {', '.join(queues)} only"),
            Text(f"在 {', '.join(found) or '哪里都不在'}", f"in {', '.join(found) or 'none'}"),
        )

    def record(self, garden: Garden, name: str, fields: Iterable[str] | None = None) -> dict[str, Any]:
        """Read one record: a whole JSON object with exactly these fields; its times are UTC."""
        shown = kind_of(name)
        try:
            raw = garden.raw(name)
            found = json.loads(raw)
        except (FileNotFoundError, OddFileError, ValueError, RecursionError) as error:
            what = (
                Text("没有", "missing") if isinstance(error, FileNotFoundError) else Text("不是", "it is not")
            )
            raise self.failure(Text(f"{shown} 是完整的 JSON", f"{shown} is whole JSON"), what) from None
        due = list(fields) if fields is not None else None
        self.require(
            isinstance(found, dict) and (due is None or sorted(found) == sorted(due)),
            Text(f"{shown} 的字段恰好是格式规定的", f"{shown} has exactly the fields of its format"),
            Text("字段不同", "it has others"),
        )
        assert isinstance(found, dict)
        record: dict[str, Any] = as_told(found)
        times = [content for field, content in record.items() if field.endswith("_at")]
        self.require(
            all(isinstance(moment, str) and _TIME.fullmatch(moment) for moment in times),
            Text(f"{shown} 的时间是 UTC，以 Z 结尾", f"the times of {shown} are UTC and end in Z"),
            Text("不是", "they are not"),
        )
        return record

    def same(self, found: object, expected: object, what: Text) -> None:
        """Require that two JSON values are the same one."""
        self.require(canonical(found) == canonical(expected), what, Text("不是", "it is not"))

    def state(self, garden: Garden, task_id: str, status: str, phase: str, place: str = ".loop") -> None:
        """Require this status and phase, in round 1."""
        name = f"{place}/tasks/{task_id}/state.json"
        found = self.record(garden, name, ("task_id", "status", "phase", "round", "updated_at"))
        self.require(
            (found["task_id"], found["status"], found["phase"], found["round"])
            == (task_id, status, phase, 1),
            Text(f"状态是 {status}/{phase}，第 1 轮", f"the state is {status}/{phase}, round 1"),
            Text(*(f"{_known(found['status'])}/{_known(found['phase'])}",) * 2),
        )

    def events(self, garden: Garden, task_id: str, place: str = ".loop") -> list[dict[str, Any]]:
        """Read the log of a task: whole lines, numbered 1, 2, 3, each with its type and time."""
        found = self.lines(garden, f"{place}/tasks/{task_id}/events.jsonl")
        self.require(
            all(isinstance(event.get("at"), str) and _TIME.fullmatch(event["at"]) for event in found),
            Text("每个事件都有 UTC 时间", "every event has its time in UTC"),
            Text("不是", "one has not"),
        )
        return found

    def lines(self, garden: Garden, name: str) -> list[dict[str, Any]]:
        """Read a log: each line a whole JSON object, ended, numbered from 1 without a gap."""
        whole = Text(
            "日志每行一个完整的事件，编号从 1 连续", "each line of the log is a whole event, numbered from 1"
        )
        *lines, rest = self.content(garden, name, whole).split(b"\n")
        found = []
        for number, line in enumerate(lines, start=1):
            try:
                found.append(as_told(json.loads(line)))
            except (ValueError, RecursionError):
                raise self.failure(whole, Text(f"第 {number} 行不是", f"line {number} is not")) from None
        numbers = [event.get("sequence") for event in found if isinstance(event, dict)]
        self.require(not rest and numbers == list(range(1, len(found) + 1)), whole, Text("不是", "it is not"))
        return ToldList(found)

    def torn_is_kept(self, garden: Garden, name: str, offset: int, torn: bytes) -> None:
        """Require that the torn bytes, cut off at this offset, stand in a file of their own."""
        aside = [found for found in garden.tree() if found.startswith(f"{name}.torn-{offset}")]
        kept = Text("撕下的字节另存一个文件，没有丢", "the torn bytes are kept in a file of their own")
        self.require([garden.raw(found) for found in aside] == [torn], kept, Text("没有", "they are not"))

    def content(self, garden: Garden, name: str, expected: Text) -> bytes:
        """Read a file that has to be there."""
        try:
            return garden.raw(name)
        except (FileNotFoundError, OddFileError):
            raise self.failure(expected, Text("没有这个文件", "there is no such file")) from None

    def event_types(
        self, garden: Garden, task_id: str, expected: Sequence[str], place: str = ".loop"
    ) -> None:
        """Require exactly these events, in this order."""
        found = [event["type"] for event in self.events(garden, task_id, place)]
        shown = " → ".join(map(_known, found))
        self.require(
            found == list(expected),
            Text(f"事件依次是 {' → '.join(expected)}", f"the events are {' → '.join(expected)}"),
            Text(shown or "没有事件", shown or "none"),
        )


async def given_task(lab: SpineLab, task: Mapping[str, Any], kind: str = "bench") -> Garden:
    """Lay a lab down with one task in its inbox."""
    garden = await lab.lay(kind)
    await garden.write({f"tasks/inbox/{task['id']}.json": dict(task)})
    return garden


async def claimed(lab: SpineLab, rule: Rule, task: Mapping[str, Any]) -> Garden:
    """Give a lab whose task was claimed by a process that has ended."""
    garden = await given_task(lab, task)
    rule.answers(await garden.interrupt(), *INTERRUPTED)
    rule.state(garden, task["id"], "active", "claimed")
    return garden


def changes(before: Tree, after: Tree) -> list[str]:
    """List the names that differ between two looks."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def digest(value: object) -> str:
    """Compute the canonical digest of a JSON value (docs/formats-spine.md)."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def head_of(garden: Garden) -> str:
    """Read the commit that the lab's HEAD stands on."""
    return garden.raw(".git/refs/heads/main").decode().strip()


def contract_of(garden: Garden) -> dict[str, Any]:
    """Read the lab's contract."""
    return dict(json.loads(garden.raw("loop.contract.json")))


def records_of(task_id: str) -> list[str]:
    """Name all that a finished round leaves in `.loop`."""
    folder = f".loop/tasks/{task_id}"
    return [
        *(f".loop/claims/{task_id}.json", f".loop/results/{task_id}.json"),
        *(f"{folder}/facts.json", f"{folder}/state.json", f"{folder}/events.jsonl"),
        f"{folder}/attempts/round-001.json",
    ]


def moved(task_id: str, source: str, target: str) -> list[str]:
    """Name the two places of a move between queues."""
    return [f"tasks/{source}/{task_id}.json", f"tasks/{target}/{task_id}.json"]


def kind_of(name: str) -> str:
    """Say which kind of file a name stands for, without the drawn part of it."""
    parts = name.removeprefix("../").split("/")
    if parts[0] == ".loop" and len(parts) > 2:
        return "claim" if parts[1] == "claims" else "result" if parts[1] == "results" else parts[-1]
    return "/".join([*parts[:-1], "…"]) if parts[0] == "tasks" else parts[0] if parts[0] == ".git" else name


def _kinds(names: Iterable[str]) -> Text:
    shown = ", ".join(sorted({kind_of(name) for name in names})[:6])
    return Text(shown, shown)


def _shown(said: Sequence[Any], ran: Ran | None = None) -> Text:
    if ran is not None and ran.answer is None:
        return Text(
            f"标准输出不是一个 JSON 对象，退出码 {ran.exit}",
            f"no JSON object on stdout, exit code {ran.exit}",
        )
    *words, code = said
    shown = " / ".join(_known(found) for found in words if found is not None)
    return Text(f"{shown}，退出码 {code}", f"{shown}, exit code {code}")


def _known(found: object) -> str:
    """Show a word of the formats as it is, and anything else not at all."""
    return found if isinstance(found, str) and _WORD.fullmatch(found) else "…"
