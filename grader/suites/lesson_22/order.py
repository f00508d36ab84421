"""Order, cancelling, event loops, reading beside writing: S1, S2, S8, S17."""
# ruff: noqa: D400 - a docstring is the learner's title

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grader.lab import Event
from grader.suites.check import Text
from grader.suites.expect import Trial, show_outcome
from grader.suites.lesson_22 import scenarios
from grader.suites.lesson_22.drawn import LOG, WRITES, some_data, some_events, some_type, word
from grader.suites.lesson_22.scenarios import source_of
from grader.suites.lesson_22.suite import check

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grader.lab import Lab


@check(
    "22-s01",
    rules=("S1",),
    dimension="concurrency",
    hint=Text(
        "`async def append` 要等到 await 才开始执行。写成普通方法：调用时就登记位置，返回一个 Future 或 Task。",
        "An `async def append` does not start before it is awaited. Make it a plain method that takes its place in "
        "the queue at the call and returns a future or task.",
    ),
)
async def the_call_takes_the_place(lab: Lab) -> None:
    """先调用的先写入，哪怕后调用的先被等待

    What is called first is stored first, even when the second is awaited first
    """
    trial = Trial(
        "S1", "先后调用两次 append，先等第二个", "Call append twice and await the second result first"
    )
    for _ in range(3):
        events = some_events(lab.draw, 2)
        name = f"{word(lab.draw)}.jsonl"
        store = lab.store(name)
        first = store.append(events[0].type, events[0].data)
        second = store.append(events[1].type, events[1].data)
        found = [await trial.gives(second)]
        found.insert(0, await trial.gives(first))
        trial.disk_holds(lab, events, name)
        trial.same_events(found, events, Text("按调用顺序排列的返回值", "the results, in call order,"))


@check(
    "22-s02",
    rules=("S2",),
    dimension="concurrency",
    hint=Text(
        "从读末尾编号到写完这一行，中间不能让另一个 append 插进来：要么排队，要么加锁，要么中间没有 await。",
        "From looking at the last number to having written the line, no other append may come between: use a queue, "
        "a lock, or no await in there.",
    ),
)
async def a_hundred_calls_at_once(lab: Lab) -> None:
    """一次调用一百个 append：编号 1 到 100，按调用顺序写入，也按这个顺序完成

    A hundred calls at once get 1 to 100, are stored in call order and resolve in that order
    """
    trial = Trial("S2", "同时调用 100 次 append", "Call append 100 times at once")
    events = some_events(lab.draw, 100)
    given = {"name": LOG, "appends": [[event.type, event.data] for event in events]}
    told = await trial.gives(lab.scenario(source_of(scenarios.resolve_order), given))
    trial.disk_holds(lab, events)
    trial.require(
        told["numbers"] == list(range(1, 101)),
        Text("按调用顺序返回 1 到 100", "the results are 1 to 100 in call order"),
        Text("次序不同", "another order"),
    )
    trial.require(
        told["order"] == list(range(100)),
        Text("按调用顺序完成", "the calls are resolved in call order"),
        Text("次序不同", "another order"),
    )


CANCELLED = Text(
    "取消只影响被取消的那一个：没开始的整个丢掉，已开始的写完整，后面的仍要等前面真正写完。",
    "Cancelling concerns only the one that is cancelled: dropped whole if it had not begun, finished whole if it had; "
    "those behind it still wait until the ones before have really been written.",
)


@check("22-s08-cancel", rules=("S8",), dimension="concurrency", core=True, faults=True, hint=CANCELLED)
async def cancelling_drops_one_append_whole(lab: Lab) -> None:
    """取消排队中的 append：没开始的整个丢掉，已开始的写完整，其余的次序不变

    Cancelling a queued append drops it whole or finishes it whole, and the others keep their order
    """
    places = {
        "最前一个": ("the first", [0]),
        "中间两个": ("two in the middle", [2, 3]),
        "最后一个": ("the last", [5]),
    }
    for zh, (en, cancel) in places.items():
        for turns in (0, 1, 4):
            trial = Trial(
                "S8",
                f"排 6 个 append，让事件循环走 {turns} 步，取消{zh}",
                f"Queue 6 appends, let the loop take {turns} steps, cancel {en}",
            )
            await _cancel(lab, trial, cancel, turns)


async def _cancel(lab: Lab, trial: Trial, cancel: list[int], turns: int) -> None:
    """Hold the first write for a moment, so that a store that writes in a thread has something under way."""
    events = some_events(lab.draw, 6)
    name, last = f"{word(lab.draw)}.jsonl", [some_type(lab.draw), some_data(lab.draw)]
    appends = [[event.type, event.data] for event in events]
    await lab.arm([{"op": WRITES, "match": name, "do": "slow", "seconds": 0.005}])
    given = {"name": name, "appends": appends, "turns": turns, "cancel": cancel, "last": last}
    told = await trial.gives(lab.scenario(source_of(scenarios.cancelled_in_queue), given))
    await lab.disarm()
    kept = [_kept(trial, outcome, place in cancel) for place, outcome in enumerate(told["told"])]
    on_disk = _types_on_disk(trial, lab, name)
    history: list[Event] = []
    for place, (kind, data) in enumerate(appends):
        if kept[place] or (place in cancel and kind in on_disk):
            history.append(Event(len(history) + 1, kind, data))
        if (
            place in cancel and not kept[place] and place > told["written"]
        ):  # only the next one may have begun
            trial.require(
                kind not in on_disk,
                Text("没开始的追加被整个丢掉", "an append that had not begun is dropped whole"),
                Text("它还是写进了文件", "it was written all the same"),
            )
    trial.require(
        "event" in told["last"], Text("之后的追加成功", "a later append succeeds"), show_outcome(told["last"])
    )
    trial.disk_holds(lab, [*history, Event(len(history) + 1, *last)], name)


def _kept(trial: Trial, outcome: dict[str, Any], cancelled: bool) -> bool:
    """Say whether this append gave its event; only a cancelled one may do without."""
    if "event" in outcome:
        return True
    allowed = cancelled and "CancelledError" in outcome.get("error", ())
    trial.require(
        allowed,
        Text("没有被取消的追加全部成功", "every append that was not cancelled succeeds"),
        show_outcome(outcome),
    )
    return False


def _types_on_disk(trial: Trial, lab: Lab, name: str) -> Sequence[str]:
    raw = trial.bytes_on_disk(lab, name)
    return [event.type for event in trial.records(raw)]


@check(
    "22-s08-unheard",
    rules=("S8",),
    dimension="concurrency",
    core=True,
    faults=True,
    hint=Text(
        "别为了让取消安静就吞掉所有异常：没人等待的失败仍要由事件循环报告（“exception was never retrieved”）。",
        "Do not silence every error to keep cancelling quiet: a failure nobody awaits is still reported by the loop "
        '("exception was never retrieved").',
    ),
)
async def an_unheard_failure_is_reported(lab: Lab) -> None:
    """没人等待的失败仍会被报告，只有被取消的才沉默

    A failed append that nobody awaits is still reported; only a cancelled one is silent
    """
    trial = Trial(
        "S8",
        "让一次写入失败而不等待它，再取消另一个",
        "Let a write fail that nobody awaits, then cancel another",
    )
    await lab.arm([{"op": WRITES, "match": LOG, "do": "EIO"}])
    given = {"name": LOG, "type": some_type(lab.draw)}
    told = await trial.gives(lab.scenario(source_of(scenarios.unheard_failure), given))
    await lab.disarm()
    trial.require(
        told["failed"] >= 1,
        Text("失败被报告", "the failure is reported"),
        Text("没有任何报告", "nothing was reported"),
    )
    trial.require(
        told["cancelled"] == 0,
        Text("被取消的追加不报错", "a cancelled append reports nothing"),
        Text("它被当成错误报告了", "it was reported as an error"),
    )


@check(
    "22-s08-loops",
    rules=("S8",),
    dimension="concurrency",
    core=True,
    hint=Text(
        "锁和 Future 属于某个事件循环。换到新的循环时重新建立；旧循环还在用，就抛 RuntimeError，不要一直等。",
        "Locks and futures belong to one event loop. Make them anew on the next loop; while the old one is in use "
        "raise RuntimeError rather than wait for ever.",
    ),
)
async def loops_one_after_the_other(lab: Lab) -> None:
    """一个 store 可以先后用于几个事件循环；同时用于两个则报 RuntimeError，绝不卡住或乱序

    One store serves successive event loops; two at once are refused with RuntimeError, never stuck or out of order
    """
    kind = some_type(lab.draw)
    given = {"type": kind, "after": "after.jsonl", "at_once": "at-once.jsonl"}
    after = Trial(
        "S8", "在三个事件循环里先后用同一个 store", "Use one store on three event loops, one after the other"
    )
    told = await after.gives(lab.scenario(source_of(scenarios.event_loops), given))
    for outcome in told["after"]:
        after.require("event" in outcome, Text("每次都成功", "each append succeeds"), show_outcome(outcome))
    after.disk_holds(lab, [Event(number, kind, number) for number in (1, 2, 3)], "after.jsonl")
    at_once = Trial(
        "S8", "一个循环还在追加时，从另一个循环追加", "Append from another loop while one is still appending"
    )
    served = "event" in told["second"]  # a store that serves both, in call order, needs not refuse
    at_once.require(
        served or "RuntimeError" in told["second"].get("error", ()),
        Text("RuntimeError，或按调用顺序都写入", "RuntimeError, or both are stored in call order"),
        show_outcome(told["second"]),
    )
    at_once.require(
        "event" in told["first"],
        Text("先来的追加成功", "the first append succeeds"),
        show_outcome(told["first"]),
    )
    at_once.disk_holds(lab, [Event(number, kind, number) for number in (1, 2)[: 1 + served]], "at-once.jsonl")


@check(
    "22-s17",
    rules=("S17",),
    dimension="concurrency",
    hint=Text(
        "read 只看文件里已经写完的记录；正在写的半行就是撕裂的尾部，不算错。",
        "read shows the records that are already whole in the file; half a line that is just being written is a torn "
        "tail, not an error.",
    ),
)
async def reading_beside_appends(lab: Lab) -> None:
    """一边追加一边读：读到的总是已提交的前缀

    Reading while appends are under way always gives a committed prefix
    """
    trial = Trial(
        "S17", "排 40 个 append，同时反复 read", "Queue 40 appends and read again and again meanwhile"
    )
    events = some_events(lab.draw, 40)
    given = {"name": LOG, "appends": [[event.type, event.data] for event in events]}
    reads = await trial.gives(lab.scenario(source_of(scenarios.read_beside_appends), given))
    longest = 0
    for told in reads:
        trial.require("numbers" in told, Text("每次读取都成功", "every read succeeds"), show_outcome(told))
        numbers = told["numbers"]
        trial.require(
            numbers == list(range(1, len(numbers) + 1)) and len(numbers) >= longest,
            Text("从 1 开始、不回退的前缀", "a prefix from 1 that never shrinks"),
            Text("不是这样的前缀", "no such prefix"),
        )
        trial.require(
            len(numbers) <= told["lines"],
            Text("只读到磁盘上已有的记录", "only records that are on disk are read"),
            Text(
                f"读到 {len(numbers)} 条，磁盘上 {told['lines']} 条",
                f"{len(numbers)} read, {told['lines']} on disk",
            ),
        )
        longest = len(numbers)
    trial.disk_holds(lab, events)
    trial.require(
        longest == len(events),
        Text("最后读到全部", "the last read gives them all"),
        Text(f"只有 {longest} 个", f"only {longest}"),
    )
