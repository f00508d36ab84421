"""Builds the corruption zoo: small damaged logs, and what a reader has to say about each (docs/formats.md).

    python make_zoo.py           writes the logs and verdicts.json beside this file
    python make_zoo.py --check   writes nothing; exit 1 when a file differs from what would be written

The verdicts are written down here by hand, from the format; no reader was asked. Standard library only, same bytes
on every run.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent


class Specimen(NamedTuple):
    """One log and its verdict.

    `kind` is sound, torn or corrupt. `good` holds the records that count, each ended by a newline unless it is
    the last one and its newline is missing; `rest` is what follows: the torn tail, or everything from the damaged
    line on. `rows` are the known faults that it stands for; `zh` and `en` say what happened to the file.
    """

    name: str
    kind: str
    good: bytes
    rest: bytes
    rows: tuple[int, ...]
    zh: str
    en: str

    @property
    def content(self) -> bytes:
        return self.good + self.rest

    def verdict(self) -> dict[str, object]:
        """The right answer: lines from 1, everything else in bytes or events; line is null unless corrupt."""
        missing_newline = self.kind == "sound" and bool(self.good) and not self.good.endswith(b"\n")
        return {
            "kind": self.kind,
            "events": self.good.count(b"\n") + missing_newline,
            "line": self.good.count(b"\n") + 1 if self.kind == "corrupt" else None,
            "good_bytes": len(self.good),
            "torn_bytes": len(self.rest) if self.kind == "torn" else 0,
            "missing_newline": missing_newline,
            "known_faults": list(self.rows),
            "zh": self.zh,
            "en": self.en,
        }


# --- The story in every log: one task, created, started, completed ---


def record(sequence: str | int, type_: str, data: str) -> bytes:
    """One record without its newline; the pieces are taken as they are, so that each can be wrong."""
    return f'{{"sequence":{sequence},"type":{type_},"data":{data}}}'.encode()


def created(title: str) -> bytes:
    return record(1, '"todo_created"', f'{{"todo_id":"tea","title":"{title}"}}')


def started(extra: str = "") -> bytes:
    return record(2, '"todo_started"', f'{{"todo_id":"tea","expected_from":"pending"{extra}}}')


E1 = created("泡一壶茉莉花茶")
E2 = started()
E3 = record(3, '"todo_completed"', '{"todo_id":"tea","expected_from":"in_progress"}')
NL = b"\n"
STARTED_DATA = '{"todo_id":"tea","expected_from":"pending"}'


def ended(*records: bytes) -> bytes:
    return b"".join(record + NL for record in records)


def sound(name: str, content: bytes, zh: str, en: str, *rows: int) -> Specimen:
    return Specimen(name, "sound", content, b"", rows, zh, en)


def torn(name: str, good: bytes, tail: bytes, zh: str, en: str, *rows: int) -> Specimen:
    return Specimen(name, "torn", good, tail, rows, zh, en)


def corrupt(name: str, good: bytes, rest: bytes, zh: str, en: str, *rows: int) -> Specimen:
    return Specimen(name, "corrupt", good, rest, rows, zh, en)


# --- Sound: it may look odd, and every record counts ---

SOUND = [
    sound(
        "sound",
        ended(E1, E2, E3),
        "完好的日志：建立、开始、完成。",
        "A sound log: created, started, completed.",
    ),
    sound(
        "empty",
        b"",
        "文件在，内容为零字节：还没有历史。",
        "The file is there and holds zero bytes: no history yet.",
        49,
    ),
    sound(
        "missing-newline",
        ended(E1) + E2,
        "最后一条记录写全了，只缺行尾的换行。",
        "The last record is whole; only its newline never arrived.",
        47,
    ),
    sound(
        "missing-newline-after-carriage-return",
        ended(E1) + E2 + b"\r",
        "最后一条记录完整，停在回车符之后、换行符之前。",
        "The last record is whole and stops after the carriage return, before the newline.",
        47,
    ),
    sound(
        "crlf",
        ended(E1 + b"\r", E2 + b"\r"),
        "一次检出把 LF 换成了 CRLF；回车在 JSON 里是空白，记录不变。",
        "A checkout turned LF into CRLF; a carriage return is white space in JSON, the records are the same.",
        11,
    ),
    sound(
        "line-separator-in-text",
        ended(created("泡茶\u2028再等三分钟"), E2),
        "标题里有未转义的 U+2028：它是数据，不是行尾。",
        "The title holds a raw U+2028: data, not the end of a line.",
        4,
    ),
    sound(
        "paragraph-separator-in-text",
        ended(created("泡茶\u2029再等三分钟"), E2),
        "标题里有未转义的 U+2029：它是数据，不是行尾。",
        "The title holds a raw U+2029: data, not the end of a line.",
        5,
    ),
    sound(
        "next-line-in-text",
        ended(created("泡茶\u0085再等三分钟"), E2),
        "标题里有未转义的 U+0085；按 splitlines 分行的读者会把这条记录切成两半。",
        "The title holds a raw U+0085; a reader that uses splitlines cuts this record in two.",
        5,
    ),
    sound(
        "escaped-newline-in-text",
        ended(created("泡茶\\n\\u000b\\u000c再等三分钟"), E2),
        "标题里的换行、垂直制表和换页都写成转义：仍是一行。",
        "Newline, vertical tab and form feed in the title are escaped: still one line.",
        5,
        7,
    ),
    sound(
        "escaped-lone-surrogate",
        ended(created("\\udcb2"), E2),
        "标题是转义写成的半个代理对：能读出，显示时要当心。",
        "The title is half of a surrogate pair, escaped: it reads, and showing it takes care.",
        19,
    ),
    sound(
        "integer-past-64-bits",
        ended(E1, started(',"size":18446744073709551617')),
        "数据里有大于 2^64 的整数：必须一位不差地读回。",
        "The data hold an integer above 2^64: it must come back exactly.",
        27,
    ),
    sound(
        "integer-of-4300-digits",
        ended(E1, started(',"size":' + "9" * 4300)),
        "整数有 4,300 位：恰好在上限之内。",
        "An integer of 4,300 digits: just within the limit.",
        27,
    ),
    sound(
        "nesting-at-the-limit",
        ended(
            E1,
            record(
                2,
                '"todo_started"',
                '{"todo_id":"tea","expected_from":"pending","deep":' + "[" * 99 + "]" * 99 + "}",
            ),
        ),
        "data 恰好嵌套 100 层：还是合法的。",
        "The data are nested exactly 100 levels deep: still legal.",
        28,
    ),
    sound(
        "brackets-in-text",
        ended(created("[" * 300 + "{" * 300), E2),
        "标题里有 600 个括号：字符串里的括号不算嵌套。",
        "The title holds 600 brackets: brackets in a string do not nest.",
        28,
    ),
    sound(
        "free-layout",
        ended(
            b'\t{ "data" : {"title": "tea", "todo_id": "tea"} , "type":"todo_created" ,"sequence" : 1 } ', E2
        ),
        "键的次序不同，还多了空白：仍是同一条记录。",
        "Other key order and additional white space: still the same record.",
    ),
    sound(
        "a-changed-letter-unseen",
        ended(E1.replace("壶".encode(), "杯".encode()), E2, E3),
        "标题改了一个字，记录仍然合法：这种日志看不出来，要靠哈希链。",
        "One character of the title was changed and the record is still legal: this log cannot see it; a hash chain can.",
    ),
    sound(
        "a-lost-ending-unseen",
        ended(E1, E2),
        "最后一整行被删掉了：剩下的历史自洽，看不出少了什么。",
        "The whole last line was deleted: what is left agrees with itself, and nothing looks missing.",
    ),
]

# --- Torn: the last write was cut short; everything before it counts ---

TORN = [
    torn(
        "torn-record",
        ended(E1),
        b'{"seq',
        "第二条记录只写下五个字节，进程就停了。",
        "Five bytes of the second record were written when the process stopped.",
        45,
    ),
    torn(
        "torn-first-record",
        b"",
        b'{"seq',
        "第一条记录就没有写完：历史为空，残留五个字节。",
        "Not even the first record was finished: no history, five bytes left over.",
        48,
        50,
    ),
    torn(
        "torn-before-last-byte",
        ended(E1),
        E2[:-1],
        "第二条记录只差最后一个右括号。",
        "The second record lacks only its last brace.",
        45,
    ),
    torn(
        "torn-inside-a-character",
        ended(E1),
        record(2, '"todo_started"', '{"note":"茶')[:-1],
        "写到一个汉字的第二个字节就断了：末尾不是完整的 UTF-8。",
        "Cut behind the second byte of a three-byte character: the tail is no whole UTF-8.",
        39,
    ),
    torn(
        "torn-inside-a-four-byte-character",
        ended(E1),
        record(2, '"todo_started"', '{"note":"🍵')[:-1],
        "写到一个四字节字符的第三个字节就断了。",
        "Cut behind the third byte of a four-byte character.",
        39,
    ),
    torn(
        "torn-inside-an-escape",
        ended(E1),
        record(2, '"todo_started"', '{"note":"\\u26')[:-1],
        "断在 \\u 转义的中间。",
        "Cut in the middle of a \\u escape.",
        45,
    ),
    torn(
        "nul-tail",
        ended(E1),
        bytes(512),
        "断电之后，文件变长了，新增的部分全是零字节。",
        "After a power cut the file is longer, and what was added is all NUL bytes.",
        3,
    ),
    torn(
        "torn-record-then-nuls",
        ended(E1),
        b'{"sequence":2,"ty' + bytes(64),
        "记录写了一半，后面补着零字节。",
        "Half a record, then NUL bytes.",
        3,
    ),
    torn(
        "white-space-tail",
        ended(E1),
        b"   ",
        "末尾只有三个空格，没有换行。",
        "Three spaces at the end, and no newline.",
        48,
    ),
    torn(
        "glued-records-unterminated",
        ended(E1),
        E2 + E3,
        "最后一行没有换行，里面粘着两条完整的记录：整段算撕裂尾部，字节数写进报告。",
        "The last line has no newline and holds two whole records glued together: all of it is torn tail, and its bytes are counted.",
        42,
        47,
    ),
    torn(
        "glued-after-a-fragment-unterminated",
        ended(E1),
        b'{"sequence":2,"ty' + E2,
        "旧的半条记录后面直接粘上了新记录，也没有换行。",
        "A new record was glued straight onto an old fragment, without a newline.",
        42,
    ),
    torn(
        "nan-unterminated",
        ended(E1),
        started(',"size":NaN'),
        "没有换行的最后一段里有 NaN：不能严格解析，算撕裂尾部。",
        "The unterminated last piece holds NaN: no strict JSON, so it is a torn tail.",
        16,
    ),
    torn(
        "doubled-key-unterminated",
        ended(E1),
        started(',"todo_id":"cup"'),
        "没有换行的最后一段里有重复的键：不能严格解析，算撕裂尾部。",
        "The unterminated last piece has a doubled key: no strict JSON, so it is a torn tail.",
        22,
    ),
    torn(
        "nesting-bomb-unterminated",
        ended(E1),
        record(2, '"todo_started"', "[" * 5000),
        "没有换行的最后一段嵌套极深：读取不能崩溃。",
        "The unterminated last piece is nested far too deep: reading must not crash.",
        28,
    ),
    torn(
        "byte-order-mark-alone",
        b"",
        b"\xef\xbb\xbf",
        "文件里只有一个 BOM。",
        "The file holds nothing but a byte order mark.",
        8,
    ),
    torn(
        "carriage-returns-alone",
        b"",
        E1 + b"\r" + E2 + b"\r",
        "行尾全变成了单独的回车：没有一个换行，所以整个文件是一段撕裂尾部。",
        "Every line ending became a lone carriage return: with no newline at all the whole file is one torn tail.",
        11,
    ),
]

# --- Corrupt: bytes that are no JSON ---

NOT_JSON = [
    corrupt(
        "nul-run-between-records",
        ended(E1),
        bytes(8) + ended(E2, E3),
        "第二行开头多出一串零字节；只读到这里就停，会悄悄丢掉后面。",
        "A run of NUL bytes before the second record; whoever just stops there silently loses the rest.",
        1,
    ),
    corrupt(
        "nul-line",
        ended(E1),
        ended(bytes(16), E2),
        "第二行整行是零字节。",
        "The second line is all NUL bytes.",
        1,
    ),
    corrupt(
        "nul-inside-a-record",
        ended(E1),
        ended(E2[:30] + bytes(8) + E2[38:], E3),
        "第二条记录中间有八个字节变成了零。",
        "Eight bytes in the middle of the second record became NUL.",
        1,
    ),
    corrupt(
        "nul-first-line",
        b"",
        ended(bytes(len(E1)), E2),
        "第一行的位置还在，内容全是零。",
        "The first line kept its place; its content is all NUL.",
        1,
    ),
    corrupt(
        "fragment-in-the-middle",
        ended(E1),
        ended(b'{"seq', E2),
        "中间一行只有半条记录，后面还有正常的行：不是撕裂尾部。",
        "A line in the middle is half a record, and good lines follow: no torn tail.",
        32,
        33,
    ),
    corrupt(
        "fragment-ended",
        ended(E1),
        ended(b'{"seq'),
        "最后一行是半条记录，却有换行：写完的坏行不是撕裂尾部。",
        "The last line is half a record, yet ended: a finished bad line is no torn tail.",
        32,
    ),
    corrupt(
        "fragment-with-glued-record",
        ended(E1),
        ended(b'{"sequence":2,"ty' + E2, E3),
        "没修撕裂尾部就追加：新记录粘在旧的半条上，从此这一行谁也读不了。",
        "Appended without mending the tail: the new record stuck to the old fragment, and nobody can read that line again.",
        41,
        42,
    ),
    corrupt(
        "glued-records",
        ended(E1),
        ended(E2 + E3),
        "缺了换行又继续追加：两条完整的记录挤在一行。",
        "A newline was missing and appending went on: two whole records share a line.",
        47,
    ),
    corrupt(
        "interleaved-writes",
        ended(E1),
        ended(E2[:20] + E3[:25] + E2[20:], E3[25:]),
        "两个进程同时写，各自的字节交错在一起。",
        "Two processes wrote at once, and their bytes are interleaved.",
        61,
    ),
    corrupt(
        "split-record",
        ended(E1),
        ended(E2[:40], E2[40:], E3),
        "记录和它的后半段分成两次写，中间插进了换行。",
        "A record went down in two pieces, and a newline came between them.",
        61,
    ),
    corrupt(
        "raw-newline-in-text",
        b"",
        ended(created("泡茶\n再等三分钟"), E2),
        "写入者把未转义的换行放进了字符串：一条记录占了两行。",
        "A writer put a raw newline inside a string: one record covers two lines.",
        7,
    ),
    corrupt(
        "raw-tab-in-text",
        ended(E1),
        ended(started(',"note":"a\tb"')),
        "字符串里有未转义的制表符：JSON 不允许。",
        "A raw tab inside a string: JSON does not allow it.",
        7,
    ),
    corrupt(
        "blank-line-in-the-middle",
        ended(E1),
        NL + ended(E2, E3),
        "中间夹了一个空行：正常的追加从不写空行。",
        "A blank line in the middle: an append never writes one.",
        12,
        14,
    ),
    corrupt("blank-first-line", b"", NL + ended(E1, E2), "第一行是空行。", "The first line is blank.", 12),
    corrupt(
        "blank-last-line",
        ended(E1, E2),
        NL,
        "末尾多了一个空行。",
        "There is one more newline at the end.",
        12,
    ),
    corrupt(
        "white-space-line",
        ended(E1),
        ended(b" \t\r", E2),
        "第二行只有空白字符。",
        "The second line holds white space only.",
        12,
    ),
    corrupt("only-a-newline", b"", NL, "文件里只有一个换行。", "The file holds a single newline.", 12),
    corrupt(
        "bad-line-three",
        ended(E1, E2),
        ended(b"x"),
        "第三行是一个字母：行号要按物理行数，从 1 开始。",
        "The third line is a letter: lines are counted physically, from 1.",
        13,
    ),
    corrupt(
        "python-repr",
        ended(E1),
        ended(b"{'sequence': 2, 'type': 'todo_started', 'data': {}}"),
        "把 Python 字典直接打印成了一行：单引号不是 JSON。",
        "A Python dict was printed as a line: single quotes are no JSON.",
    ),
    corrupt(
        "trailing-comma",
        ended(E1),
        ended(E2[:-1] + b",}"),
        "右括号前多了一个逗号。",
        "A comma before the closing brace.",
    ),
    corrupt(
        "merge-conflict",
        ended(E1),
        ended(b"<<<<<<< HEAD", E2, b"=======", E3, b">>>>>>> theirs"),
        "日志进了版本库，一次合并留下了冲突标记。",
        "The log was under version control, and a merge left its conflict markers.",
    ),
    corrupt(
        "lost-brace",
        ended(E1),
        ended(E2[:-1], E3),
        "第二行丢了最后的右括号，换行还在。",
        "The second line lost its last brace and kept its newline.",
        32,
    ),
    corrupt(
        "nan",
        ended(E1),
        ended(started(',"size":NaN')),
        "数据里有 NaN：Python 会收下，JSON 没有它。",
        "The data hold NaN: Python accepts it, JSON does not have it.",
        16,
        17,
    ),
    corrupt(
        "infinity",
        ended(E1),
        ended(started(',"size":Infinity')),
        "数据里有 Infinity。",
        "The data hold Infinity.",
        16,
    ),
    corrupt(
        "minus-infinity",
        ended(E1),
        ended(started(',"size":-Infinity')),
        "数据里有 -Infinity。",
        "The data hold -Infinity.",
        16,
    ),
    corrupt(
        "overflowing-number",
        ended(E1),
        ended(started(',"size":1e400')),
        "1e400 超出双精度的范围：Python 会悄悄变成无穷大。",
        "1e400 overflows a double: Python silently makes it infinite.",
        16,
    ),
    corrupt(
        "integer-of-4301-digits",
        ended(E1),
        ended(started(',"size":' + "9" * 4301)),
        "整数有 4,301 位，超过上限。",
        "An integer of 4,301 digits, over the limit.",
        27,
        28,
    ),
    corrupt(
        "nesting-over-the-limit",
        ended(E1),
        ended(record(2, '"todo_started"', "[" * 101 + "]" * 101)),
        "data 嵌套 101 层，超过上限。",
        "The data are nested 101 levels deep, over the limit.",
        28,
    ),
    corrupt(
        "nesting-bomb",
        b"",
        ended(record(1, '"todo_created"', "[" * 100_000)),
        "十万个左方括号：要报行号，不能耗尽调用栈。",
        "A hundred thousand opening brackets: report the line, never run out of stack.",
        28,
    ),
    corrupt(
        "nesting-bomb-balanced",
        b"",
        ended(record(1, '"todo_created"', "[" * 50_000 + "]" * 50_000)),
        "五万层、左右配对的方括号：除了太深，语法都对。",
        "Fifty thousand balanced levels: right in everything but depth.",
        28,
    ),
    corrupt(
        "doubled-key",
        b"",
        ended(E1.replace(b'{"sequence":1', b'{"sequence":9,"sequence":1'), E2),
        "sequence 出现两次：很多解析器悄悄留下后一个。",
        "sequence stands twice: many parsers silently keep the last one.",
        22,
    ),
    corrupt(
        "doubled-key-inside-data",
        ended(E1),
        ended(started(',"todo_id":"cup"')),
        "data 里同一个键出现两次。",
        "A key stands twice inside the data.",
        22,
    ),
    corrupt(
        "doubled-key-by-escape",
        ended(E1),
        ended(started(',"todo\\u005fid":"cup"')),
        "两个键写法不同，解码后是同一个。",
        "Two keys are spelt differently and are the same once decoded.",
        22,
    ),
    corrupt(
        "leading-zero",
        b"",
        ended(E1.replace(b":1,", b":01,", 1)),
        "序号写成 01：JSON 的数字不许有前导零。",
        "The number is written 01: JSON allows no leading zero.",
        25,
    ),
]

# --- Corrupt: bytes that are no UTF-8 ---

NOT_TEXT = [
    corrupt(
        "byte-order-mark",
        b"",
        b"\xef\xbb\xbf" + ended(E1, E2),
        "文件以 BOM 开头：按字节解析的 JSON 库会收下它，所以先严格解码。",
        "The file starts with a byte order mark: JSON libraries fed with bytes accept it, so decode strictly first.",
        8,
    ),
    corrupt(
        "byte-order-mark-inside",
        ended(E1),
        b"\xef\xbb\xbf" + ended(E2),
        "两个文件拼在一起，第二个带着自己的 BOM。",
        "Two files were joined, and the second brought its byte order mark along.",
        8,
    ),
    corrupt(
        "utf-16-little-endian",
        b"",
        (ended(E1, E2)).decode().encode("utf-16"),
        "整个文件被存成了 UTF-16（小端，带 BOM）。",
        "The whole file was saved as UTF-16, little-endian with a byte order mark.",
        8,
    ),
    corrupt(
        "utf-16-big-endian",
        b"",
        (ended(E1, E2)).decode().encode("utf-16-be"),
        "整个文件被存成了 UTF-16（大端，无 BOM）。",
        "The whole file was saved as UTF-16, big-endian without a mark.",
        8,
    ),
    corrupt(
        "gbk",
        b"",
        E1.decode().encode("gbk") + NL + ended(E2),
        "写入者用了系统代码页 GBK。",
        "The writer used the system's code page, GBK.",
        31,
    ),
    corrupt(
        "latin-1",
        ended(E1),
        started(',"note":"é"').decode().encode("latin-1") + NL,
        "é 按 Latin-1 写成了一个字节。",
        "The é was written as one byte, in Latin-1.",
        31,
    ),
    corrupt(
        "character-cut-mid-file",
        ended(E1),
        ended(started(',"note":"茶').replace("茶".encode(), "茶".encode()[:2]), E3),
        "中间一行断在一个汉字里，后面还有正常的行。",
        "A line in the middle stops inside a character, and good lines follow.",
        39,
    ),
    corrupt(
        "encoded-surrogate",
        ended(E1),
        ended(started(',"note":"@"').replace(b"@", b"\xed\xa0\xbd")),
        "代理对的一半被直接编码成三个字节：不是合法 UTF-8。",
        "Half of a surrogate pair was encoded as three bytes: not valid UTF-8.",
        19,
    ),
    corrupt(
        "encoded-surrogate-pair",
        ended(E1),
        ended(started(',"note":"@"').replace(b"@", b"\xed\xa0\xbc\xed\xbd\xb5")),
        "一个表情按 CESU-8 写成了六个字节。",
        "One emoji was written as six bytes, in CESU-8.",
        19,
    ),
    corrupt(
        "overlong-slash",
        ended(E1),
        ended(started(',"note":"@"').replace(b"@", b"\xc0\xaf")),
        "斜杠用了两字节的超长编码。",
        "A slash in its overlong two-byte form.",
    ),
    corrupt(
        "overlong-nul",
        ended(E1),
        ended(started(',"note":"@"').replace(b"@", b"\xc0\x80")),
        "NUL 用了两字节的超长编码。",
        "A NUL in its overlong two-byte form.",
    ),
    corrupt(
        "past-unicode",
        ended(E1),
        ended(started(',"note":"@"').replace(b"@", b"\xf4\x90\x80\x80")),
        "字节序列指向 U+10FFFF 之外。",
        "The bytes point past U+10FFFF.",
    ),
    corrupt(
        "lone-continuation-byte",
        ended(E1),
        ended(started(',"note":"@"').replace(b"@", b"\x80")),
        "多字节字符丢了首字节。",
        "A multi-byte character lost its first byte.",
    ),
    corrupt(
        "flipped-high-bit",
        ended(E1),
        ended(bytes([E2[0] ^ 0x80]) + E2[1:]),
        "第二行第一个字节翻转了最高位。",
        "The highest bit of the second line's first byte was flipped.",
    ),
]

# --- Corrupt: JSON that is no event ---


def in_place_of_the_second(name: str, line: str, zh: str, en: str, *rows: int) -> Specimen:
    return corrupt(name, ended(E1), ended(line.encode()), zh, en, *rows)


NOT_AN_EVENT = [
    in_place_of_the_second(
        "a-string",
        '"tea"',
        "第二行是合法的 JSON，但只是一个字符串。",
        "The second line is legal JSON, and only a string.",
        29,
    ),
    in_place_of_the_second("a-null", "null", "第二行是 null。", "The second line is null.", 29),
    in_place_of_the_second("a-number", "2", "第二行是一个数字。", "The second line is a number.", 29),
    in_place_of_the_second("a-true", "true", "第二行是 true。", "The second line is true.", 29),
    corrupt("an-array", b"", ended(b"[1]"), "第一行是数组。", "The first line is an array.", 29),
    in_place_of_the_second(
        "an-empty-object", "{}", "第二行是空对象。", "The second line is an empty object.", 29
    ),
    corrupt(
        "sequence-true",
        b"",
        ended(record("true", '"todo_created"', "{}")),
        "序号是 true：在 Python 里它等于 1。",
        "The number is true, which equals 1 in Python.",
        23,
    ),
    in_place_of_the_second(
        "sequence-false",
        '{"sequence":false,"type":"todo_started","data":{}}',
        "序号是 false。",
        "The number is false.",
        23,
    ),
    corrupt(
        "sequence-float",
        b"",
        ended(record("1.0", '"todo_created"', "{}")),
        "序号写成 1.0：值相等，却不是整数。",
        "The number is written 1.0: equal in value, and no integer.",
        24,
    ),
    corrupt(
        "sequence-exponent",
        b"",
        ended(record("1e0", '"todo_created"', "{}")),
        "序号写成 1e0。",
        "The number is written 1e0.",
        25,
    ),
    corrupt(
        "sequence-text",
        b"",
        ended(record('"1"', '"todo_created"', "{}")),
        '序号是字符串 "1"。',
        'The number is the string "1".',
        23,
    ),
    corrupt(
        "sequence-null",
        b"",
        ended(record("null", '"todo_created"', "{}")),
        "序号是 null。",
        "The number is null.",
        23,
    ),
    in_place_of_the_second(
        "sequence-missing",
        f'{{"type":"todo_started","data":{STARTED_DATA}}}',
        "没有序号。",
        "There is no number.",
    ),
    in_place_of_the_second(
        "type-missing", f'{{"sequence":2,"data":{STARTED_DATA}}}', "没有事件类型。", "There is no event type."
    ),
    in_place_of_the_second(
        "type-null",
        f'{{"sequence":2,"type":null,"data":{STARTED_DATA}}}',
        "事件类型是 null。",
        "The event type is null.",
    ),
    in_place_of_the_second(
        "type-number",
        f'{{"sequence":2,"type":7,"data":{STARTED_DATA}}}',
        "事件类型是数字。",
        "The event type is a number.",
    ),
    in_place_of_the_second(
        "type-empty",
        f'{{"sequence":2,"type":"","data":{STARTED_DATA}}}',
        "事件类型是空字符串。",
        "The event type is an empty string.",
    ),
    in_place_of_the_second(
        "type-blank",
        f'{{"sequence":2,"type":" \\t ","data":{STARTED_DATA}}}',
        "事件类型只有空白。",
        "The event type is white space only.",
    ),
    in_place_of_the_second(
        "data-missing", '{"sequence":2,"type":"todo_started"}', "没有 data。", "There are no data."
    ),
    in_place_of_the_second(
        "unknown-field",
        f'{{"sequence":2,"type":"todo_started","data":{STARTED_DATA},"note":1}}',
        "多出一个格式里没有的字段。",
        "There is a field that the format does not have.",
    ),
    corrupt(
        "complete-but-no-event-unterminated",
        ended(E1),
        b'{"sequence":2}',
        "没有换行，但这一段能完整解析：它不是写断的记录，是坏记录。",
        "There is no newline, yet this piece parses whole: no record was cut short here, it is a bad one.",
    ),
    corrupt(
        "a-string-unterminated",
        ended(E1),
        b'"tea"',
        "没有换行的最后一段是一个完整的字符串。",
        "The unterminated last piece is a whole string.",
        29,
    ),
]

# --- Corrupt: events with the wrong number ---


def numbered(*sequences: str | int) -> bytes:
    return ended(
        *(
            record(sequence, '"todo_created"', f'{{"todo_id":"cup-{n}","title":"tea"}}')
            for n, sequence in enumerate(sequences)
        )
    )


WRONG_NUMBER = [
    corrupt("gap", numbered(1), numbered(3), "1 之后是 3：少了一条。", "After 1 comes 3: one is missing."),
    corrupt(
        "duplicate",
        numbered(1, 2),
        numbered(2, 3),
        "两个写入者用了同一个序号：1、2、2、3。",
        "Two writers used the same number: 1, 2, 2, 3.",
        64,
        65,
    ),
    corrupt(
        "three-times-one",
        numbered(1),
        numbered(1, 1),
        "三个并发的追加都读到空文件，都拿到 1。",
        "Three appends at once all read an empty file, and all took 1.",
        64,
    ),
    corrupt(
        "backwards",
        numbered(1, 2, 3),
        numbered(2),
        "1、2、3 之后又是 2。",
        "After 1, 2, 3 comes 2 again.",
        65,
    ),
    corrupt(
        "swapped",
        numbered(1),
        numbered(3, 2, 4),
        "两行对调了：1、3、2、4。",
        "Two lines changed places: 1, 3, 2, 4.",
    ),
    corrupt(
        "starts-at-two",
        b"",
        numbered(2, 3),
        "开头丢了一行：从 2 开始。",
        "The first line is lost: it starts at 2.",
    ),
    corrupt("starts-at-zero", b"", numbered(0, 1), "从 0 开始计数。", "Counted from 0."),
    corrupt("negative", numbered(1), numbered(-2), "序号是负数。", "The number is negative."),
    corrupt("huge-number", numbered(1), numbered("9" * 40), "序号有四十位。", "The number has forty digits."),
    corrupt(
        "splice",
        numbered(1, 2),
        numbered(1, 2, 3),
        "两个会话的日志接在了一起。",
        "The logs of two sessions were joined.",
        65,
    ),
    corrupt(
        "gap-unterminated",
        numbered(1),
        numbered(3).rstrip(NL),
        "没有换行的最后一条记录完整，但序号不对：不是撕裂尾部。",
        "The unterminated last record is whole and has the wrong number: no torn tail.",
    ),
]

ZOO = [*SOUND, *TORN, *NOT_JSON, *NOT_TEXT, *NOT_AN_EVENT, *WRONG_NUMBER]


def files() -> dict[str, bytes]:
    """Everything that the zoo consists of: file name to content."""
    verdicts = {f"{specimen.name}.jsonl": specimen.verdict() for specimen in ZOO}
    text = json.dumps(verdicts, ensure_ascii=False, indent=1) + "\n"
    return {f"{specimen.name}.jsonl": specimen.content for specimen in ZOO} | {"verdicts.json": text.encode()}


def main(arguments: list[str]) -> int:
    wanted = files()
    present = {path.name: path.read_bytes() for path in HERE.glob("*.json*")}
    stale = sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))
    if arguments == ["--check"]:
        for name in stale:
            print(f"{name}: not what make_zoo.py makes; run make_zoo.py without --check")
        return 1 if stale else 0
    if arguments:
        print(__doc__)
        return 2
    for name in stale:
        if name in wanted:
            (HERE / name).write_bytes(wanted[name])
        else:
            (HERE / name).unlink()
    print(f"{HERE.name}: {len(ZOO)} logs, {len(stale)} files changed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
