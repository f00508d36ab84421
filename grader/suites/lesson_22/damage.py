"""What stops a read, and at which line: S12, S15, S16. Also what this store cannot see."""
# ruff: noqa: D400 - a docstring is the learner's title

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from grader.lab import STUDENT_ERRORS, CorruptLog, Event
from grader.suites.check import Text
from grader.suites.expect import Trial, show_error, show_outcome
from grader.suites.lesson_22 import scenarios
from grader.suites.lesson_22.drawn import LOG, line, log, renumbered, some_data, some_events, some_type, word
from grader.suites.lesson_22.judge import judge
from grader.suites.lesson_22.scenarios import source_of
from grader.suites.lesson_22.suite import check
from grader.suites.lesson_22.tail import summary

if TYPE_CHECKING:
    from grader.lab import Lab

Piece = Callable[[int, str], bytes]
"""Makes one line, without its newline, from the number that is due there and a word that must not be echoed."""


def _record(sequence: str, rest: str = '"type":"{word}","data":1') -> Piece:
    """Make a record whose number and remaining fields are given as text."""
    return lambda number, secret: (
        "{" + sequence.replace("N", str(number)) + "," + rest.replace("{word}", secret) + "}"
    ).encode()


def _data(value: str) -> Piece:
    return _record('"sequence":N', '"type":"{word}","data":' + value)


DAMAGE: dict[str, tuple[str, Piece]] = {
    "不是 JSON 的文字": ("text that is not JSON", lambda _, secret: secret.encode()),
    "NaN": ("NaN", _data("NaN")),
    "Infinity": ("Infinity", _data('{"x":Infinity}')),
    "-Infinity": ("-Infinity", _data("[-Infinity]")),
    "不合法的 UTF-8": (
        "bytes that are not UTF-8",
        lambda n, w: _data('"?"')(n, w).replace(b"?", b"\xff\xfe"),
    ),
    "半个 UTF-8 字符": ("half a UTF-8 character", lambda n, w: _data('"?"')(n, w).replace(b"?", b"\xe2\x82")),
    "编码成 UTF-8 的代理字符": (
        "an encoded surrogate",
        lambda n, w: _data('"?"')(n, w).replace(b"?", b"\xed\xa0\x80"),
    ),
    "字节序标记": ("a byte order mark", lambda n, w: b"\xef\xbb\xbf" + _data("1")(n, w)),
    "一串 NUL 字节": ("a run of NUL bytes", lambda _n, _w: b"\x00" * 8),
    "一个数组": ("an array", lambda n, w: f'[{n},"{w}"]'.encode()),
    "一个字符串": ("a string", lambda _, secret: f'"{secret}"'.encode()),
    "null": ("null", lambda _n, _w: b"null"),
    "编号是 true": ("the number true", _record('"sequence":true')),
    "编号带小数点": ("a number with a fraction", _record('"sequence":N.0')),
    "编号是指数写法": ("a number with an exponent", _record('"sequence":Ne0')),
    "编号是字符串": ("a number in quotes", _record('"sequence":"N"')),
    "没有编号": ("no number", _record('"number":N')),
    "没有 type": ("no type", _record('"sequence":N', '"kind":"{word}","data":1')),
    "type 不是字符串": ("a type that is no string", _record('"sequence":N', '"type":["{word}"],"data":1')),
    "type 为空白": ("a blank type", _record('"sequence":N', '"type":" \\t ","data":"{word}"')),
    "嵌套炸弹": ("a nesting bomb", _data("[" * 100_000 + "]" * 100_000)),
    "过长的整数": ("an integer too long", _data("9" * 5000)),
    "一行两条记录": ("two records on one line", lambda n, w: _data("1")(n, w) + _data("2")(n + 1, w)),
    "字符串里的裸换行": ("a raw newline in a string", lambda n, w: _data('"?"')(n, w).replace(b"?", b"a\nb")),
}


@check(
    "22-s15-kinds",
    rules=("S15",),
    dimension="diagnosis",
    hint=Text(
        "json.loads 会放过 NaN、BOM 和超深嵌套的 RecursionError；isinstance(True, int) 为真。逐样检查，都归到这一行，并 raise … from None。",
        "json.loads lets NaN pass, nesting raises RecursionError, and isinstance(True, int) is true. Check each, report "
        "each as this line, and raise ... from None.",
    ),
)
async def every_kind_of_damage_names_its_line(lab: Lab) -> None:
    """各种损坏都在它的物理行停下，中英文都写明行号，不回显内容

    Every kind of damage stops the read at its physical line, named in both languages, echoing nothing
    """
    events = some_events(lab.draw, 5)
    for zh, (en, piece) in DAMAGE.items():
        at = lab.draw.randrange(4)
        trial = Trial("S15", f"第 {at + 1} 行：{zh}；读取", f"Line {at + 1} holds {en}; read")
        secret = word(lab.draw)
        lab.plant(LOG, log(events[:at]) + piece(at + 1, secret) + b"\n" + log(events[at + 1 :]))
        await trial.corrupt_at(lab.store().read(), at + 1, hidden=(secret,))


@check(
    "22-s15-ended",
    rules=("S14", "S15"),
    dimension="recovery",
    hint=Text(
        "最后一行只要有换行，就不是撕裂：照损坏处理。",
        "A last line that has its newline is not torn: it is corruption.",
    ),
)
async def a_bad_last_line_that_was_ended_is_corruption(lab: Lab) -> None:
    """有换行的最后一行坏了，是损坏，不是撕裂

    A bad last line that has its newline is corruption, not a torn tail
    """
    events = some_events(lab.draw, 3)
    last = line(events[-1])
    for zh, en, piece in (
        ("半条记录", "half a record", last[: lab.draw.randrange(1, len(last) - 2)]),
        ("NUL 字节", "NUL bytes", b"\x00" * 8),
        ("半个字符", "half a character", last[:-2] + b"\xe2\x82"),
    ):
        trial = Trial(
            "S15", f"最后一行是{zh}，带着换行；读取", f"The last line is {en} with its newline; read"
        )
        lab.plant(LOG, log(events[:-1]) + piece + b"\n")
        await trial.corrupt_at(lab.store().read(), 3)


@check(
    "22-s15-numbers",
    rules=("S15",),
    dimension="integrity",
    hint=Text(
        "编号必须等于已读事件数加一；消息里写出应有的编号和实际的编号。",
        "The number must be one more than the events read so far; say in the message which was expected and which was "
        "found.",
    ),
)
async def a_wrong_number_says_expected_and_found(lab: Lab) -> None:
    """编号不对时指出行号，并说出应有的和实际的编号

    A wrong number is refused at its line, and the message says which was expected and which was found
    """
    for zh, en, wrong in (
        ("跳过一个编号", "skips a number", lambda due: due + 1),
        ("重复上一个编号", "repeats the number before", lambda due: due - 1),
        ("跳过很多编号", "skips many numbers", lambda due: due + lab.draw.randrange(10, 90)),
        ("是 0", "is 0", lambda _: 0),
        ("是负数", "is negative", lambda due: -due),
    ):
        events = some_events(lab.draw, 6)
        at = lab.draw.randrange(2, 5)
        found = wrong(at + 1)
        trial = Trial("S15", f"第 {at + 1} 行的编号{zh}；读取", f"The number on line {at + 1} {en}; read")
        lab.plant(LOG, log([*events[:at], renumbered(events[at], found), *events[at + 1 :]]))
        error = await trial.corrupt_at(lab.store().read(), at + 1, hidden=(events[at].type,))
        reason = re.sub(r"第 \d+ 行|line \d+", "", error.text)
        for number in (at + 1, found):
            trial.require(
                re.search(rf"(?<![\d-]){number}(?!\d)", reason) is not None,
                Text(f"消息里有编号 {number}", f"the message says {number}"),
                Text("没有", "it does not"),
            )


@check(
    "22-s15-keys",
    rules=("S15",),
    dimension="integrity",
    hint=Text(
        "json.loads 遇到重复的键只留最后一个。用 object_pairs_hook 数一数。",
        "json.loads keeps only the last of two equal keys. Count them in object_pairs_hook.",
    ),
)
async def a_doubled_key_is_refused(lab: Lab) -> None:
    """同一个键出现两次的记录被拒绝，不论留下的是哪一个

    A record in which a key stands twice is refused, whichever of the two would win
    """
    events = some_events(lab.draw, 4)
    kind = some_type(lab.draw)
    for zh, en, fields in (
        ("sequence", "sequence", f'"sequence":9,"sequence":2,"type":"{kind}","data":1'),
        ("type", "type", f'"sequence":2,"type":"x","type":"{kind}","data":1'),
    ):
        trial = Trial("S15", f"第 2 行的 {zh} 出现两次；读取", f"On line 2 {en} stands twice; read")
        lab.plant(LOG, line(events[0]) + b"{" + fields.encode() + b"}\n" + log(events[2:]))
        await trial.corrupt_at(lab.store().read(), 2, hidden=(kind,))


@check(
    "22-s15-bytes",
    rules=("S14", "S15"),
    dimension="diagnosis",
    hint=Text(
        "看失败消息里的行号和字节：多半是某一种坏行被当成了撕裂，或者行号按记录数而不是按换行数。",
        "Look at the line and byte in the message: most often one kind of bad line passes for a torn tail, or lines "
        "are counted by records instead of newlines.",
    ),
)
async def every_damaged_byte_is_judged(lab: Lab) -> None:
    """较早的记录里任何一位翻转：要么在那一行停下，要么仍是合法记录

    Flip any bit of an earlier record: the read stops at that line, unless it is a legal record still
    """
    events = [Event(number, word(lab.draw), {"字": [True, word(lab.draw)]}) for number in (1, 2, 3)]
    raw, start = log(events), len(line(events[0]))
    data_key = raw.index(
        b'"data"', start
    )  # S15 does not say that data must be there, so its name is left alone
    places = [at for at in range(start, start + len(line(events[1]))) if not data_key <= at < data_key + 6]
    changes = [(at, raw[at] ^ (1 << bit)) for at in places for bit in range(8)]
    given = {"name": LOG, "base": raw.hex(), "changes": changes}
    trial = Trial("S15", "逐位翻转第 2 条记录再读", "Flip each bit of record 2, one at a time, and read")
    told = await trial.gives(lab.scenario(source_of(scenarios.read_each), given))
    for (at, byte), outcome in zip(changes, told, strict=True):
        _judged(raw[:at] + bytes([byte]) + raw[at + 1 :], at, outcome)


def _judged(raw: bytes, at: int, outcome: dict[str, Any]) -> None:
    """Compare one read with what the rules say about these bytes."""
    verdict = judge(raw)
    trial = Trial(
        "S15", f"翻转偏移 {at} 处字节的一位再读", f"Flip one bit of the byte at offset {at} and read"
    )
    found = outcome.get("error", ["no error"])[0]
    place = f"{found}, line {outcome.get('line')}"
    if verdict.bad_line is None:
        trial.require(
            outcome == summary(verdict.events),
            Text("仍是合法记录，照读", "it is a legal record still, and is read"),
            Text(
                place if "error" in outcome else "读到的不同",
                place if "error" in outcome else "what was read differs",
            ),
        )
    else:
        trial.require(
            "CorruptLogError" in outcome.get("error", ()) and outcome.get("line") == verdict.bad_line,
            Text(f"在第 {verdict.bad_line} 行停下", f"it stops at line {verdict.bad_line}"),
            Text(
                place if "error" in outcome else "没有报错",
                place if "error" in outcome else "nothing was raised",
            ),
        )


@check(
    "22-s15-unseen",
    rules=("S15",),
    dimension="integrity",
    hint=Text(
        "这不是你的错误，而是这种格式的边界：合法改成合法，编号看不出来。作业里的哈希链能看出来。",
        "This is no mistake of yours but the limit of the format: numbers cannot see a legal value turned into another. "
        "The hash chain of the homework can.",
    ),
)
async def a_legal_change_is_not_seen(lab: Lab) -> None:
    """合法记录被改成另一条合法记录：这个 store 看不出来，照读（哈希链才能发现）

    A record changed into another legal one is not seen by this store and is read (a hash chain would see it)
    """
    events = some_events(lab.draw, 4)
    first, kind = word(lab.draw), some_type(lab.draw)
    for zh, en, old, new in (
        ("文字里的一个字母", "a letter of a text", first, first[:-1] + ("0" if first[-1] != "0" else "1")),
        ("一个数字", "a digit of a number", 125, 925),
        ("true 改成 false", "true into false", True, False),
    ):
        trial = Trial("S15", f"改动第 2 条的数据（{zh}）；读取", f"Change the data of record 2 ({en}); read")
        history = [events[0], Event(2, kind, {"value": old}), *events[2:]]
        changed = [events[0], Event(2, kind, {"value": new}), *events[2:]]
        store = lab.store()
        lab.plant(LOG, log(history))
        trial.same_events(await trial.gives(store.read()), history)
        lab.plant(LOG, log(changed))
        trial.same_events(await trial.gives(store.read()), changed)


@check(
    "22-s15-append",
    rules=("S11", "S15"),
    dimension="integrity",
    hint=Text(
        "追加前的那次读取若发现损坏，就把错误交给调用者，一个字节也不写；也别记下这时的文件大小，下一次追加要重新看。",
        "When the read before an append finds corruption, hand the error to the caller and write nothing. Do not take "
        "note of the file's size either: the next append has to look again.",
    ),
)
async def nothing_is_appended_to_a_damaged_log(lab: Lab) -> None:
    """损坏的日志不能再追加：报告那一行，文件一字节不变

    Nothing is appended to a damaged log: its line is reported and no byte changes
    """
    events = some_events(lab.draw, 4)
    for zh, en, raw in (
        ("坏行", "a bad line", log(events[:2]) + b"not json\n" + log(events[2:])),
        ("缺号", "a gap", log(events[:2]) + log(events[3:])),
        ("重号", "a duplicate", log(events[:2]) + line(events[1])),
        (
            "坏行，而且尾部撕裂",
            "a bad line and a torn tail",
            log(events[:2]) + b"not json\n" + line(events[2])[:9],
        ),
    ):
        trial = Trial(
            "S15", f"日志第 3 行有{zh}，追加一个事件", f"Line 3 of the log has {en}; append an event"
        )
        lab.plant(LOG, raw)
        await trial.corrupt_at(lab.store().append(some_type(lab.draw), some_data(lab.draw)), 3)
        trial.require(
            lab.names() == [LOG] and trial.bytes_on_disk(lab) == raw,
            Text("磁盘上什么都没变", "nothing changed on disk"),
            Text("变了", "something changed"),
        )
    await _damaged_meanwhile(lab, events)


async def _damaged_meanwhile(lab: Lab, events: list[Event]) -> None:
    """Let one store meet the damage twice: having seen it once, it must not take the file for what it left."""
    trial = Trial(
        "S15",
        "用一个 store 追加两条，文件末尾被加上一行坏行，再用它追加两次",
        "Append 2 with a store; a bad line is added to the file; append twice more with it",
    )
    bad, name = b"not json\n", f"{word(lab.draw)}.jsonl"
    appends = [[event.type, event.data] for event in events]
    given = {"name": name, "appends": appends[:2], "damage": bad.hex(), "then": appends[2:]}
    for outcome in await trial.gives(lab.scenario(source_of(scenarios.append_to_damage), given)):
        trial.require(
            "CorruptLogError" in outcome.get("error", ()) and outcome["line"] == 3,
            Text("两次都在第 3 行报 CorruptLogError", "both times CorruptLogError at line 3"),
            show_outcome(outcome),
        )
    raw = trial.bytes_on_disk(lab, name)
    trial.require(
        raw.endswith(bad) and trial.records(raw.removesuffix(bad)) == events[:2],
        Text("磁盘上什么都没变", "nothing changed on disk"),
        Text("变了", "something changed"),
    )


@check(
    "22-s12",
    rules=("S12",),
    dimension="integrity",
    hint=Text(
        "按字节 b'\\n' 切开文件；str.splitlines 和文本模式会在别的字符处断行，或改写 \\r。",
        "Split the bytes at b'\\n'; str.splitlines and text mode break at other characters too, or rewrite \\r.",
    ),
)
async def only_the_newline_byte_ends_a_line(lab: Lab) -> None:
    """只有字节 0A 结束一行：U+2028、U+0085 是数据，0D 是空白

    Only the byte 0A ends a line: U+2028 and U+0085 are data, and 0D is white space
    """
    text = "a\u2028b\u2029c\u0085d" + word(lab.draw)
    events = [Event(number, some_type(lab.draw), {"m": text, "n": number}) for number in (1, 2, 3)]
    raw = log(events)
    for zh, en, planted in (
        ("数据里有 U+2028、U+2029、U+0085", "U+2028, U+2029 and U+0085 stand in the data", raw),
        ("每行以 \\r\\n 结束", "each line ends with \\r\\n", raw.replace(b"\n", b"\r\n")),
        (
            "记录里有作为空白的 \\r",
            "\\r stands as white space inside the records",
            raw.replace(b',"type"', b',\r"type"'),
        ),
    ):
        trial = Trial("S12", f"{zh}；读取", f"{en[0].upper()}{en[1:]}; read")
        lab.plant(LOG, planted)
        trial.same_events(await trial.gives(lab.store().read()), events)
        lab.plant(LOG, planted + b"not json\n")
        await trial.corrupt_at(lab.store().read(), 4)


@check(
    "22-s12-legal",
    rules=("S12", "S15"),
    dimension="integrity",
    hint=Text(
        "合法 JSON 的写法不止一种：空白、键的次序、转义都随意；64 位以上的整数要原样读回。",
        "Legal JSON is written in many ways: spacing, key order and escapes are free, and integers beyond 64 bits come "
        "back exactly.",
    ),
)
async def every_legal_spelling_is_read(lab: Lab) -> None:
    """同一条记录的各种合法写法都能读，值一点不变

    Every legal spelling of a record is read, and its values come back exactly
    """
    kind, text, number = some_type(lab.draw), word(lab.draw), 2**64 + lab.draw.getrandbits(60)
    spellings: tuple[tuple[str, Any], ...] = (
        (f' {{ "sequence" : 1 ,\t"type" : "{kind}" , "data" : {{ }} }} ', {}),
        (f'{{"data":{{"n":{number}}},"type":"{kind}","sequence":2}}', {"n": number}),
        (f'{{"sequence":3,"type":"{kind}","data":"\\u00e9\\ud83e\\uddea\\/ {text}"}}', f"é🧪/ {text}"),
        (f'{{"sequence":4,"type":"{kind}","data":{{"m":"\\udcb2"}}}}', {"m": "\udcb2"}),
        (f'{{"sequence":5,"type":"{kind}","data":null}}', None),
        (f'{{"sequence":6,"type":"{kind}","data":{"[" * 50}{"]" * 50}}}', _nested(50)),
        (f'{{"sequence":7,"type":"{kind}","data":{{"":-0.5,"e":1e2}}}}', {"": -0.5, "e": 100.0}),
    )
    expected = [Event(place, kind, data) for place, (_, data) in enumerate(spellings, start=1)]
    trial = Trial("S12", "记录用了各种合法写法；读取", "The records are spelled in every legal way; read")
    lab.plant(LOG, "".join(f"{spelled}\n" for spelled, _ in spellings).encode())
    trial.same_events(await trial.gives(lab.store().read()), expected)


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


@check(
    "22-s16",
    rules=("S16",),
    dimension="diagnosis",
    hint=Text(
        "拒绝空行或跳过空行都可以，但行号必须按物理行数：跳过的行也要数。",
        "Refusing blank lines and skipping them are both accepted, but lines are counted physically: a skipped one "
        "counts too.",
    ),
)
async def blank_lines_are_counted(lab: Lab) -> None:
    """空行要么被拒绝并指出行号，要么跳过；行号始终按物理行

    A blank line is refused with its number, or skipped; lines are counted physically either way
    """
    for blank in (b"\n", b"\r\n", b" \t\n"):
        events = some_events(lab.draw, 3)
        at = lab.draw.randrange(1, 3)
        stops_at = await _meets_blank(lab, events, at, blank)
        en = f"Line {at + 1} is blank and the next one is bad; read"
        trial = Trial("S16", f"第 {at + 1} 行是空行，下一行是坏行；读取", en)
        lab.plant(LOG, log(events[:at]) + blank + b"not json\n" + log(events[at:]))
        await trial.corrupt_at(lab.store().read(), stops_at)


async def _meets_blank(lab: Lab, events: list[Event], at: int, blank: bytes) -> int:
    """Read a log with a blank line after `at` records; give the line at which this store stops if the next is bad."""
    trial = Trial("S16", f"第 {at + 1} 行是空行；读取", f"Line {at + 1} is blank; read")
    lab.plant(LOG, log(events[:at]) + blank + log(events[at:]))
    try:
        trial.same_events(await lab.store().read(), events)
    except CorruptLog as error:
        trial.names_line(error, at + 1)
        return at + 1
    except NotImplementedError:
        raise
    except STUDENT_ERRORS as error:
        expected = Text("CorruptLogError，或跳过空行", "CorruptLogError, or the line skipped")
        raise trial.failure(expected, show_error(error)) from None
    return at + 2  # it skips
