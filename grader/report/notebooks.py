"""What executed notebooks showed: its words, and on a terminal a line for each that did not run to its end without an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text as Line

from grader.plain_text import printable
from grader.suites.check import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.console import Console

    from grader.report.words import Language

_SHOWN = 3
_COUNT = Text(
    "执行了 {all} 本 notebook，{fine} 本从头到尾没有出错。",
    "{all} notebooks were executed, {fine} of them to the end without an error.",
)
STATUSES = {
    "ok": Text("没有出错", "no errors"),
    "error": Text("有错误", "errors"),
    "timeout": Text("没有按时结束", "did not end in time"),
    "crash": Text("内核中途退出", "its kernel ended"),
    "unreadable": Text("不是 notebook", "is no notebook"),
    "grader-error": Text("评分器出错", "the grader failed"),
}
_CELL = Text("第 {cell} 格 {name} {text}", "cell {cell}: {name} {text}")


def show_notebooks(console: Console, rows: Iterable[Mapping[str, Any]], language: Language) -> None:
    """Show how many ran, and a line for each that did not run through; no line when none was executed."""
    everything = [(row["submission"], notebook) for row in rows for notebook in row["notebooks"]]
    if not everything:
        return
    fine = sum(notebook["status"] == "ok" for _, notebook in everything)
    console.print(Line(getattr(_COUNT, language).format(all=len(everything), fine=fine)))
    for name, notebook in everything:
        if notebook["status"] != "ok":
            console.print(Line("  " + printable(_sentence(name, notebook, language))))


def _sentence(name: str, notebook: Mapping[str, Any], language: Language) -> str:
    cells = [getattr(_CELL, language).format(**error).strip() for error in notebook["errors"][:_SHOWN]]
    more = ["…"] if len(notebook["errors"]) > _SHOWN else []
    status = getattr(STATUSES[notebook["status"]], language)
    return " · ".join([f"{name}: {notebook['name']}: {status}", *cells, *more])
