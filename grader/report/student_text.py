"""What students chose (names, paths, what their errors say), made harmless for the form that shows it.

`legible` comes first, everywhere: no character acts, and none hides. After it each form has its own danger: a cell
that a spreadsheet computes, a character that Markdown reads as markup. HTML escapes by its template, JSON and XML by
their writers.
"""

from __future__ import annotations

import re
import unicodedata

_JOINERS = "\u200c\u200d"
"""Part of how Persian, Hindi and some emoji are spelled; they join letters and turn nothing around."""
_COMPUTED = "=+-@\uff0b\uff0d\uff1d\uff20"
"""What a spreadsheet takes for the beginning of a formula, full-width forms included."""
_MARKUP = re.compile(
    r"([\\`*_\[\]<>#|~&@!$^{}])|(?<=\d)([.)])(?=\s|$)|(?<=www)(\.)|(:)(?=//)|^([-+=])", re.IGNORECASE
)


def legible(text: str, most: int = 0) -> str:
    """Show every character that would act or hide as an escape: controls, turns of direction, halves of a pair.

    A line break stays one. With `most`, a longer text is cut to that many characters, the last of them "…".
    """
    shown = "".join(letter if _is_harmless(letter) else _escape(letter) for letter in text)
    return f"{shown[: most - 1]}…" if most and len(shown) > most else shown


def one_line(text: str, most: int = 0) -> str:
    """Give `legible` text whose line breaks are escapes too."""
    return legible(text, most).replace("\n", "\\n")


def _is_harmless(letter: str) -> bool:
    if letter == "\n" or letter in _JOINERS:
        return True
    if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return False
    return (
        ord(letter) & 0xFFFE != 0xFFFE and not 0xFDD0 <= ord(letter) <= 0xFDEF
    )  # in Unicode, and in XML 1.0


def _escape(letter: str) -> str:
    return letter.encode("unicode_escape", "surrogatepass").decode("ascii")


def cell(text: str) -> str:
    """Give text as a cell of a CSV file that no spreadsheet computes: what looks like a formula begins with a quote."""
    shown = one_line(text)
    return f"'{shown}" if shown.lstrip()[:1] in tuple(_COMPUTED) else shown


def markdown(text: str) -> str:
    """Give text as one line of Markdown that shows what it says: no markup, no link, no mention."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(legible(text).split()))
