"""All three exercises together: the crash proof. H10."""
# ruff: noqa: D400 - a docstring is the learner's title

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from grader.suites.check import Text
from grader.suites.expect import Trial
from grader.suites.homework.drawn import sealed_log, word
from grader.suites.homework.scenarios import cut_everywhere, source_of, write_sealed
from grader.suites.homework.suite import check

if TYPE_CHECKING:
    from grader.lab import Lab

EVENTS, GROUP = 100, 8


@check(
    "22-homework-crash-proof",
    rules=("H1", "H8", "H10"),
    dimension="recovery",
    required=True,
    hint=Text(
        "读取只凭换行和校验和决定：结束了并且校验通过的行都要，最后那段没结束的不要，除此之外什么也不丢。",
        "Reading decides by newline and checksum alone: it keeps every line that ended and verifies, leaves the piece that "
        "never ended, and loses nothing else.",
    ),
)
async def a_crash_loses_only_the_line_being_written(lab: Lab) -> None:
    """崩溃证明：100 个事件的日志在每一个字节处切断，丢的只有正在写的那一行

    The crash proof: a log of 100 events is cut at every byte, and only the line being written is lost
    """
    name = f"{word(lab.draw)}.log"
    payloads = [
        json.dumps({"n": number, "id": word(lab.draw)}, separators=(",", ":")).encode()
        for number in range(1, EVENTS + 1)
    ]
    given: dict[str, Any] = {"name": name, "payloads": [payload.hex() for payload in payloads]}
    writing = Trial("H1", f"写下 {EVENTS} 行并关闭", f"Write {EVENTS} lines and close")
    acknowledged = await writing.gives(lab.scenario(source_of(write_sealed), {**given, "group": GROUP}))
    writing.require(
        acknowledged == list(range(1, EVENTS + 1)),
        Text("每行恰好确认一次", "each line is acknowledged once"),
        Text(f"确认了 {len(acknowledged)} 次", f"{len(acknowledged)} acknowledgements"),
    )
    raw = writing.bytes_on_disk(lab, name)
    writing.require(
        raw == sealed_log(payloads),
        Text("磁盘上是这 100 行", "these 100 lines are on disk"),
        Text("磁盘上的字节不同", "the bytes on disk differ"),
    )
    cutting = Trial(
        "H10",
        f"在 0 到 {len(raw)} 的每个字节处切断，各读一次",
        f"Cut at every byte from 0 to {len(raw)}, and read",
    )
    told = await cutting.gives(lab.scenario(source_of(cut_everywhere), given))
    _loses_nothing_else(cutting, told, raw)


def _loses_nothing_else(trial: Trial, told: Any, raw: bytes) -> None:
    """Require at every cut the lines that had ended; one that lacks its newline alone may count, too."""
    changes = {size: state for size, *state in told}
    state: list[Any] = []
    ended = good = 0
    for size in range(len(raw) + 1):
        if size and raw[size - 1] == ord("\n"):
            ended, good = ended + 1, size
        state = changes.get(size, state)
        right = [[ended, good, True]]
        if raw[size : size + 1] == b"\n":
            right.append([ended + 1, size, True])
        trial.require(
            state in right,
            Text(f"切在第 {size} 字节，读出 {ended} 行", f"cut at byte {size}, {ended} lines are read"),
            _found(state),
        )


def _found(state: list[Any]) -> Text:
    if not state or state[0] == -1:
        return Text("抛出异常", "an error was raised")
    if not state[2]:
        return Text("内容或撕裂的字节不对", "the lines or the torn bytes are not those of the log")
    return Text(f"{state[0]} 行", f"{state[0]} lines")
