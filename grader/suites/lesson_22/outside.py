"""What somebody else did to the file meanwhile: S18."""
# ruff: noqa: D400 - a docstring is the learner's title

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grader.lab import Event
from grader.suites.check import Text
from grader.suites.expect import Trial, show_outcome
from grader.suites.lesson_22 import scenarios
from grader.suites.lesson_22.drawn import LOG, log, some_type, word
from grader.suites.lesson_22.scenarios import source_of
from grader.suites.lesson_22.suite import check

if TYPE_CHECKING:
    from grader.lab import Lab

BLUNDERS = (
    "AssertionError",
    "AttributeError",
    "IndexError",
    "KeyError",
    "NameError",
    "TypeError",
    "UnboundLocalError",
)
"""Errors that nobody raises in order to say that a file is gone."""

HINT = Text(
    "每次追加前比较文件的大小和身份（st_dev、st_ino）：大小变了就重新读；文件没了或换了，就让这次追加失败。",
    "Before each append compare size and identity (st_dev, st_ino) with what you left: another size means reading "
    "again; a file that vanished or was replaced fails this append.",
)


@check("22-s18-changed", rules=("S18",), dimension="integrity", hint=HINT)
async def a_log_changed_from_outside_is_read_again(lab: Lab) -> None:
    """文件被别人改过：追加前重新读，再决定编号

    A log that was changed from outside is read again before the next number is taken
    """
    kind, data = some_type(lab.draw), [word(lab.draw) for _ in range(6)]
    history = [Event(number, kind, value) for number, value in enumerate(data[:5], start=1)]
    for zh, en, kept in (
        ("被追加了两条", "two records are added", history),
        ("被截短到一条", "it is cut to one record", history[:1]),
        ("被清空", "it is emptied", []),
        ("尾部撕裂", "its tail is torn", history[:2]),
    ):
        trial = Trial(
            "S18",
            f"用一个 store 追加 3 条，文件{zh}，再用它追加",
            f"Append 3 with a store; {en} from outside; append with it again",
        )
        torn = b'{"sequence":3,' if en == "its tail is torn" else b""
        given = {"type": kind, "before": data[:3], "then": data[5], "deed": "write"}
        told = await _change(lab, trial, given, log(kept) + torn)
        first, second = told["told"]
        expected = [*kept, Event(len(kept) + 1, kind, data[5])]
        trial.require("event" in first, Text("追加成功", "the append succeeds"), show_outcome(first))
        trial.require(
            first.get("event", [None])[0] == len(expected),
            Text(f"编号 {len(expected)}", f"number {len(expected)}"),
            Text("另一个编号", "another number"),
        )
        trial.require(
            "event" in second, Text("新实例也能追加", "a new instance appends too"), show_outcome(second)
        )
        trial.disk_holds(lab, [*expected, Event(len(expected) + 1, kind, data[5])])


@check("22-s18-gone", rules=("S18",), dimension="integrity", hint=HINT)
async def a_log_that_vanished_is_not_begun_again(lab: Lab) -> None:
    """写过之后文件没了或被换掉：那次追加报错；只有新实例才从头读起

    When the file vanished or was replaced, the append fails; only a new instance starts from what is there
    """
    kind, data = some_type(lab.draw), [word(lab.draw) for _ in range(6)]
    other = [Event(number, kind, value) for number, value in enumerate(data[3:5], start=1)]
    for zh, en, deed, kept in (
        ("被删掉", "it is deleted", "vanish", []),
        ("被换成另一个文件", "another file takes its place", "replace", other),
    ):
        trial = Trial(
            "S18",
            f"用一个 store 追加 3 条，文件{zh}，再用它追加",
            f"Append 3 with a store; {en}; append with it again",
        )
        given = {"type": kind, "before": data[:3], "then": data[5], "deed": deed}
        told = await _change(lab, trial, given, log(kept))
        first, second = told["told"]
        trial.require(
            "error" in first
            and first["error"][0] not in BLUNDERS,  # which error says it, is the student's choice
            Text("这次追加报出明确的错误", "this append fails with a clear error"),
            show_outcome(first),
        )
        left = None if told["disk"] is None else bytes.fromhex(told["disk"])
        trial.require(
            left in ((None, b"") if deed == "vanish" else (log(kept),)),
            Text("什么都没写", "nothing was written"),
            Text("文件被写了", "the file was written"),
        )
        trial.require(
            "event" in second, Text("新实例可以追加", "a new instance appends"), show_outcome(second)
        )
        trial.disk_holds(lab, [*kept, Event(len(kept) + 1, kind, data[5])])


async def _change(lab: Lab, trial: Trial, given: dict[str, Any], raw: bytes) -> Any:
    lab.plant(LOG, b"")
    given = {"name": LOG, "bytes": raw.hex(), **given}
    return await trial.gives(lab.scenario(source_of(scenarios.change_from_outside), given))


@check(
    "22-s18-two",
    rules=("S18",),
    dimension="integrity",
    hint=Text(
        "同一进程里两个实例指向同一文件时，缓存的编号会过期：追加前先看文件有没有变。",
        "With two instances on one file the remembered number goes stale: look whether the file changed before you "
        "append.",
    ),
)
async def two_instances_never_share_a_number(lab: Lab) -> None:
    """两个实例轮流追加同一个文件：报错或编号连续，绝不重号

    Two instances appending in turn to one file get contiguous numbers or an error, never the same number
    """
    kind, data = some_type(lab.draw), [word(lab.draw) for _ in range(6)]
    trial = Trial("S18", "两个实例轮流向同一个文件追加", "Append to one file through two instances in turn")
    given = {"name": LOG, "type": kind, "data": data}
    told = await trial.gives(lab.scenario(source_of(scenarios.two_stores), given))
    stored = [value for value, outcome in zip(data, told, strict=True) if "event" in outcome]
    trial.disk_holds(lab, [Event(number, kind, value) for number, value in enumerate(stored, start=1)])
    trial.require(
        "event" in told[0], Text("第一次追加成功", "the first append succeeds"), show_outcome(told[0])
    )
