"""Every text that a widget or a notebook shows, in Chinese and English, from one catalogue: ``words.toml``.

``t("report.torn", torn=37)`` gives the text in the reader's language. Which one: the one set by ``use``, else that of
the notebook the kernel was started for (``notebooks/zh/…``), else ``LAB_LANG``, else the system's.
"""

from __future__ import annotations

import os
import tomllib
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from labkit import workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

LANGUAGES = ("zh", "en")

_CATALOGUE = Path(__file__).with_name("words.toml")
_chosen: list[str] = []


class _Count(int):
    """A number that brings its noun: ``{torn:byte|bytes}`` gives ``1 byte`` or ``2,048 bytes``."""

    def __format__(self, spec: str) -> str:
        if "|" not in spec:
            return format(int(self), spec or ",")
        one, many = spec.split("|")
        return f"{int(self):,} {one if self == 1 else many}"


def use(language: str) -> None:
    """Show everything made from now on in ``zh`` or ``en``. Raises: ValueError for any other language."""
    if language not in LANGUAGES:
        raise ValueError(f"language: {language!r} is not one of {', '.join(LANGUAGES)}; choose one of these")
    _chosen[:] = [language]


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Show everything made in this block in one language. Raises: ValueError for a language that nobody wrote."""
    before = _chosen[:]
    use(language)
    try:
        yield
    finally:
        _chosen[:] = before


def language() -> str:
    """Return the language in use, ``zh`` or ``en``."""
    if _chosen:
        return _chosen[0]
    return _of_notebook(os.environ.get("JPY_SESSION_NAME", "")) or workspace.language()


@cache
def _of_notebook(path: str) -> str:
    return next((part for part in reversed(Path(path).parts) if part in LANGUAGES), "")


def t(key: str, **fields: object) -> str:
    """Return the text for ``key`` with its fields filled in. Raises: LookupError naming a key that nobody wrote."""
    try:
        text = catalogue()[key][language()]
    except KeyError:
        raise LookupError(
            f"words.toml: no text for {key!r} in {language()!r}; write it in both languages"
        ) from None
    return text.format(
        **{name: _Count(value) if type(value) is int else value for name, value in fields.items()}
    )


@cache
def catalogue() -> dict[str, dict[str, str]]:
    """Return the whole catalogue: dotted key → language → text."""
    found: dict[str, dict[str, str]] = {}

    def collect(prefix: str, table: dict[str, object]) -> None:
        for name, value in table.items():
            if isinstance(value, dict):
                collect(f"{prefix}{name}.", value)
            else:
                found.setdefault(prefix.removesuffix("."), {})[name] = str(value)

    collect("", tomllib.loads(_CATALOGUE.read_text("utf-8")))
    return found
