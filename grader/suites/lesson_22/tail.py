"""How a log goes on, and how it ends: S10, S11, S14."""
# ruff: noqa: D400 - a docstring is the learner's title

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from grader.lab import Event, canonical
from grader.suites.check import Text
from grader.suites.expect import Trial, show_outcome
from grader.suites.lesson_22 import scenarios
from grader.suites.lesson_22.drawn import (
    LOG,
    WRITES,
    after,
    line,
    log,
    renumbered,
    some_data,
    some_events,
    some_type,
    word,
)
from grader.suites.lesson_22.judge import judge
from grader.suites.lesson_22.scenarios import source_of
from grader.suites.lesson_22.suite import check

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grader.lab import Lab, Rule

SAVED = Text(
    "撕裂的字节原样保存在 .torn-偏移 文件里", "the torn bytes are kept as they were in a .torn-OFFSET file"
)
CUTS = ["ftruncate", "truncate"]


@check(
    "22-s10",
    rules=("S10",),
    dimension="integrity",
    hint=Text(
        "新实例第一次追加前读一遍文件，从最后一个编号接着编；不要从文件行数的文字形式推算。",
        "Before its first append a new instance reads the file and goes on from the last number in it.",
    ),
)
async def a_new_instance_goes_on(lab: Lab) -> None:
    """新实例从磁盘上的最后一个编号接着编，位数变化时也一样

    A new instance goes on from the last number on disk, also where the digits grow
    """
    for count in (1, 9, 99, 1000):
        trial = Trial(
            "S10",
            f"日志已有 {count} 条，用新实例追加两次",
            f"The log holds {count}; append twice with a new instance",
        )
        events = some_events(lab.draw, count + 2)
        lab.plant(LOG, log(events[:count]))
        store = lab.store()
        for event in events[count:]:
            await trial.gives(store.append(event.type, event.data))
        trial.disk_holds(lab, events)


TORN = Text(
    "追加前先看尾部：撕裂的字节先存到 <name>.torn-<offset>（独占创建、fsync），再把日志截到最后一个好的换行。",
    "Look at the tail before appending: save the torn bytes to <name>.torn-<offset> (exclusive creation, fsync), then "
    "cut the log at its last good newline.",
)


@check("22-s11-kept", rules=("S11",), dimension="recovery", core=True, faults=True, hint=TORN)
async def torn_bytes_are_saved_before_the_cut(lab: Lab) -> None:
    """撕裂的尾部先另存并落盘，再截断；之后的追加不会接在残片后面

    A torn tail is saved and synced before it is cut, and the append is never glued onto it
    """
    for _ in range(2):
        events = some_events(lab.draw, lab.draw.randrange(2, 5))
        good, last = log(events[:-1]), line(events[-1])
        torn, name = last[: lab.draw.randrange(1, len(last) - 1)], f"{word(lab.draw)}.jsonl"
        trial = Trial(
            "S11",
            f"日志末尾有 {len(torn)} 个撕裂的字节，追加一个事件",
            f"Append to a log with {len(torn)} torn bytes at its end",
        )
        lab.plant(name, good + torn)
        await lab.arm([])
        await trial.gives(lab.store(name).append(events[-1].type, events[-1].data))
        seen = await lab.disarm()
        trial.disk_holds(lab, events, name)
        trial.require(
            lab.disk(name).startswith(good),
            Text("已有的记录一字节不变", "the records before it keep every byte"),
            Text("变了", "they changed"),
        )
        copy = f"{name}.torn-{len(good)}"
        trial.require(trial.bytes_on_disk(lab, copy) == torn, SAVED, Text("内容不同", "its content differs"))
        trial.require(
            _synced_first(seen, copy, name),
            Text("另存的文件先 fsync，日志才被改动", "the copy is synced before the log is altered"),
            Text("没有先 fsync", "it was not synced first"),
        )
        await trial.replays(lab, {name: events})
    await _half_a_repair(lab, "另存失败", "keeping them fails", {"op": "fsync", "match": "*.torn-*"})
    await _half_a_repair(lab, "截断失败", "cutting them off fails", {"op": CUTS, "match": "*.jsonl"})


async def _half_a_repair(lab: Lab, zh: str, en: str, rule: Rule) -> None:
    """Let a repair fail once: whatever that append said, the next one is glued onto nothing."""
    trial = Trial(
        "S11",
        f"用一个 store 追加两条，尾部被撕裂，修尾时{zh}，再追加",
        f"Append 2 with a store; tear the tail; {en} in the repair; append again",
    )
    events, name = some_events(lab.draw, 4), f"{word(lab.draw)}.jsonl"
    appends = [[event.type, event.data] for event in events]
    given = {"name": name, "appends": appends[:2], "damage": b'{"seq'.hex(), "then": appends[2:]}
    await lab.arm([{**rule, "do": "EIO"}])
    told = await trial.gives(lab.scenario(source_of(scenarios.append_to_damage), given))
    await lab.disarm()
    trial.require(
        "event" in told[1], Text("下一次追加成功", "the next append succeeds"), show_outcome(told[1])
    )
    stored = [call for call, outcome in zip(appends[2:], told, strict=True) if "event" in outcome]
    history = events[:2]
    for call in stored:
        history = after(history, *call)
    trial.disk_holds(lab, history, name)


def _synced_first(seen: Sequence[dict[str, Any]], copy: str, name: str) -> bool:
    """Say whether the first sync of the copy comes before the first change of the log."""
    for entry in seen:
        if entry["path"] == copy and entry["op"] in ("fsync", "fdatasync"):
            return True
        if name in (entry["path"], entry["to"]) and entry["op"] in (*CUTS, *WRITES, "replace", "rename"):
            return False
    return False


@check("22-s11-clash", rules=("S11",), dimension="recovery", core=True, hint=TORN)
async def an_older_copy_is_never_overwritten(lab: Lab) -> None:
    """已有同名的另存文件时改用 -2、-3，旧的不动

    When a saved tail of that name exists, -2 or -3 is used, and the older ones are kept
    """
    trial = Trial(
        "S11",
        "同一偏移已有两个另存文件时，再撕裂、再追加",
        "Two saved tails of that offset exist; tear again and append",
    )
    events = some_events(lab.draw, 3)
    good, torn = log(events[:-1]), line(events[-1])[:-2]
    copy = f"{LOG}.torn-{len(good)}"
    lab.plant(LOG, good + torn)
    older = {copy: b"older", f"{copy}-2": b"old"}
    for name, raw in older.items():
        lab.plant(name, raw)
    await trial.gives(lab.store().append(events[-1].type, events[-1].data))
    trial.disk_holds(lab, events)
    for name, raw in {**older, f"{copy}-3": torn}.items():
        trial.require(trial.bytes_on_disk(lab, name) == raw, SAVED, Text("内容不同", "its content differs"))
    await trial.replays(lab, {LOG: events})


@check(
    "22-s11-newline",
    rules=("S11", "S14"),
    dimension="recovery",
    core=True,
    hint=Text(
        "最后一条记录完整、只差换行：它算数。追加前先补上换行，什么都不用另存。",
        "A last record that is whole and lacks only its newline counts. Give it the newline before appending; there "
        "is nothing to save.",
    ),
)
async def a_missing_newline_is_added(lab: Lab) -> None:
    """最后一条完整但缺换行：先补换行再追加，别的都不动

    A last record that lacks only its newline gets it before the append, and nothing else changes
    """
    trial = Trial(
        "S11", "最后一条记录缺换行，追加一个事件", "The last record lacks its newline; append an event"
    )
    for _ in range(2):
        events = some_events(lab.draw, lab.draw.randrange(2, 5))
        before = log(events[:-1])
        lab.plant(LOG, before[:-1])
        await trial.gives(lab.store().append(events[-1].type, events[-1].data))
        trial.disk_holds(lab, events)
        trial.require(
            lab.disk().startswith(before) and lab.names() == [LOG],
            Text("只多了换行和新记录", "only the newline and the new record were added"),
            Text("别的也变了", "something else changed"),
        )
        await trial.replays(lab, {LOG: events})


@check("22-s11-cuts", rules=("S11", "S14"), dimension="recovery", core=True, hint=TORN)
async def append_after_every_cut(lab: Lab) -> None:
    """在许多位置截断，再追加：好的记录都在，新记录自成一行

    Cut at many places and append: every whole record stays, and the new one is a line of its own
    """
    trial = Trial("S11", "在许多位置截断日志，各追加一个事件", "Cut a log at many places and append to each")
    events = [Event(number, word(lab.draw), "é") for number in (1, 2)]
    raw, kind, data = log(events), some_type(lab.draw), some_data(lab.draw)
    start = len(line(events[0]))
    edges = (0, start - 1, start, start + 1, raw.rindex(b"\xc3") + 1, len(raw) - 2, len(raw) - 1)
    inside = lab.draw.sample(range(start + 2, len(raw) - 2), 8)  # not every byte: each repair syncs the disk
    cuts = sorted({*edges, *inside})
    given = {"base": raw.hex(), "cuts": cuts, "type": kind, "data": data}
    await trial.gives(lab.scenario(source_of(scenarios.append_after_each_cut), given))
    names = set(lab.names())
    for cut in cuts:
        at = Trial("S11", f"把日志截到 {cut} 字节再追加", f"Cut the log to {cut} bytes and append")
        before, name = judge(raw[:cut]).events, f"{cut}.jsonl"
        at.disk_holds(lab, after(before, kind, data), name)
        good = len(log(before))
        torn = raw[good:cut]
        if torn:
            at.require(f"{name}.torn-{good}" in names, SAVED, Text("没有这个文件", "it is missing"))
            at.require(
                at.bytes_on_disk(lab, f"{name}.torn-{good}") == torn,
                SAVED,
                Text("内容不同", "its content differs"),
            )


@check(
    "22-s14-cuts",
    rules=("S14", "S15"),
    dimension="recovery",
    hint=Text(
        "按字节切开，不要按字符：UTF-8 字符被切成两半时，先遇到的是解码错误，它也只是撕裂。",
        "Split bytes, not characters: where a UTF-8 character is cut in half the decoding fails first, and that too is "
        "only a torn tail.",
    ),
)
async def every_cut_gives_the_records_before_it(lab: Lab) -> None:
    """在每一个字节处截断：读到的正是之前完整的记录，从不报错

    Cut at every byte: exactly the records that are whole before it are read, without an error
    """
    raw = log([Event(number, some_type(lab.draw), {word(lab.draw): "数据🧪é"}) for number in (1, 2, 3)])
    cuts = range(len(raw) + 1)
    given = {"name": LOG, "base": raw.hex(), "cuts": list(cuts)}
    trial = Trial("S14", "把日志在每一个字节处截断再读", "Cut a log at every byte and read")
    told = await trial.gives(lab.scenario(source_of(scenarios.read_each), given))
    trial.require(
        len(told) == len(cuts),
        Text("每个截断都有结果", "a result for every cut"),
        Text("不全", "some are missing"),
    )
    for cut, outcome in zip(cuts, told, strict=True):
        at = Trial("S14", f"把日志截到 {cut} 字节再读", f"Cut the log to {cut} bytes and read")
        expected = judge(raw[:cut]).events
        if "error" in outcome:
            raise at.failure(Text("不报错", "no error"), Text(outcome["error"][0], outcome["error"][0]))
        at.require(
            outcome == summary(expected),
            Text(f"之前的 {len(expected)} 条完整记录", f"the {len(expected)} whole records before the cut"),
            Text(f"{outcome['count']} 条", f"{outcome['count']} records"),
        )


def summary(events: Sequence[Event]) -> dict[str, object]:
    """Sum a read up as the scenario `read_each` does."""
    told = canonical([[event.sequence, event.type, event.data] for event in events])
    return {"count": len(events), "digest": hashlib.sha256(told.encode()).hexdigest()}


@check(
    "22-s14-tails",
    rules=("S14",),
    dimension="recovery",
    hint=Text(
        "没有换行的最后一段，凡是严格解析失败的都是撕裂：NUL、NaN、切断的字符、嵌套过深、两条粘在一起。",
        "Whatever ends without a newline and fails strict parsing is torn: NUL bytes, NaN, half a character, nesting "
        "too deep, two records in one.",
    ),
)
async def odd_tails_are_torn(lab: Lab) -> None:
    """没有换行又解析不了的结尾，不论什么样子，都是撕裂的尾部

    An ending without newline that does not parse is a torn tail, whatever it looks like
    """
    events = some_events(lab.draw, 3)
    next_line, kind = line(renumbered(events[2], 3))[:-1], some_type(lab.draw)
    head = f'{{"sequence":3,"type":"{kind}","data":'.encode()
    tails = {
        "NUL 字节": ("NUL bytes", b"\x00" * 8),
        "半条记录加 NUL": ("half a record, then NUL bytes", next_line[:9] + b"\x00" * 4),
        "半个 UTF-8 字符": ("half a UTF-8 character", head + b'"\xe2\x82'),
        "不是 UTF-8 的字节": ("bytes that are not UTF-8", head + b'"\xff"}'),
        "NaN": ("NaN", head + b"NaN}"),
        "嵌套过深": ("nesting too deep", head + b"[" * 100_000),
        "过长的整数": ("an integer too long", head + b"9" * 5000 + b"}"),
        "粘在一起的两条记录": ("two records glued together", next_line + next_line),
        "字节序标记": ("a byte order mark", b"\xef\xbb\xbf" + next_line),
        "只有空格": ("only spaces", b"   "),
    }
    for zh, (en, tail) in tails.items():
        trial = Trial(
            "S14", f"日志以没有换行的“{zh}”结尾，读取", f"The log ends, without a newline, in {en}; read it"
        )
        lab.plant(LOG, log(events[:2]) + tail)
        trial.same_events(await trial.gives(lab.store().read()), events[:2])


@check(
    "22-s14-whole",
    rules=("S14", "S15"),
    dimension="recovery",
    hint=Text(
        "能解析的最后一段不是撕裂：记录对就算数，编号或字段不对就是损坏。",
        "A last piece that parses is not torn: a right record counts, a wrong number or field is corruption.",
    ),
)
async def an_unended_line_that_parses_is_judged(lab: Lab) -> None:
    """没有换行但能解析的结尾照常判断：完整的记录算数，错的就是损坏

    An ending without newline that parses is judged like any line: a record counts, a wrong one is corruption
    """
    events = some_events(lab.draw, 4)
    whole = Trial(
        "S14", "最后一条记录完整，只缺换行，读取", "The last record is whole and lacks only its newline; read"
    )
    lab.plant(LOG, log(events)[:-1])
    whole.same_events(await whole.gives(lab.store().read()), events)
    kind = some_type(lab.draw)
    for zh, en, tail in (
        ("编号不对的记录", "a record with the wrong number", line(renumbered(events[3], 9))[:-1]),
        (
            "编号是 true 的记录",
            "a record numbered true",
            f'{{"sequence":true,"type":"{kind}","data":1}}'.encode(),
        ),
        ("没有 type 的对象", "an object without a type", b'{"sequence":4,"data":1}'),
        ("type 为空白的记录", "a record with a blank type", b'{"sequence":4,"type":" ","data":1}'),
        ("一个数组", "an array", b"[4]"),
        ("一个数", "a number", b"4"),
    ):
        trial = Trial(
            "S14", f"日志以没有换行的“{zh}”结尾，读取", f"The log ends, without a newline, in {en}; read it"
        )
        lab.plant(LOG, log(events[:3]) + tail)
        await trial.corrupt_at(lab.store().read(), 4, hidden=(kind,))
