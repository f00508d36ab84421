"""Exercise 3: a checksum over the bytes that are stored, verified before anything is believed. H8 to H10."""
# ruff: noqa: D400 - a docstring is the learner's title

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grader.suites.check import Text
from grader.suites.expect import Trial
from grader.suites.homework.drawn import sealed, sealed_log, some_payload, word
from grader.suites.homework.scenarios import flip_every_bit, read_log, seal_each, source_of
from grader.suites.homework.suite import check

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grader.lab import Lab

_HINT_TORN = Text(
    "先问这一段有没有以换行结束。没有结束的最后一段是撕裂；结束了却校验不过的，不论在哪一行，都是损坏。",
    "Ask first whether the piece was ended by a newline. A last piece without one is torn; an ended line that does not "
    "verify is damage, wherever it stands.",
)


@check(
    "22-homework-seal",
    rules=("H8",),
    dimension="integrity",
    required=True,
    hint=Text(
        "校验和算的是要写到盘上的那些字节：zlib.crc32(payload)，写成八位小写十六进制；读的时候原样取回。",
        "The checksum is of the very bytes that go to disk: zlib.crc32(payload), as eight lower-case digits. Reading gives "
        "the same bytes back.",
    ),
)
async def a_sealed_line_holds_its_checksum(lab: Lab) -> None:
    """每行是：八位 CRC-32、空格、原样的内容、换行；读回的内容一字节不差

    A line is eight digits of CRC-32, a space, the payload as it is, a newline; reading returns every byte of it
    """
    payloads = [*(some_payload(lab.draw) for _ in range(6)), b"", b" ", b"\r"]
    trial = Trial("H8", "封装 9 份内容，再读回来", "Seal nine payloads and read them back")
    given = {"payloads": [payload.hex() for payload in payloads]}
    lines = await trial.gives(lab.scenario(source_of(seal_each), given))
    for number, (line, payload) in enumerate(zip(lines, payloads, strict=True), start=1):
        trial.require(
            line == sealed(payload).hex(),
            Text(f"第 {number} 行的字节符合格式", f"the bytes of line {number} follow the format"),
            Text("不同", "they differ"),
        )
    raw = sealed_log(payloads)
    await _reads(lab, trial, raw, payloads, torn=b"")
    newline = Trial("H8", "封装带换行的内容", "Seal a payload that holds a newline")
    given = {"payloads": [f"{word(lab.draw)}\n{word(lab.draw)}".encode().hex()]}
    await newline.refuses(lab.scenario(source_of(seal_each), given), ValueError)


@check(
    "22-homework-flips",
    rules=("H9",),
    dimension="integrity",
    required=True,
    hint=Text(
        "拿读到的内容重新封装，和这一行逐字节比较：大写的校验和、多余的空格都骗不过去。",
        "Seal what was read again and compare it with the line byte for byte: capitals in the checksum, or an extra "
        "space, do not get past that.",
    ),
)
async def every_flipped_bit_is_found(lab: Lab) -> None:
    """最后一个换行之前，任何一位翻转都被发现，并指出那一行

    Any flipped bit before the last newline is found, and its line is named
    """
    payloads = [some_payload(lab.draw) for _ in range(4)]
    raw = sealed_log(payloads)
    trial = Trial(
        "H9", f"逐一翻转 {8 * len(raw)} 位，各读一次", f"Flip each of {8 * len(raw)} bits and read each time"
    )
    told = await trial.gives(lab.scenario(source_of(flip_every_bit), {"raw": raw.hex()}))
    line = 1
    for at, byte in enumerate(raw):
        for bit in range(8):
            found = _of_place(told, 8 * at + bit)
            last = (
                at == len(raw) - 1
            )  # of a last newline that is gone, nobody can say more than that the tail is odd
            trial.require(
                found == line or (last and found != -1),
                Text(f"第 {line} 行被指出", f"line {line} is named"),
                _verdict(found, at, bit),
            )
        line += byte == ord("\n")


def _of_place(told: Any, place: int) -> Any:
    """Give the verdict for one bit: the last change at or before it."""
    return next(verdict for start, verdict in reversed(list(told)) if start <= place)


def _verdict(found: Any, at: int, bit: int) -> Text:
    where = Text(f"第 {at} 字节第 {bit} 位翻转后", f"with bit {bit} of byte {at} flipped")
    said = {
        -1: Text("没有发现", "nothing was noticed"),
        0: Text("说成了撕裂的尾部", "it was taken for a torn tail"),
        -2: Text("抛出别的异常", "another error was raised"),
    }.get(found, Text(f"指出了第 {found} 行", f"line {found} was named"))
    return Text(f"{where.zh}{said.zh}", f"{where.en} {said.en}")


@check(
    "22-homework-bytes",
    rules=("H9",),
    dimension="integrity",
    core=True,
    hint=Text(
        "不要先解析再重新生成：那样，写法变了而值没变的行都会放过去。校验的是字节，不是值。",
        "Do not parse the line and write it anew: every line that is spelled differently and means the same would pass. "
        "Verify bytes, not values.",
    ),
)
async def the_checksum_is_of_bytes_not_values(lab: Lab) -> None:
    """值没变、写法变了，也算损坏：校验的是存下的字节

    A line that means the same and is spelled otherwise is damaged: the stored bytes are what is verified
    """
    value = lab.draw.randrange(1, 10**6)
    before = f'{{"n":{value}.5,"text":"é{word(lab.draw)}"}}'
    head = sealed(before.encode())[:9]
    cases = (
        ("多一个空格", "an extra space", before.replace(":", ": ", 1)),
        ("é 写成 \\u00e9", "é written as \\u00e9", before.replace("é", "\\u00e9")),
        ("数字写成 .50", "a number written with .50", before.replace(".5", ".50")),
    )
    for zh, en, after in cases:
        trial = Trial(
            "H9", f"改写一行的写法（{zh}），保留旧的校验和", f"Respell a line ({en}) under its old checksum"
        )
        raw = sealed(b"{}") + head + after.encode() + b"\n" + sealed(b"{}")
        await trial.corrupt_at(_read(lab, raw), 2)
    for zh, en, fits, respell in (
        ("大写", "in capitals", lambda digits: not digits.isdigit(), bytes.upper),
        ("空格代替开头的零", "with spaces for zeros", _begins_with_zero, _spaces_for_zeros),
    ):
        trial = Trial("H9", f"校验和写成{zh}", f"The checksum is written {en}")
        line = sealed(_payload_where(lab, fits))
        await trial.corrupt_at(_read(lab, respell(line[:8]) + line[8:]), 1)


def _begins_with_zero(digits: bytes) -> bool:
    return digits.startswith(b"0") and digits.strip(b"0") != b""


def _spaces_for_zeros(digits: bytes) -> bytes:
    return digits.lstrip(b"0").rjust(8)


def _payload_where(lab: Lab, fits: Callable[[bytes], bool]) -> bytes:
    """Draw until the checksum's digits fit: one draw in sixteen does, at the least."""
    return next(payload for payload in iter(lambda: some_payload(lab.draw), b"") if fits(sealed(payload)[:8]))


@check(
    "22-homework-torn",
    rules=("H10",),
    dimension="integrity",
    required=True,
    hint=_HINT_TORN,
)
async def torn_is_not_damaged(lab: Lab) -> None:
    """没写完的最后一行是撕裂的尾部，读取照常；结束了的坏行是损坏，读取停下

    A last line that never ended is a torn tail and reading goes on; an ended line that is bad is damage and stops it
    """
    payloads = [some_payload(lab.draw) for _ in range(3)]
    good, next_line = sealed_log(payloads), sealed(some_payload(lab.draw))
    for size in (1, 8, 9, lab.draw.randrange(10, len(next_line) - 2)):
        trial = Trial(
            "H10", f"末尾只写下 {size} 字节；读取", f"The log ends in {size} bytes of a line; read it"
        )
        await _reads(lab, trial, good + next_line[:size], payloads, torn=next_line[:size])
    empty = Trial("H10", "读取空的日志", "Read an empty log")
    await _reads(lab, empty, b"", [], torn=b"")
    for zh, en, bad in (
        ("半行", "half a line", next_line[: len(next_line) // 2]),
        ("空行", "an empty line", b""),
        ("只有校验和的一行", "a checksum alone", next_line[:8]),
        ("没有校验和的一行", "a line without checksum", next_line[9:-1]),
    ):
        trial = Trial(
            "H10", f"末尾是{zh}，但以换行结束；读取", f"The log ends in {en}, newline included; read it"
        )
        await trial.corrupt_at(_read(lab, good + bad + b"\n"), 4)


@check(
    "22-homework-named",
    rules=("H9",),
    dimension="integrity",
    required=True,
    hint=Text(
        "行号从 1 数起，按物理行；消息里写行号和原因，不写这一行的内容。",
        "Lines count physically, from 1. The message says line and reason, and nothing of what stands there.",
    ),
)
async def damage_is_named_by_its_line(lab: Lab) -> None:
    """损坏的行用行号指出，中英文都说，消息里没有它的内容

    A damaged line is named by its number, in both languages, and the message holds nothing of it
    """
    payloads = [some_payload(lab.draw) for _ in range(lab.draw.randrange(4, 9))]
    for at in (0, lab.draw.randrange(1, len(payloads) - 1), len(payloads) - 1):
        secret = word(lab.draw)
        trial = Trial("H9", f"损坏第 {at + 1} 行，再读", f"Damage line {at + 1} and read")
        lines = [sealed(payload) for payload in payloads]
        lines[at] = lines[at][:9] + f'{{"secret":"{secret}"}}\n'.encode()
        await trial.corrupt_at(_read(lab, b"".join(lines)), at + 1, hidden=(secret,))


def _read(lab: Lab, raw: bytes) -> Any:
    return lab.scenario(source_of(read_log), {"raw": raw.hex()})


async def _reads(lab: Lab, trial: Trial, raw: bytes, payloads: Sequence[bytes], torn: bytes) -> None:
    """Require these payloads, and that the rest is told as torn."""
    found = await trial.gives(_read(lab, raw))
    trial.require(
        found["payloads"] == [payload.hex() for payload in payloads],
        Text(f"读出 {len(payloads)} 份内容，一字节不差", f"{len(payloads)} payloads, byte for byte"),
        Text("数目或内容不同", "another number, or other bytes"),
    )
    trial.require(
        (found["good"], found["torn"]) == (len(raw) - len(torn), torn.hex()),
        Text(f"撕裂 {len(torn)} 字节", f"{len(torn)} torn bytes"),
        Text("另一个位置或别的字节", "another offset, or other bytes"),
    )
