"""Sides as cards to look at: calls with answers, the lines on disk, the reader's verdict. HTML without script."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from itertools import islice
from typing import Any

from labkit import words
from labkit.experiments.bench import LOG, NO_ANSWER, Call, Seen, Side
from labkit.views import Outcome, OwnTestsView, ReadReport
from labkit.views.task_state import label
from labkit.words import t

MOST_ROWS = 9
"""More calls or lines than this are shown by their first and last few."""

# Only JupyterLab's own colours, so that light and dark both keep their contrast; signs and words carry the meaning.
STYLE = """<style>
.seen{display:flex;flex-wrap:wrap;gap:12px;color:var(--jp-ui-font-color1);font-size:13px}
.seen section{flex:1 1 300px;min-width:0;border:1px solid var(--jp-border-color1);border-radius:6px;padding:8px 12px}
.seen h4{margin:0 0 6px;font-size:14px}
.seen p{margin:6px 0 2px}
.seen ol,.seen ul{margin:0!important;padding:0!important;list-style:none;font-family:var(--jp-code-font-family);font-size:12px}
.seen li{white-space:pre-wrap;overflow-wrap:anywhere;padding:1px 0}
.seen ol li{word-break:break-all}
.seen .n{color:var(--jp-ui-font-color2);user-select:none}
.seen-table th,.seen-table td{text-align:left!important}
.seen .typed{font-weight:600;margin-top:4px}
.seen .torn{text-decoration:underline wavy}
</style>"""


def cards(seen: Seen) -> str:
    """Return one card a side, next to each other where the window is wide enough."""
    return f'{STYLE}<div class="seen">{"".join(_card(side, _agreement(side, seen)) for side in seen.sides)}</div>'


def _agreement(side: Side, seen: Seen) -> str:
    """Compare the learner's answers with the reference's; nothing to say about other sides, or before they exist."""
    kit = next((other for other in seen.sides if other.name == "kit"), side)
    if side.name != "yours" or side.unfinished or kit.unfinished:
        return ""
    for mine, reference in zip(side.calls, kit.calls, strict=False):
        if mine.answer != reference.answer:
            return f"≠ {t('seen.differs', call=mine.text)}"
    return f"= {t('seen.same')}" if side.log == kit.log else f"≠ {t('seen.differs', call=LOG)}"


def _card(side: Side, agreement: str) -> str:
    parts = [f"<h4>{escape(_title(side.name))}</h4>"]
    if side.calls:
        parts += ["<ul>", *shortened([_call(call) for call in side.calls]), "</ul>"]
    if agreement:
        parts.append(f"<p>{escape(agreement)}</p>")
    if side.unfinished:
        words = "left-out.cell" if side.name == "kit" else "seen.unfinished"
        parts.append(f"<p>○ {escape(t(words, message=side.unfinished))}</p>")
    for name, raw in side.files.items():
        parts.append(file_listing(name, raw, side.report if name == LOG else None))
    if not side.files and not side.unfinished:
        parts.append(f"<p>{escape(t('seen.nothing'))}</p>")
    return f"<section>{''.join(parts)}</section>"


def _title(name: str) -> str:
    return f"{t('seen.naive')} · {name}" if name.endswith("Store") else t(f"seen.{name}")


def _call(call: Call) -> str:
    if call.answer == NO_ANSWER:
        return f"<li>· {escape(call.text)}</li>"
    failed = isinstance(call.answer, str) and "Error" in call.answer
    return f"<li>{'✗' if failed else '✓'} {escape(call.text)} → {escape(_answer(call.answer))}</li>"


def _answer(answer: object) -> str:
    if isinstance(answer, list) and len(answer) > MOST_ROWS:
        return f"[{', '.join(map(str, answer[:3]))}, … {answer[-1]}]"
    return str(answer)


def file_listing(name: str, raw: bytes, report: ReadReport | None = None) -> str:
    """Return a file line by line, and the reader's verdict where there is one; what is torn is underlined."""
    *ended, last = raw.split(b"\n")
    rows = [_line(number, line, ends=True) for number, line in enumerate(ended, start=1)]
    if last:
        torn = report is not None and report.outcome is Outcome.TORN
        rows.append(_line(len(rows) + 1, last, ends=False, torn=torn))
    heading = escape(t("seen.file", name=name, size=len(raw)))
    verdict = f"<p>{escape(_verdict(report))}</p>" if report else ""
    return f"<p>{heading}</p><ol>{''.join(shortened(rows))}</ol>{verdict}"


def _line(number: int, raw: bytes, *, ends: bool, torn: bool = False) -> str:
    text = escape(readable(raw))
    shown = f'<span class="torn">{text}</span>' if torn else text
    return (
        f'<li><span class="n">{number:>3} │ </span>{shown}<span class="n">{"⏎" if ends else ""}</span></li>'
    )


def readable(raw: bytes) -> str:
    """Return bytes as text in which nothing is hidden: what is not UTF-8, or not printable, shows as an escape."""
    text = raw.decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shortened(rows: list[str]) -> list[str]:
    """Return rows, or their first and last few with a word on how many were left out."""
    if len(rows) <= MOST_ROWS:
        return rows
    left_out = t("seen.more", n=len(rows) - MOST_ROWS + 1)
    return [*islice(rows, MOST_ROWS - 3), f'<li class="n">… {escape(left_out)}</li>', *rows[-2:]]


def _verdict(report: ReadReport) -> str:
    if report.outcome is Outcome.CORRUPT:
        return f"✗ {t('report.corrupt', line=report.line)}: {report.reason}"
    if report.outcome is Outcome.UNREADABLE:
        return f"✗ {t('report.unreadable', reason=report.reason)}"
    if report.outcome is Outcome.TORN:
        return f"✓ {t('report.torn', events=len(report.events))}"
    key = "report.absent" if report.outcome is Outcome.ABSENT else "report.whole"
    return f"✓ {t(key, events=len(report.events))}"


def replay_table(rows: tuple[tuple[int, str, dict[str, str]], ...]) -> str:
    """Return the state after each event as a table: one row an event, one column a task."""
    language = words.language()
    tasks = list(rows[-1][2]) if rows else []
    head = [t("seen.sequence"), t("seen.event"), *tasks]
    body = [
        [str(sequence), label(type_, language), *(label(state.get(task, "·"), language) for task in tasks)]
        for sequence, type_, state in rows
    ]
    return table(head, body)


def label_table(labels: dict[str, dict[str, str]], hashes: dict[str, str]) -> str:
    """Return event codes beside their display words, and the log's hash as each language saw it."""
    languages = list(labels)
    body = [[code, *(labels[language][code] for language in languages)] for code in labels[languages[0]]]
    return table(
        [t("seen.code"), *languages],
        [*body, [t("seen.hash"), *(hashes[name][:16] + "…" for name in languages)]],
    )


def graded_table(graded: dict[str, list[dict[str, Any]]]) -> str:
    """Return the tests as rows, with one column for each folder that was graded."""
    names, language = list(graded), words.language()
    body = [
        [test["title"][language], *(_ended(graded[name][row], language) for name in names)]
        for row, test in enumerate(graded[names[0]])
    ]
    return table([t("check.required"), *names], body)


def gate_table(tests: Iterable[dict[str, Any]], mutants: Iterable[dict[str, Any]]) -> str:
    """Return the mutants as rows and the tests as columns: which stopped which, and which was meant to."""
    language, columns = words.language(), list(tests)
    rows = [
        [mutant["idea"][language], *(_stopped(test["id"], mutant) for test in columns)] for mutant in mutants
    ]
    legend = "".join(
        f"<li><code>{escape(test['id'])}</code> {escape(test['title'][language])}</li>" for test in columns
    )
    key = escape(t("seen.gate-key"))
    shown = table([t("seen.mutant"), *(test["id"].removeprefix("22-") for test in columns)], rows)
    return f"{shown}<p>{key}</p><details><summary>{escape(t('seen.gate-tests'))}</summary><ul>{legend}</ul></details>"


def _stopped(test: str, mutant: dict[str, Any]) -> str:
    if test not in mutant["failed"]:
        return "·"
    return "✗!" if test == mutant["caught_by"] else "✗"


def own_tests_card(file: str, view: OwnTestsView) -> str:
    """Return what became of a learner's own tests: which stops which store, or what is wrong with them, and what next."""
    parts = [f"<p>{escape(t('mine.file', file=file))}</p>"]
    if view.rows:
        legend = "".join(f"<li><code>{escape(name)}</code> {escape(said)}</li>" for name, said in view.tests)
        parts.append(f"{table(view.head, view.rows)}<p>{escape(t('mine.key'))}</p><ol>{legend}</ol>")
    if view.explained:
        rules = "".join(f"<li>{escape(rule)}</li>" for rule in view.rules)
        parts.append(f"<p>{escape(view.explained)}</p><ul>{rules}</ul>")
    parts += [f"<p>✗ <code>{escape(test)}</code> {escape(said)}</p>" for test, said in view.wrong]
    return "".join([*parts, f"<p><strong>{escape(view.message)}</strong></p>"])


def _ended(test: dict[str, Any], language: str) -> str:
    if test["status"] == "pass":
        return f"✓ {t('check.pass')}"
    return f"✗ {test['message'][language] if test['message'] else t('check.fail')}"


def named_list(items: dict[str, str]) -> str:
    """Return names and what each stands for, one a line."""
    rows = "".join(f"<li><strong>{escape(name)}</strong> {escape(text)}</li>" for name, text in items.items())
    return f'{STYLE}<div class="seen"><section><ul>{rows}</ul></section></div>'


def table(head: Iterable[str], body: Iterable[Iterable[str]]) -> str:
    """Return texts as a table with a heading row."""
    columns = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in body)
    return f"{STYLE}<table class='seen-table'><thead><tr>{columns}</tr></thead><tbody>{rows}</tbody></table>"
