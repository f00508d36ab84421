"""One file at a time: digests, whole state files, the event log. P3, P4, P5."""
# ruff: noqa: D400 - a docstring is the learner's title

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from grader.suites.check import Text
from grader.suites.lesson_04 import scenarios
from grader.suites.lesson_04.claim import MOVES, WRITES
from grader.suites.lesson_04.drawn import event, shuffled, value, word
from grader.suites.lesson_04.judge import Rule, digest
from grader.suites.lesson_04.scenarios import source_of
from grader.suites.lesson_04.suite import check

if TYPE_CHECKING:
    from random import Random

    from grader.spine import Garden, Ran, SpineLab
    from grader.tree import Tree

MARK = {"op": "change", "do": "slow", "seconds": 0, "times": None}
"""Does nothing to every operation that changes the disk, and so marks it in the log."""

SAVE, APPEND = source_of(scenarios.save), source_of(scenarios.append)
SAVED, APPENDED = Text("写入成功", "saving succeeds"), Text("追加成功", "the append succeeds")
ACCENTS = ("é", "e\u0301", {"a": None})
OLD_OR_NEW = Text("旧内容或新内容，完整的一份", "the old content or the new, whole")


def marked(ran: Ran) -> list[dict[str, Any]]:
    """List the operations of a marked run that change the disk."""
    return [entry for entry in ran.log if entry.get("did") != "full"]


async def plant(garden: Garden, contents: dict[str, Any]) -> None:
    """Put one state file into each folder."""
    await garden.write({f"{folder}/state.json": json.dumps(content) for folder, content in contents.items()})


@check(
    "04-p03-whole",
    rules=("P3",),
    dimension="durability",
    hint=Text(
        "顺序是：写临时文件、fsync、os.replace、fsync 文件夹。少一步，断电之后就可能是半份，或者名字没了。",
        "The order: write a temporary file, fsync it, os.replace, fsync the folder. Without one of these, a power cut may "
        "leave half a file, or lose its name.",
    ),
)
async def a_save_killed_anywhere_leaves_old_or_new(lab: SpineLab) -> None:
    """在任意一步被杀，状态文件都是旧的或新的完整内容；刷盘的顺序正确

    Killed at any step, a save leaves the old or the new content, whole; and it is flushed in the right order
    """
    rule = Rule(
        "P3", "替换一个状态文件，记下每个文件操作", "Replace a state file, and note every file operation"
    )
    garden, old, new = await lab.lay("bare"), value(lab.draw), value(lab.draw)
    await plant(garden, {"s": old})
    ran = await rule.gives(garden.asked(SAVE, [["s/state.json", new]], rules=[MARK]))
    _flushed_in_order(rule, ran)
    strikes = _strikes(marked(ran), ("kill",))
    await plant(garden, {f"k{number}": old for number, _ in enumerate(strikes)})
    for number, strike in enumerate(strikes):
        rule = Rule(
            "P3", "替换状态文件，在某一步杀死进程", "Replace a state file, and kill the process at some step"
        )
        given = [[f"k{number}/state.json", new]]
        rule.died(
            await garden.asked(SAVE, given, rules=[strike], may_die=True),
            "那一步",
            "that step",
        )
        rule.require(
            rule.record(garden, f"k{number}/state.json") in (old, new),
            OLD_OR_NEW,
            Text("都不是", "it is neither"),
        )


def _flushed_in_order(rule: Rule, ran: Ran) -> None:
    """Require fsync of the written file, then the replace, then fsync of the folder."""
    log = [entry for entry in ran.log if str(entry.get("path")).startswith("s")]
    ops = [(entry.get("op"), entry.get("path"), entry.get("to")) for entry in log]
    replaces = [at for at, (op, *paths) in enumerate(ops) if op in MOVES and "s/state.json" in paths]
    rule.require(len(replaces) == 1, Text("一次替换", "one replace"), Text(*(f"{len(replaces)}",) * 2))
    at = replaces[0]
    writes = [number for number, (op, path, _) in enumerate(ops[:at]) if op in WRITES and path == ops[at][1]]
    flushes = [
        number
        for number, (op, path, _) in enumerate(ops[:at])
        if op in ("fsync", "fdatasync") and path == ops[at][1]
    ]
    rule.require(
        bool(writes and flushes) and writes[-1] < flushes[-1],
        Text("写完先 fsync 再替换", "the file is flushed between its last write and the replace"),
        Text("没有", "it is not"),
    )
    rule.require(
        ("fsync", "s") in [entry[:2] for entry in ops[at:]],
        Text("替换之后 fsync 文件夹", "the folder is flushed after the replace"),
        Text("没有", "it is not"),
    )


def _strikes(operations: list[dict[str, Any]], ends: tuple[str, ...]) -> list[dict[str, Any]]:
    """List a strike before every operation, and one in the middle of every write."""
    found = []
    for number, entry in enumerate(operations, start=1):
        for end in ends:
            parts = (
                ("none", "half") if entry.get("op") in WRITES and (entry.get("size") or 0) > 1 else ("none",)
            )
            found += [{"op": "change", "nth": number, "do": f"{part},{end}"} for part in parts]
    return found


@check(
    "04-p03-error",
    rules=("P3",),
    dimension="durability",
    hint=Text(
        "出错也要删掉自己的临时文件，再把错误抛出去；旧文件一个字节都不能动。",
        "On an error, too, remove your own temporary file, then let the error out; not one byte of the old file changes.",
    ),
)
async def a_failed_save_leaves_nothing_behind(lab: SpineLab) -> None:
    """写到一半磁盘出错：旧内容还在，临时文件不在，错误不吞掉

    When the disk fails on the way, the old content stays, no temporary file does, and the error is not swallowed
    """
    rule = Rule("P3", "替换一个状态文件", "Replace a state file")
    garden, old, new = await lab.lay("bare"), value(lab.draw), value(lab.draw)
    await plant(garden, {"s": old})
    ran = await rule.gives(garden.asked(SAVE, [["s/state.json", new]], rules=[MARK]))
    strikes = _strikes(marked(ran), ("ENOSPC",))
    await plant(garden, {f"e{number}": old for number, _ in enumerate(strikes)})
    for number, strike in enumerate(strikes):
        rule = Rule(
            "P3",
            "替换状态文件，让某一步报出磁盘已满",
            "Replace a state file, and let some step say that the disk is full",
        )
        given = [[f"e{number}/state.json", new]]
        [told] = (await rule.gives(garden.asked(SAVE, given, rules=[strike]))).value
        found = rule.record(garden, f"e{number}/state.json")
        due = (old, new) if "raised" in told else (new,)
        rule.require(
            found in due,
            OLD_OR_NEW,
            Text("都不是，或者错误被吞掉了", "it is neither, or the error was swallowed"),
        )
        alone(rule, garden.tree(), f"e{number}")


def alone(rule: Rule, tree: Tree, folder: str) -> None:
    """Require that the state file is the only thing in its folder."""
    names = [name for name in tree if name.startswith(f"{folder}/")]
    rule.require(
        names == [f"{folder}/state.json"],
        Text("文件夹里只有状态文件", "the state file is alone in its folder"),
        Text(f"有 {len(names)} 个文件", f"{len(names)} files"),
    )


@check(
    "04-p03-place",
    rules=("P3",),
    dimension="durability",
    hint=Text(
        "目标是符号链接就拒绝；权限在临时文件上设好再替换；临时文件名要独一无二，两个写入者才不会共用一个。",
        "Refuse a symbolic link in the target's place; set the mode on the temporary file; give it a name of its own, so "
        "that two writers never share one.",
    ),
)
async def a_save_touches_nothing_but_its_file(lab: SpineLab) -> None:
    """符号链接被拒绝，权限是 0600，两个写入者互不干扰

    A symbolic link is refused, the mode is 0600, and two writers do not get in each other's way
    """
    garden = await lab.lay("bare")
    await _no_link_is_followed(garden, value(lab.draw), value(lab.draw))

    rule = Rule(
        "P3",
        "在组可写的 umask 下写一个新状态文件",
        "Save a new state file under a umask that lets groups write",
    )
    await garden.do(("folder", "fresh"))
    [told] = await rule.gives(garden.ask(SAVE, [["fresh/state.json", value(lab.draw)]]))
    rule.gave(told, SAVED)
    mode = garden.tree()["fresh/state.json"].mode
    rule.require(mode == 0o600, Text("权限 0600", "mode 0600"), Text(f"权限 {mode:04o}", f"mode {mode:04o}"))
    await _two_writers(garden, [value(lab.draw) for _ in range(2)])


async def _no_link_is_followed(garden: Garden, old: Any, new: Any) -> None:
    rule = Rule("P3", "状态文件的位置上是符号链接", "A symbolic link stands in the state file's place")
    await plant(garden, {"victim": old})
    for folder, target in (("l", "../victim/state.json"), ("d", "nowhere")):
        await garden.do(("folder", folder), ("link", f"{folder}/state.json", target))
    before = garden.tree()
    for folder in ("l", "d"):
        [told] = await rule.gives(garden.ask(SAVE, [[f"{folder}/state.json", new]]))
        rule.raised(told, "OSError")
    rule.unchanged(before, garden.tree())


async def _two_writers(garden: Garden, values: list[Any]) -> None:
    rule = Rule("P3", "两个线程同时写同一个状态文件", "Let two threads save one state file at once")
    await garden.do(("folder", "two"))
    hold = {"op": WRITES, "match": "two/*", "do": "hold", "until": 2, "seconds": 1}
    given = {"call": "atomic_write_json", "path": "two/state.json", "values": values}
    for told in await rule.gives(garden.ask(source_of(scenarios.at_once), given, rules=[hold])):
        rule.gave(told, Text("两次都成功", "both succeed"))
    found = rule.record(garden, "two/state.json")
    rule.require(
        found in values, Text("其中一份完整的内容", "one of the two, whole"), Text("不是", "it is not")
    )
    alone(rule, garden.tree(), "two")


@check(
    "04-p04-torn",
    rules=("P4",),
    dimension="durability",
    hint=Text(
        "追加之前先读：尾部撕裂就另存、截掉；只缺换行就补上；中间有坏行就停下，什么都不写。",
        "Read before you append: save a torn tail and cut it off, end a last line that only lacks its newline, and stop "
        "at a bad line before that, writing nothing.",
    ),
)
async def a_torn_tail_is_repaired_before_the_next_event(lab: SpineLab) -> None:
    """撕裂的尾部在下一次追加之前补好，撕下的字节另存；坏行则拒绝追加

    A torn tail is repaired before the next append, its bytes kept aside; a bad line refuses the append
    """
    garden = await lab.lay("bare")
    kind, text = word(lab.draw), f"撕裂 🧪 {word(lab.draw)}"
    whole = b"".join(event(number, kind) for number in (1, 2))
    for number, torn in enumerate(_torn(lab.draw, event(3, kind, text=text))):
        rule = Rule(
            "P4",
            f"最后一行只写下 {len(torn)} 字节，再追加一条",
            f"Of the last line {len(torn)} bytes were written; append an event",
        )
        name = f"t{number}/events.jsonl"
        await _append_over(rule, garden, name, whole + torn, kind=kind, text=text)
        unchanged = garden.raw(name).startswith(whole)
        what = Text("前面的事件一字节不动", "the events before stay as they are")
        rule.require(unchanged, what, Text("变了", "they changed"))
        rule.torn_is_kept(garden, name, len(whole), torn)
    rule = Rule(
        "P4", "最后一行完整但缺换行，再追加一条", "The last line lacks only its newline; append an event"
    )
    await _append_over(rule, garden, "n/events.jsonl", whole[:-1], kind=kind, text=text)
    ended = garden.raw("n/events.jsonl").startswith(whole)
    rule.require(ended, Text("补上换行", "it is ended"), Text("没有", "it is not"))
    await _bad_lines(garden, kind, whole)


async def _bad_lines(garden: Garden, kind: str, whole: bytes) -> None:
    """Require that a log with a bad line is refused, and left as it is."""
    for zh, en, raw in (
        ("第 1 行残缺", "line 1 is broken", b'{"sequence": 1\n' + event(2, kind)),
        ("编号重复", "a number stands twice", whole + event(2, kind)),
        ("最后一行完整却不是事件", "the last line is whole, and no event", whole + b"[]"),
    ):
        rule = Rule("P4", f"{zh}，再追加一条", f"{en[:1].upper()}{en[1:]}; append an event")
        await garden.write({"b/events.jsonl": raw})
        [told] = await rule.gives(garden.ask(APPEND, [["b/events.jsonl", kind, {}]]))
        rule.raised(told, "CorruptEventsError")
        same = garden.raw("b/events.jsonl") == raw
        rule.require(same, Text("文件不变", "the file stays"), Text("变了", "it changed"))


def _torn(draw: Random, line: bytes) -> list[bytes]:
    """Cut a line: in its first bytes, inside a character, somewhere, and just before its end; or lose it to NUL."""
    inside = line.index("🧪".encode()) + draw.randrange(1, 4)
    return [
        line[:1],
        line[:inside],
        line[: draw.randrange(2, len(line) - 2)],
        line[:-2],
        b"\0" * draw.randrange(4, 40),
    ]


async def _append_over(rule: Rule, garden: Garden, name: str, raw: bytes, *, kind: str, text: str) -> None:
    """Require that one more event is appended behind two whole ones, as one whole line, and given back."""
    await garden.write({name: raw})
    [told] = await rule.gives(garden.ask(APPEND, [[name, kind, {"text": text}]]))
    rule.gave(told, APPENDED)
    lines = rule.lines(garden, name)
    found = lines[-1]
    rule.require(
        len(lines) == 3 and (found.get("type"), found.get("text")) == (kind, text),
        Text("第 3 行是这个事件，单独一行", "line 3 is this event, alone on its line"),
        Text("不是", "it is not"),
    )
    rule.same(told["gave"], found, Text("返回写下的事件", "what was written is given back"))


@check(
    "04-p04-append",
    rules=("P4",),
    dimension="durability",
    hint=Text(
        "一个事件一次写入，写完 fsync 再返回；写入失败就截回原来的长度。",
        "One write for one event, fsync before returning; a failed write is cut back to where the log ended.",
    ),
)
async def an_append_is_one_durable_write(lab: SpineLab) -> None:
    """一个事件一次写入、落盘再返回；失败或被杀都不留碎片

    An event is one write, durable before it returns; neither a failure nor a kill leaves a fragment for the next one
    """
    garden, kind = await lab.lay("bare"), word(lab.draw)
    whole, fields = event(1, kind), {"text": word(lab.draw)}
    names = {letter: f"{letter}/events.jsonl" for letter in "afk"}
    await garden.write({**dict.fromkeys(names.values(), whole), "victim": whole})
    rule = Rule("P4", "追加一个事件，记下每个文件操作", "Append an event, and note every file operation")
    ran = await rule.gives(garden.asked(APPEND, [[names["a"], kind, fields]], rules=[MARK]))
    _one_durable_write(rule, [entry.get("op") for entry in marked(ran) if entry.get("path") == names["a"]])

    rule = Rule(
        "P4",
        "磁盘在写到一半时满，再追加一次",
        "Let the disk be full in the middle of a write, then append again",
    )
    full = {"op": WRITES, "match": "f/*", "do": "half,ENOSPC"}
    failed, then = await rule.gives(garden.ask(APPEND, [[names["f"], kind, fields]] * 2, rules=[full]))
    rule.raised(failed, "OSError")
    _two_events(rule, garden, names["f"], then)
    await _killed_in_the_middle(garden, names["k"], kind, fields)

    rule = Rule("P4", "日志的位置上是符号链接", "A symbolic link stands in the log's place")
    await garden.do(("folder", "l"), ("link", "l/events.jsonl", "../victim"))
    await rule.gives(garden.ask(APPEND, [["l/events.jsonl", kind, fields]]))
    same = garden.raw("victim") == whole
    rule.require(same, Text("链接指向的文件不变", "the file it leads to stays"), Text("变了", "it changed"))


def _one_durable_write(rule: Rule, ops: list[Any]) -> None:
    writes = [at for at, op in enumerate(ops) if op in WRITES]
    count = len(writes)
    rule.require(count == 1, Text("一次写入", "one write"), Text(f"{count} 次", f"{count} writes"))
    flushed = {"fsync", "fdatasync"} & set(ops[writes[0] :])
    rule.require(bool(flushed), Text("返回之前 fsync", "an fsync before it returns"), Text("没有", "none"))


async def _killed_in_the_middle(garden: Garden, name: str, kind: str, fields: dict[str, Any]) -> None:
    rule = Rule(
        "P4",
        "在写到一半时杀死进程，再读，再追加",
        "Kill the process in the middle of a write, then read, then append",
    )
    strike = {"op": WRITES, "match": name, "do": "half,kill"}
    ran = await garden.asked(APPEND, [[name, kind, fields]], rules=[strike], may_die=True)
    rule.died(ran, "写入", "the write")
    before = Text("读到之前的历史", "the history before it is read")
    rule.same(await garden.ask(source_of(scenarios.history), name), {"gave": [kind]}, before)
    [told] = await rule.gives(garden.ask(APPEND, [[name, kind, fields]]))
    _two_events(rule, garden, name, told)


def _two_events(rule: Rule, garden: Garden, name: str, told: dict[str, Any]) -> None:
    rule.gave(told, APPENDED)
    count = len(rule.lines(garden, name))
    rule.require(
        count == 2,
        Text("日志是两个完整的事件", "the log holds two whole events"),
        Text(f"{count} 个", f"{count}"),
    )


@check(
    "04-p05",
    rules=("P5",),
    dimension="claim",
    hint=Text(
        "1、1.0、true 是三个值；列表的顺序是值的一部分；NaN 和非文本的键要拒绝，不能悄悄换成别的。",
        "1, 1.0 and true are three values; the order of a list is part of it; NaN and keys that are no text are refused, "
        "never quietly turned into something else.",
    ),
)
async def any_value_changes_the_digest(lab: SpineLab) -> None:
    """摘要分得清任何两个值，只放过键序和空白；不是 JSON 的值被拒绝

    The digest tells any two values apart but for key order and white space; what is no JSON is refused
    """
    rule = Rule("P5", "对一批很像的值取摘要", "Digest values that look alike")
    one = value(lab.draw)
    near = [one, shuffled(lab.draw, one), 1, 1.0, True, "1", None, "null", [], {}, [1, 2], [2, 1], *ACCENTS]
    garden = await lab.lay("bare")
    texts = [
        json.dumps(found, indent=indent) for found, indent in zip(near, [None, 1] * len(near), strict=False)
    ]
    told = await rule.gives(garden.ask(source_of(scenarios.digests), texts))
    rule.require(
        told == [digest(json.loads(text)) for text in texts],
        Text("每个摘要都按规范算出", "each digest is computed as the rule says"),
        Text("有的不是", "one is not"),
    )
    rule = Rule(
        "P5", "对 NaN、无穷、非文本的键、集合取摘要", "Digest NaN, infinity, keys that are no text, a set"
    )
    odd = await rule.gives(garden.ask(source_of(scenarios.odd_digests)))
    refused = [bool({"ValueError", "TypeError"} & set(ending.get("raised", ()))) for ending in odd]
    rule.require(
        all(refused),
        Text("ValueError 或 TypeError", "ValueError or TypeError"),
        Text("有的得到了摘要", "one has a digest"),
    )
