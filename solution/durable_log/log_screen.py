"""What `statelab log` prints: tables on a terminal, one finding a line elsewhere, and never a byte of a record's content."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from .inspection import Entry, LogReport
from .log_words import ADVICE, SCREEN, VERDICTS, WEIGHTS, describe, say

_CODE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")
_IDENTITY = re.compile(r"[A-Za-z0-9_.:-]{1,80}")
_UNIQUE_ID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_FOREIGN_TYPES = frozenset(
    (
        *(
            "user",
            "assistant",
            "system",
            "summary",
            "tool",
            "tool_use",
            "tool_result",
            "tool_call",
            "message",
        ),
        *(
            "session",
            "session_meta",
            "session_info",
            "response_item",
            "event_msg",
            "turn_context",
            "compacted",
        ),
        *(
            "model_change",
            "thinking_level_change",
            "compaction",
            "branch_summary",
            "custom",
            "label",
            "error",
        ),
        *("file-history-snapshot", "queue-operation", "progress", "attachment", "last-prompt", "result"),
        *(
            "session.start",
            "session.end",
            "session.error",
            "user.message",
            "assistant.message",
            "assistant.turn_start",
        ),
        *(
            "assistant.turn_end",
            "tool.execution_start",
            "tool.execution_complete",
            "abort",
            "action",
            "observation",
        ),
    )
)
"""Types of records in the session files of known agents. Any other may be somebody's text, and is not shown."""

_STYLES = {"sound": "green", "torn": "yellow", "corrupt": "bold red", "note": "cyan"}


class Screen:
    """One place to print to, in one language; `plain` where no terminal is."""

    def __init__(self, language: str) -> None:
        self.language = language
        self.console = Console(highlight=False, soft_wrap=True)
        self.plain = not sys.stdout.isatty()  # rich would also call a notebook's kernel a terminal

    def report(self, report: LogReport, path: str) -> None:
        """Print the verdict, everything that was found, and what to do."""
        word = VERDICTS[report.verdict].in_(self.language)
        line = say(
            "summary",
            self.language,
            path=path,
            verdict=word,
            format=report.format,
            records=report.records,
            size=report.size,
        )
        click.echo(click.style(line, bold=True) if not self.plain else line)
        if report.findings:
            self._findings(report, path)
        if (hidden := sum(report.counts.values()) - len(report.findings)) > 0:
            click.echo(say("more", self.language, n=hidden))
        if report.verdict == "corrupt":
            click.echo(say("before", self.language, events=report.events, good=report.good_bytes))
        if report.verdict != "sound":
            click.echo(ADVICE[report.verdict].in_(self.language).format(path=path))

    def _findings(self, report: LogReport, path: str) -> None:
        if self.plain:
            for found in report.findings:
                weight = WEIGHTS[found.weight].in_(self.language)
                click.echo(f"{path}:{found.line}:{found.offset}: {weight}: {describe(found, self.language)}")
            return
        table = self._table("line", "offset", "weight", "finding")
        for found in report.findings:
            table.add_row(
                f"{found.line:,}",
                f"{found.offset:,}",
                f"[{_STYLES[found.weight]}]{WEIGHTS[found.weight].in_(self.language)}[/]",
                describe(found, self.language),
            )
        self.console.print(table)

    def entries(self, entries: Iterable[Entry], *, by_offset: bool = False) -> None:
        """Print records, each as its line or its offset, and number, type, id and shape."""
        rows = [self.row(entry, by_offset=by_offset) for entry in entries]
        if self.plain:
            for row in rows:
                click.echo("\t".join(row))
        elif rows:
            table = self._table("line", "sequence", "type", "id", "summary-column")
            for row in rows:
                table.add_row(*row)
            self.console.print(table)

    def row(self, entry: Entry, *, by_offset: bool = False) -> tuple[str, str, str, str, str]:
        """Give what may be shown of one record."""
        sequence = "-" if entry.sequence is None or abs(entry.sequence) >= 1 << 63 else f"{entry.sequence}"
        return (
            f"@{entry.offset}" if by_offset else f"{entry.line}",
            sequence,
            shown_type(entry.type, entry.format) or "-",
            shown_id(entry.id, entry.format) or "-",
            f"{shape(entry.content)}, {entry.size:,} B",
        )

    def pairs(self, title: str, pairs: Mapping[str, str]) -> None:
        """Print names and values."""
        if self.plain:
            for name, value in pairs.items():
                click.echo(f"{title}\t{name}\t{value}")
            return
        table = Table(title=title, title_justify="left", show_header=False)
        for name, value in pairs.items():
            table.add_row(name, value)
        self.console.print(table)

    def _table(self, *columns: str) -> Table:
        table = Table()
        for column in columns:
            right = column in ("line", "offset", "sequence")
            table.add_column(SCREEN[column].in_(self.language), justify="right" if right else "left")
        return table


def shown_type(name: str, format_: str) -> str:
    """Give a record's type when it is a code name: of a foreign record, only one that is known; else nothing."""
    if format_ == "foreign":
        return name if name in _FOREIGN_TYPES else ""
    return name if _CODE_NAME.fullmatch(name) else ""


def shown_id(name: str, format_: str) -> str:
    """Give a record's id when it is one: of a foreign record, only a UUID; else nothing."""
    pattern = _UNIQUE_ID if format_ == "foreign" else _IDENTITY
    return name if pattern.fullmatch(name) else ""


def shape(content: Any) -> str:
    """Say what kind of value it is and how large, and nothing of what it says."""
    if isinstance(content, dict):
        return f"object of {len(content):,}"
    if isinstance(content, list):
        return f"list of {len(content):,}"
    if isinstance(content, str):
        return f"text of {len(content):,}"
    return "null" if content is None else "true or false" if isinstance(content, bool) else "number"
