"""The five required tests: replay, contiguous numbers, call order, torn tail, bad line."""
# ruff: noqa: D400 - a docstring is the learner's title

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from grader.suites.check import Text
from grader.suites.expect import Trial
from grader.suites.lesson_22.drawn import LOG, line, log, renumbered, some_data, some_events, some_type, word
from grader.suites.lesson_22.suite import check

if TYPE_CHECKING:
    from grader.lab import Event, Lab

ROUNDS = 3


@check(
    "22-01",
    rules=("S5", "S9", "S10"),
    dimension="integrity",
    required=True,
    hint=Text(
        "先看磁盘：append 的结果完成之前，这一行连同换行必须已经写进文件；新实例要从文件里的最后一个编号接着编。",
        "Look at the disk first: the line and its newline must be in the file before the result of append is "
        "there, and a new instance must go on from the last number in the file.",
    ),
)
async def replays_what_was_appended(lab: Lab) -> None:
    """追加的事件可以重放，换一个实例、换一个进程也一样

    Appended events can be replayed, also by a new instance and a new process
    """
    trial = Trial(
        "S5/S9/S10",
        "逐个追加若干事件，每次确认后查看磁盘，再用新实例和新进程重放",
        "Append events one by one, look at the disk after each, then replay with a new instance and a new process",
    )
    histories = {
        f"{word(lab.draw)}.jsonl": some_events(lab.draw, lab.draw.randrange(3, 7)) for _ in range(ROUNDS)
    }
    for name, events in histories.items():
        store = await trial.appends(lab, events, name)
        trial.same_events(await trial.gives(store.read()), events)
        trial.same_events(await trial.gives(lab.store(name).read()), events)
    await lab.restart()
    for name, events in histories.items():
        await _goes_on(lab, trial, name, events)


async def _goes_on(lab: Lab, trial: Trial, name: str, events: list[Event]) -> None:
    """After a restart the history is the same, and the next append gets the next number."""
    store = lab.store(name)
    trial.same_events(await trial.gives(store.read()), events)
    kind, data = some_type(lab.draw), some_data(lab.draw)
    returned = await trial.gives(store.append(kind, data))
    trial.disk_holds(lab, [*events, returned], name)
    trial.require(
        returned.sequence == len(events) + 1,
        Text("重启后接着编号", "numbering goes on after the restart"),
        Text("编号没有接上", "it does not"),
    )


@check(
    "22-02",
    rules=("S2", "S15"),
    dimension="integrity",
    required=True,
    hint=Text(
        "只检查“递增”放得过 1、3。第 n 行的编号必须恰好是 n，多一个、少一个都要停下并指出那一行。",
        "Checking only that numbers rise lets 1, 3 pass. Line n must carry exactly number n; stop at the first line "
        "that does not, and name it.",
    ),
)
async def numbers_are_contiguous(lab: Lab) -> None:
    """编号严格连续：缺号、重号都拒绝，并指出行号

    Numbers are strictly contiguous: a gap or a duplicate is refused, with its line
    """
    for _ in range(ROUNDS):
        events = some_events(lab.draw, lab.draw.randrange(4, 9))
        at = lab.draw.randrange(1, len(events) - 1)
        await Trial("S2", "逐个追加若干事件", "Append events one by one").appends(
            lab, events, f"{word(lab.draw)}.jsonl"
        )
        gap = Trial("S15", f"从日志里去掉第 {at + 1} 条再读", f"Remove record {at + 1} from the log and read")
        lab.plant(LOG, log([*events[:at], *events[at + 1 :]]))
        await gap.corrupt_at(lab.store().read(), at + 1)
        twice = Trial("S15", f"让编号 {at} 出现两次再读", f"Let number {at} stand twice and read")
        lab.plant(LOG, log([*events[:at], renumbered(events[at], at), *events[at + 1 :]]))
        await twice.corrupt_at(lab.store().read(), at + 1)
        start = Trial("S15", "让日志从编号 2 开始再读", "Let the log begin with number 2 and read")
        lab.plant(LOG, log(events[1:]))
        await start.corrupt_at(lab.store().read(), 1)


@check(
    "22-03",
    rules=("S1", "S2"),
    dimension="concurrency",
    required=True,
    hint=Text(
        "编号和写入必须在同一个临界区里，而且排队发生在调用 append 的那一刻，不是 await 的那一刻。",
        "Numbering and writing belong in one critical section, and the place in the queue is taken when append is "
        "called, not when its result is awaited.",
    ),
)
async def concurrent_calls_keep_their_order(lab: Lab) -> None:
    """并发调用保持调用顺序：编号、物理行、结果都按调用的先后

    Concurrent calls keep call order: numbers, physical lines and results follow the calls
    """
    histories = {}
    for shuffled in (False, True, True):
        events = some_events(lab.draw, lab.draw.randrange(6, 16))
        name = f"{word(lab.draw)}.jsonl"
        store = lab.store(name)
        handles = [store.append(event.type, event.data) for event in events]
        if shuffled:
            trial = Trial(
                "S1",
                f"同时调用 {len(events)} 次 append，再打乱次序逐个等待",
                f"Call append {len(events)} times at once, then await the results in another order",
            )
            order = lab.draw.sample(range(len(events)), len(events))
            order.remove(0)  # the first one is awaited last
            returned = {}
            for place in [*order, 0]:
                returned[place] = await trial.gives(handles[place])
                _is_on_disk(trial, lab, events[place], name)
            found = [returned[place] for place in range(len(events))]
        else:
            trial = Trial(
                "S2", f"同时调用 {len(events)} 次 append", f"Call append {len(events)} times at once"
            )
            found = await trial.gives(asyncio.gather(*handles))
        trial.disk_holds(lab, events, name)
        trial.same_events(found, events, Text("按调用顺序排列的返回值", "the results, in call order,"))
        trial.same_events(await trial.gives(lab.store(name).read()), events)
        histories[name] = events
    replayed = Trial("S1", "在新进程里重放这些日志", "Replay these logs in a new process")
    await replayed.replays(lab, histories)
    called = Trial("S1", "看源码里 append 怎么写", "Look at how append is written in the source")
    called.require(
        lab.interface.methods.get("append") != "async def",
        Text("调用 append 时就已排队", "a call of append takes its place at once"),
        Text(
            "async def 的函数体要到 await 时才开始", "the body of an async def begins only when it is awaited"
        ),
    )


def _is_on_disk(trial: Trial, lab: Lab, event: Event, name: str) -> None:
    """Require the line of an event that was acknowledged, and those of all that were called before it."""
    lines = trial.bytes_on_disk(lab, name).split(b"\n")[:-1]
    trial.require(
        len(lines) >= event.sequence,
        Text("结果返回时，这一条已经在磁盘上", "an event is on disk when its result is there"),
        Text(f"磁盘上只有 {len(lines)} 行", f"the disk has {len(lines)} lines"),
    )


@check(
    "22-04",
    rules=("S14",),
    dimension="recovery",
    required=True,
    hint=Text(
        "先看文件是否以换行结束。只有最后一段没有换行、又解析不了时才算撕裂；有换行的坏行是损坏。",
        "Ask first whether the file ends with a newline. Only a last piece without one that does not parse is torn; "
        "a bad line that was ended is corruption.",
    ),
)
async def only_a_torn_tail_is_ignored(lab: Lab) -> None:
    """只忽略撕裂的尾部，之前的事件一个不少

    Only a torn tail is ignored, and every event before it is kept
    """
    for _ in range(ROUNDS):
        events = some_events(lab.draw, lab.draw.randrange(2, 6))
        trial = Trial("S14", "逐个追加若干事件", "Append events one by one")
        name = f"{word(lab.draw)}.jsonl"
        await trial.appends(lab, events, name)
        whole = lab.disk(name)
        good = whole.rindex(b"\n", 0, -1) + 1  # where the last record begins, in bytes
        size = len(whole[good:].rstrip())
        for cut in (1, lab.draw.randrange(2, size - 1), size - 1):
            await _reads_up_to_the_tear(lab, events, whole[: good + cut])
        await _reads_up_to_the_tear(lab, events, whole[:good] + '{"sequence":9,"type":"读'.encode()[:-1])
        ended = Trial(
            "S14", "截断最后一条记录，却补上换行", "Cut the last record, but let a newline stand behind it"
        )
        lab.plant(LOG, whole[: good + size - 1] + b"\n")
        await ended.corrupt_at(lab.store().read(), len(events))


async def _reads_up_to_the_tear(lab: Lab, events: list[Event], raw: bytes) -> None:
    """All but the last event are read, and the file stays as it is."""
    size = len(raw) - raw.rindex(b"\n") - 1
    trial = Trial(
        "S14", f"日志末尾撕裂，留下 {size} 字节；读取", f"The log ends in {size} torn bytes; read it"
    )
    lab.plant(LOG, raw)
    trial.same_events(await trial.gives(lab.store().read()), events[:-1])
    trial.require(
        lab.disk() == raw,
        Text("读取不改动文件", "reading changes nothing on disk"),
        Text("文件变了", "the file has changed"),
    )


@check(
    "22-05",
    rules=("S15",),
    dimension="diagnosis",
    required=True,
    hint=Text(
        "中间的坏行不能跳过：抛出 CorruptLogError，带物理行号（从 1 数起），消息里不带这一行的内容。",
        "A bad line in the middle must not be skipped: raise CorruptLogError with the physical line number, counted "
        "from 1, and without the content of that line.",
    ),
)
async def a_bad_middle_line_is_refused(lab: Lab) -> None:
    """中间的坏行被拒绝，错误指出行号、不回显内容

    A bad line in the middle is refused: the error names its line and echoes none of it
    """
    for _ in range(ROUNDS):
        events = some_events(lab.draw, lab.draw.randrange(3, 9))
        at = lab.draw.randrange(1, len(events))
        secret = word(lab.draw)
        before, rest = log(events[:at]), log(events[at:])
        half = line(events[at])[: lab.draw.randrange(8, len(line(events[at])) - 2)]
        for zh, en, raw in (
            (
                "插入一行不是 JSON 的文字",
                "Put a line of text that is not JSON",
                before + secret.encode() + b"\n" + rest,
            ),
            ("插入半条记录", "Put half a record", before + half + b"\n" + rest),
            (
                "插入一行带着多余尾巴的记录",
                "Put a record with a stray ending",
                before + line(events[at])[:-1] + f' "{secret}"\n'.encode() + rest,
            ),
        ):
            trial = Trial("S15", f"{zh}作为第 {at + 1} 行再读", f"{en} as line {at + 1} and read")
            lab.plant(LOG, raw)
            await trial.corrupt_at(lab.store().read(), at + 1, hidden=(secret, events[at].type))
