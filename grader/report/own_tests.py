"""A learner's own tests on a terminal: what is wrong with them, or which of them stops which store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text as Line

from grader.plain_text import printable
from grader.suites.check import Text

if TYPE_CHECKING:
    from grader.own_tests import Tried
    from grader.report.words import Language

_MARKS = {"pass": ("·", "dim"), "fail": ("✗", "green"), "timeout": ("…", "green")}
_NO_ANSWER = ("–", "yellow")
_CELL = 3  # columns of a terminal that a mark takes
_SAID = {
    "store": Text("错误的 store", "Wrong store"),
    "stopped": Text("抓住", "stopped"),
    "through": Text("漏掉", "GOT THROUGH"),
    "key": Text(
        "✗ 没通过 · 通过 … 超时（也算抓住） – 没有结果",
        "✗ failed   · passed   … out of time (stops it, too)   – no result",
    ),
    "kills": Text("抓住 {count} 个", "stops {count}"),
    "nothing": Text(
        "一个也没抓住：它还没有证明过自己会失败", "stops nothing: it has yet to show that it can fail"
    ),
    "idea": Text("漏掉的是这些：", "What got through:"),
}


def show_tried(tried: Tried, language: Language) -> None:
    """Show which test stops which store, what stops nothing, and what got through; or why it did not come so far."""
    console = Console(highlight=False)
    if tried.mutants:
        _show_grid(console, tried, language)
        _show_tests(console, tried, language)
        _show_survivors(console, tried, language)
    for test, store, ended in tried.wrong:
        console.print(Line(f"✗ {printable(test)} [{store}] {printable(getattr(ended.said, language))}"))
    console.print()
    console.print(Line(printable(getattr(tried.message, language)), style="bold"))


def _say(key: str, language: Language, **values: object) -> str:
    return str(getattr(_SAID[key], language)).format(**values)


def _show_grid(console: Console, tried: Tried, language: Language) -> None:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(_say("store", language), no_wrap=True)
    for number in range(1, len(tried.tests) + 1):
        table.add_column(str(number), justify="center", no_wrap=True)
    table.add_column("")
    for mutant, trial in tried.mutants:
        marks = [Line(*_MARKS.get(trial.of(test).status, _NO_ANSWER)) for test in tried.tests]
        end = (
            Line(_say("stopped", language))
            if trial.stopped_by
            else Line(_say("through", language), style="bold red")
        )
        table.add_row(mutant.id, *marks, end)
    console.print(table, width=max(console.width, 40 + _CELL * len(tried.tests)))
    console.print(Line(_say("key", language), style="dim"))


def _show_tests(console: Console, tried: Tried, language: Language) -> None:
    console.print()
    for number, test in enumerate(tried.tests, 1):
        count = len(tried.stops(test))
        said = _say("kills", language, count=count) if count else _say("nothing", language)
        console.print(Line(f"{number:>3}  {printable(test)}  ").append(said, style="" if count else "yellow"))


def _show_survivors(console: Console, tried: Tried, language: Language) -> None:
    if tried.survivors:
        console.print()
        console.print(Line(_say("idea", language), style="bold"))
    for mutant in tried.survivors:
        console.print(Line(f"  {mutant.id}: {getattr(mutant.idea, language)}"))
