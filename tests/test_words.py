"""The catalogue: every text in both languages, and no key that nobody wrote."""

from __future__ import annotations

import re
import string
from pathlib import Path

import pytest

from labkit import words

KIT = Path(words.__file__).resolve().parent


@pytest.fixture(autouse=True)
def _no_language(monkeypatch: pytest.MonkeyPatch) -> None:
    """No language is chosen, by nothing and nobody."""
    monkeypatch.setattr(words, "_chosen", [])
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    monkeypatch.delenv("LAB_LANG", raising=False)


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_every_text_stands_in_both_languages_with_the_same_fields() -> None:
    """A text that lacks a language, or a field in one of them, is not finished."""
    unfinished = [
        key
        for key, texts in words.catalogue().items()
        if set(texts) != set(words.LANGUAGES) or fields(texts["zh"]) != fields(texts["en"])
    ]

    assert unfinished == []


def test_every_key_that_is_written_out_in_the_code_exists() -> None:
    """`t("…")` with a plain key never fails in front of a learner."""
    used = {
        key
        for path in KIT.rglob("*.py")
        for key in re.findall(r'(?<![\w.])t\(\s*"([\w.-]+)"', path.read_text("utf-8"))
    }

    assert used
    assert used - set(words.catalogue()) == set()


def test_a_number_brings_its_noun() -> None:
    """One byte, two bytes, and thousands with their comma."""
    words.use("en")

    assert words.t("bytes.torn", n=1) == "1 byte torn"
    assert words.t("bytes.torn", n=2048) == "2,048 bytes torn"
    assert words.t("bytes.torn", n=0) == "0 bytes torn"


def test_an_unknown_key_is_an_error_that_names_it() -> None:
    """A text that nobody wrote is the developer's mistake, and says where to write it."""
    with pytest.raises(LookupError, match=r"words\.toml: no text for 'no\.such\.key'"):
        words.t("no.such.key")


@pytest.mark.parametrize(
    ("session", "lang", "expected"),
    [
        ("notebooks/zh/22-task-state.ipynb", "en", "zh"),
        ("notebooks/en/22-task-state.ipynb", "zh_CN", "en"),
        ("work.ipynb", "zh_CN", "zh"),
        ("", "en_GB", "en"),
    ],
)
def test_the_notebook_decides_then_lab_lang(monkeypatch, session: str, lang: str, expected: str) -> None:
    """The folder of the notebook that the kernel runs for comes first, then LAB_LANG."""
    monkeypatch.setenv("JPY_SESSION_NAME", session)
    monkeypatch.setenv("LAB_LANG", lang)

    assert words.language() == expected


def test_a_language_that_was_chosen_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """`use` wins over everything; a language that nobody wrote is refused."""
    monkeypatch.setenv("LAB_LANG", "en")
    words.use("zh")

    assert words.language() == "zh"
    with pytest.raises(ValueError, match="'fr' is not one of zh, en"):
        words.use("fr")
