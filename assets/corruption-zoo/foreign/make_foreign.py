"""Builds the foreign wing of the zoo: small session files as agents leave them, and what is wrong with each.

    python make_foreign.py           writes the files and findings.json beside this file
    python make_foreign.py --check   writes nothing; exit 1 when a file differs from what would be written

The findings are written down by hand (docs/log-command.md says what each means); no reader was asked. A finding is
[kind, line, offset]. Standard library only, same bytes on every run.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def record(number: int, text: str = "ok") -> bytes:
    """One record as an agent might keep it, without its newline."""
    value = {
        "type": "user",
        "uuid": f"00000000-0000-4000-8000-{number:012}",
        "message": {"role": "user", "content": text},
    }
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


A, B, C = record(1), record(2), record(3)
N = len(A) + 1  # bytes of a line; A, B and C are equally long
CUT = 70  # inside the message of a record


def lines(*records: bytes) -> bytes:
    return b"".join(one + b"\n" for one in records)


# name: (content, verdict, records before the first damage, findings, zh, en)
FOREIGN = {
    "sound": (lines(A, B, C), "sound", 3, [], "三条完好的记录。", "Three sound records."),
    "torn-tail": (
        lines(A, B) + C[:CUT],
        "torn",
        2,
        [["torn-tail", 3, 2 * N]],
        "最后一条写到一半。",
        "The last record was cut while it was written.",
    ),
    "nul-tail": (
        lines(A, B) + b"\0" * 300,
        "torn",
        2,
        [["nul-tail", 3, 2 * N]],
        "断电后末尾补了 NUL。",
        "Power loss left NULs at the end.",
    ),
    "nul-run": (
        lines(A) + b"\0" * 20 + lines(B, C),
        "corrupt",
        1,
        [["nul-run", 2, N]],
        "中间有一段 NUL。",
        "A run of NULs in the middle.",
    ),
    "nul-file": (b"\0" * 500, "corrupt", 0, [["nul-file", 1, 0]], "整个文件都是 NUL。", "Nothing but NULs."),
    "fused-records": (
        lines(A, B + C),
        "corrupt",
        1,
        [["fused-records", 2, N + len(B)]],
        "两条记录之间少了换行。",
        "The newline between two records is missing.",
    ),
    "fragment-and-record": (
        lines(A, B[:CUT] + C),
        "corrupt",
        1,
        [["fragment-and-record", 2, N + CUT]],
        "残片后面粘上了下一条。",
        "The next record was glued to a fragment.",
    ),
    "fragment": (
        lines(A, B[:CUT], C),
        "corrupt",
        1,
        [["fragment", 2, N + CUT]],
        "写到一半的记录被换行结束。",
        "A half-written record, ended by a newline.",
    ),
    "raw-newline": (
        lines(A, B.replace(b"ok", b"o\nk"), C),
        "corrupt",
        1,
        [["raw-newline", 2, N]],
        "字符串里的换行没有转义。",
        "A newline inside a string was not escaped.",
    ),
    "splice": (
        lines(A, B[:CUT] + C, B[CUT:]),
        "corrupt",
        1,
        [["splice", 2, N]],
        "一条记录插在另一条中间。",
        "One record was written into the middle of another.",
    ),
    "pretty-printed": (
        json.dumps(json.loads(A), indent=1).encode() + b"\n",
        "corrupt",
        0,
        [["split-record", 1, 0]],
        "不是一行一条，而是排成多行。",
        "Not one line a record, but laid out over many.",
    ),
    "byte-order-mark": (
        b"\xef\xbb\xbf" + lines(A, B),
        "corrupt",
        0,
        [["bom", 1, 0]],
        "编辑器加了 BOM。",
        "An editor added a byte order mark.",
    ),
    "utf-16": (
        lines(A, B).decode().encode("utf-16-le"),
        "corrupt",
        0,
        [["utf-16", 1, 0]],
        "被存成了 UTF-16。",
        "It was saved as UTF-16.",
    ),
    "latin-1": (
        lines(A, B.replace(b"ok", b"\xe9k"), C),
        "corrupt",
        1,
        [["utf-8", 2, N + B.index(b"ok")]],
        "一条记录用了 Latin-1。",
        "One record was written in Latin-1.",
    ),
    "encoded-surrogate": (
        lines(A, B.replace(b"ok", b"\xed\xa0\xbd")),
        "corrupt",
        1,
        [["encoded-surrogate", 2, N + B.index(b"ok")]],
        "代理字符被直接编码。",
        "A surrogate was encoded as it is.",
    ),
    "line-separator": (
        lines(A, record(2, "a\u2028b")),
        "sound",
        2,
        [["line-separator", 2, N + B.index(b"ok") + 1]],
        "文字里有 U+2028，它不是行尾。",
        "U+2028 in the text: not the end of a line.",
    ),
    "crlf": (
        lines(A + b"\r", B + b"\r"),
        "sound",
        2,
        [["crlf", 1, len(A)]],
        "行尾是 CRLF。",
        "Lines end in CRLF.",
    ),
    "blank-line": (
        lines(A, b"", B),
        "corrupt",
        1,
        [["blank-line", 2, N]],
        "中间有一个空行。",
        "A blank line in the middle.",
    ),
    "bare-value": (
        lines(A, b"42", B),
        "corrupt",
        1,
        [["not-an-object", 2, N]],
        "一行只有一个数。",
        "A line that is only a number.",
    ),
    "doubled-key": (
        lines(A, b'{"type":"user","type":"assistant"}'),
        "corrupt",
        1,
        [["doubled-key", 2, N]],
        "键写了两次。",
        "A key stands twice.",
    ),
    "duplicate": (
        lines(A, B, B),
        "sound",
        3,
        [["duplicate", 3, 2 * N]],
        "同一条写了两遍。",
        "The same record was written twice.",
    ),
    "nan": (
        lines(A, b'{"type":"user","cost":NaN}'),
        "corrupt",
        1,
        [["nan", 2, N]],
        "NaN 不是 JSON。",
        "NaN is not JSON.",
    ),
    "huge-integer": (
        lines(A, b'{"type":"user","id":18446744073709551617}'),
        "sound",
        2,
        [["huge-integer", 2, N]],
        "整数超过 64 位。",
        "An integer past 64 bits.",
    ),
    "too-deep": (
        lines(A, b'{"type":' + b"[" * 600 + b"]" * 600 + b"}"),
        "corrupt",
        1,
        [["too-deep", 2, N]],
        "嵌套六百层。",
        "Nested six hundred levels deep.",
    ),
    "missing-newline": (
        lines(A) + B,
        "sound",
        2,
        [["missing-newline", 2, N + len(B)]],
        "最后一条只缺换行。",
        "Only the last newline is missing.",
    ),
    "mixed": (
        lines(A, b'{"sequence":1,"type":"todo_created","data":{}}'),
        "sound",
        2,
        [["mixed", 2, N]],
        "混进了另一种日志的记录。",
        "A record of another kind of log is mixed in.",
    ),
}


def files() -> dict[str, bytes]:
    """Everything that this wing consists of: file name to content."""
    findings = {
        f"{name}.jsonl": {"verdict": verdict, "events": events, "findings": found, "zh": zh, "en": en}
        for name, (_, verdict, events, found, zh, en) in FOREIGN.items()
    }
    text = json.dumps(findings, ensure_ascii=False, indent=1) + "\n"
    return {f"{name}.jsonl": specimen[0] for name, specimen in FOREIGN.items()} | {
        "findings.json": text.encode()
    }


def main(arguments: list[str]) -> int:
    wanted = files()
    present = {path.name: path.read_bytes() for path in HERE.glob("*.json*")}
    stale = sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))
    if arguments == ["--check"]:
        for name in stale:
            print(f"{name}: not what make_foreign.py makes; run make_foreign.py without --check")
        return 1 if stale else 0
    if arguments:
        print(__doc__)
        return 2
    for name in stale:
        if name in wanted:
            (HERE / name).write_bytes(wanted[name])
        else:
            (HERE / name).unlink()
    print(f"{HERE.name}: {len(FOREIGN)} files, {len(stale)} changed")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
