"""The disk says no: S6, S7, S13. Every fault is injected underneath the store."""
# ruff: noqa: D400 - a docstring is the learner's title

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from grader.lab import STUDENT_ERRORS, Event, is_students
from grader.suites.check import Text
from grader.suites.expect import Trial, show_error
from grader.suites.lesson_22.drawn import LOG, WRITES, after, log, some_data, some_events, some_type, word
from grader.suites.lesson_22.suite import check

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grader.lab import Lab, Rule, Store

CUTS = ["ftruncate", "truncate"]
CALLS_SUCCEED = Text("其余的追加都成功", "all the others succeed")


@check(
    "22-s06-failed",
    rules=("S6",),
    dimension="recovery",
    core=True,
    faults=True,
    hint=Text(
        "整行写完之后才推进编号；写失败后，下一次追加先重新看磁盘，再决定编号。",
        "Advance the number only when the whole line is written; after a failed write the next append looks at the "
        "disk before it numbers anything.",
    ),
)
async def a_failed_write_burns_no_number(lab: Lab) -> None:
    """写失败只让那一次追加失败，编号不被占用

    A failed write fails that append only, and its number is not used up
    """
    for error in ("ENOSPC", "EIO"):
        trial = Trial(
            "S6", f"让一次写入以 {error} 失败，再追加", f"Let one write fail with {error}, then append again"
        )
        name, events = f"{word(lab.draw)}.jsonl", some_events(lab.draw, lab.draw.randrange(2, 5))
        store = await trial.appends(lab, events[:-1], name)
        await lab.arm([{"op": WRITES, "match": name, "do": error}])
        await trial.refuses(store.append(some_type(lab.draw), some_data(lab.draw)), OSError)
        await lab.disarm()
        trial.disk_holds(lab, events[:-1], name)
        await trial.gives(store.append(events[-1].type, events[-1].data))
        trial.disk_holds(lab, events, name)
        await trial.replays(lab, {name: events})


@check(
    "22-s06-partial",
    rules=("S6", "S9"),
    dimension="recovery",
    core=True,
    faults=True,
    hint=Text(
        "write 可能只写下一部分，也可能写完了才报错。不要猜：下一次追加重新读文件，按读到的编号，先修好尾部。",
        "A write may put down a part, or fail after all of it. Do not guess: the next append reads the file again, "
        "mends the tail, and numbers by what it finds.",
    ),
)
async def a_partial_write_is_never_glued(lab: Lab) -> None:
    """只写下一部分、写完才报错、返回短计数：下一次追加都不会接在残片后面

    After a part was written, all of it with an error, or a short count, the next append is never glued on
    """
    part = lab.draw.randrange(1, 20)
    cases: Sequence[tuple[str, str, list[Rule]]] = (
        ("写下几个字节后磁盘满", "the disk is full after some bytes", [{"do": f"short:{part},ENOSPC"}]),
        ("整行写完才报错", "the error comes after the whole line", [{"do": "full,EIO"}]),
        ("write 返回的字节数比要求的少", "write returns a short count", [{"do": "half"}]),
        (
            "写下几个字节后磁盘满，而且截不回去",
            "the disk is full after some bytes, and they cannot be cut off",
            [{"do": f"short:{part},ENOSPC"}, {"op": CUTS, "do": "EIO"}],
        ),
    )
    for zh, en, rules in cases:
        trial = Trial(
            "S6", f"一次写入出故障（{zh}），再追加", f"One write goes wrong ({en}), then append again"
        )
        await _append_after(lab, trial, [{"op": WRITES, "match": LOG, **rule} for rule in rules])


async def _append_after(lab: Lab, trial: Trial, rules: Sequence[Rule]) -> None:
    """Append, disturbed and then not: whether the first failed or succeeded, the file stays a history."""
    lab.plant(LOG, b"")
    events = some_events(lab.draw, 2)
    store = await trial.appends(lab, events)
    disturbed, last = [some_type(lab.draw), some_data(lab.draw)], [some_type(lab.draw), some_data(lab.draw)]
    await lab.arm(rules)
    outcome = await _outcome(store, *disturbed)
    await lab.disarm()
    if isinstance(outcome, Exception):
        trial.require(
            isinstance(outcome, OSError), Text("OSError 或成功", "OSError, or success"), show_error(outcome)
        )
    else:
        trial.disk_holds(lab, after(events, *disturbed))
    returned = await trial.gives(store.append(*last))
    if returned.sequence == len(events) + 2:  # the disturbed record had reached the disk whole
        events = after(events, *disturbed)
    trial.disk_holds(lab, after(events, *last))
    await trial.replays(lab, {LOG: after(events, *last)})


async def _outcome(store: Store, kind: str, data: Any) -> Event | Exception:
    try:
        return await store.append(kind, data)
    except NotImplementedError:
        raise
    except STUDENT_ERRORS as error:
        if not is_students(error):
            raise
        return error


@check(
    "22-s07-write",
    rules=("S6", "S7"),
    dimension="recovery",
    core=True,
    faults=True,
    hint=Text(
        "错误交给那一次调用的等待者，队列自己要接着走：无论成败，都让下一个开始。",
        "Give the error to whoever awaits that call, and let the queue go on: the next one starts whether this one "
        "succeeded or not.",
    ),
)
async def the_queue_outlives_a_failed_write(lab: Lab) -> None:
    """一次写失败不会堵死队列：失败者收到自己的错误，其余照常写入

    One failed write does not poison the queue: its caller sees the error, the others are written
    """
    for _ in range(2):
        count = lab.draw.randrange(4, 8)
        nth = lab.draw.randrange(1, count)
        trial = Trial(
            "S7",
            f"同时追加 {count} 个，让第 {nth} 次写失败",
            f"Append {count} at once and let write {nth} fail",
        )
        name, calls = f"{word(lab.draw)}.jsonl", some_events(lab.draw, count)
        store = lab.store(name)
        await lab.arm([{"op": WRITES, "match": name, "nth": nth, "do": "EIO"}])
        handles = [store.append(event.type, event.data) for event in calls]
        outcomes = await asyncio.gather(*handles, return_exceptions=True)
        await lab.disarm()
        expected: list[Event] = []
        for event, outcome in zip(calls, outcomes, strict=True):
            if isinstance(outcome, Event):
                expected = after(expected, event.type, event.data)
            elif isinstance(outcome, NotImplementedError) or not (
                isinstance(outcome, Exception) and is_students(outcome)
            ):
                raise outcome
            else:
                trial.require(
                    isinstance(outcome, OSError),
                    Text("失败者收到 OSError", "OSError for the one that failed"),
                    show_error(outcome),
                )
        trial.require(
            len(expected) == count - 1,
            Text(f"{count - 1} 个成功", f"{count - 1} succeed"),
            Text(f"{len(expected)} 个", f"{len(expected)}"),
        )
        trial.disk_holds(lab, expected, name)
        last = (some_type(lab.draw), some_data(lab.draw))
        await trial.gives(store.append(*last))
        trial.disk_holds(lab, after(expected, *last), name)
        await trial.replays(lab, {name: after(expected, *last)})


@check(
    "22-s07-mkdir",
    rules=("S7", "S13"),
    dimension="recovery",
    faults=True,
    hint=Text(
        "建目录失败也是这一次追加的失败：错误交给调用者，下一次追加再试着建。",
        "A folder that cannot be made fails this append only: hand the error over, and try again at the next one.",
    ),
)
async def the_queue_outlives_a_failed_mkdir(lab: Lab) -> None:
    """建目录失败只让那一次追加失败，之后照常编号 1

    A folder that cannot be made fails that append only; the next one gets number 1
    """
    trial = Trial("S7", "让建目录失败一次，再追加", "Let making the folder fail once, then append again")
    name, event = f"{word(lab.draw)}/{LOG}", some_events(lab.draw, 1)[0]
    store = lab.store(name)
    await lab.arm([{"op": "mkdir", "do": "ENOSPC"}])
    outcome = await _outcome(store, event.type, event.data)
    seen = await lab.disarm()
    if isinstance(outcome, Exception):
        trial.require(isinstance(outcome, OSError), Text("OSError", "OSError"), show_error(outcome))
        await trial.gives(store.append(event.type, event.data))
    else:
        trial.require(
            all("ENOSPC" not in entry["did"] for entry in seen),
            Text("建目录的错误交给调用者", "the error of mkdir reaches the caller"),
            Text("错误被吞掉了", "it was swallowed"),
        )
    trial.disk_holds(lab, [event], name)


@check(
    "22-s13-nothing",
    rules=("S13",),
    dimension="recovery",
    hint=Text(
        "只有 FileNotFoundError 表示新会话；空文件同样没有历史。",
        "Only FileNotFoundError means a new session; an empty file has no history either.",
    ),
)
async def nothing_yet_is_an_empty_history(lab: Lab) -> None:
    """文件不存在、文件为空：历史都是空的，第一个编号是 1

    A missing file and an empty file read as no history, and the first number is 1
    """
    for zh, en, name in (
        ("文件不存在时", "With no file", "missing.jsonl"),
        ("目录不存在时", "With no folder", "no/folder/yet.jsonl"),
        ("文件为空时", "With an empty file", "empty.jsonl"),
    ):
        trial = Trial("S13", f"{zh}读取，再追加", f"{en}, read and then append")
        event = some_events(lab.draw, 1)[0]
        if name == "empty.jsonl":
            lab.plant(name, b"")
        store = lab.store(name)
        trial.same_events(await trial.gives(store.read()), [])
        await trial.gives(store.append(event.type, event.data))
        trial.disk_holds(lab, [event], name)


@check(
    "22-s13-refused",
    rules=("S13",),
    dimension="diagnosis",
    faults=True,
    hint=Text(
        "`except OSError: return []` 会把没有权限读成空历史，编号从 1 重来。只接住 FileNotFoundError。",
        "`except OSError: return []` turns a denied file into an empty history and numbers start at 1 again. Catch "
        "FileNotFoundError alone.",
    ),
)
async def a_disk_error_is_no_empty_history(lab: Lab) -> None:
    """没有权限、读出错、路径是目录：错误交给调用者，绝不当成空历史

    A denied file, a read error or a folder in its place reach the caller, never as an empty history
    """
    events = some_events(lab.draw, 3)
    faults: Sequence[tuple[str, str, dict[str, Any]]] = (
        ("打开时没有权限", "opening is denied", {"op": "open", "do": "EACCES"}),
        ("第一次读出错", "the first read fails", {"op": ["read", "pread", "readv"], "do": "EIO"}),
        ("第二次读出错", "the second read fails", {"op": ["read", "pread", "readv"], "nth": 2, "do": "EIO"}),
    )
    for zh, en, rule in faults:
        trial = Trial("S13", f"日志有 3 条记录，{zh}", f"The log holds 3 records and {en}")
        lab.plant(LOG, log(events))
        await _fails_for_ever(lab, trial, {"match": LOG, "times": None, **rule}, events)
    folder = Trial("S13", "日志的位置上是一个目录", "A folder stands where the log should be")
    lab.plant("folder.jsonl/inside", b"")
    await folder.refuses(lab.store("folder.jsonl").read(), OSError)
    await folder.refuses(lab.store("folder.jsonl").append(events[0].type, events[0].data), OSError)


async def _fails_for_ever(lab: Lab, trial: Trial, rule: Rule, events: Sequence[Event]) -> None:
    """Read and append while the fault lasts, then append without it: nothing was lost, nothing renumbered."""
    store, history = lab.store(), list(events)
    for name, call in (("read", _read_once), ("append", _append_once)):
        await lab.arm([rule])
        outcome = await call(lab, store)
        touched = any(entry["did"] != "full" for entry in await lab.disarm())
        if touched:
            expected = Text(f"{name} 抛出 OSError", f"{name} raises OSError")
            trial.require(isinstance(outcome, OSError), expected, _shown(outcome))
        elif isinstance(outcome, Event):  # this store had no need for what was denied
            history.append(outcome)
    trial.disk_holds(lab, history)
    last = await trial.gives(store.append(some_type(lab.draw), some_data(lab.draw)))
    trial.disk_holds(lab, after(history, last.type, last.data))


async def _read_once(_lab: Lab, store: Store) -> list[Event] | Exception:
    try:
        return await store.read()
    except NotImplementedError:
        raise
    except STUDENT_ERRORS as error:
        if not is_students(error):
            raise
        return error


async def _append_once(lab: Lab, store: Store) -> Event | Exception:
    return await _outcome(store, some_type(lab.draw), some_data(lab.draw))


def _shown(outcome: object) -> Text:
    if isinstance(outcome, Exception):
        return show_error(outcome)
    return Text("没有报错", "nothing was raised")
