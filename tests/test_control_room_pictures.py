"""Pictures of lesson 04 without a browser: what reaches the page is plain values, in both languages."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from labkit import widgets, words
from labkit.widgets import parts
from labkit.widgets.crash_dial import CrashDial
from labkit.widgets.spine_board import SpinePart

STATE = {"task_id": "issue-002", "status": "active", "phase": "claimed", "round": 1, "updated_at": ""}


def strike(number: int, decision: str) -> Any:
    point = SimpleNamespace(number=number, op="write", path="a")
    answer = {"decision": decision, "reason": "r"}
    return SimpleNamespace(point=point, phase=None, answer=answer, starts=0, once=True, whole=True)


def pictures() -> list[SpinePart]:
    end = SimpleNamespace(exit_code=3, decision="blocked", reason="r", cause="c", message="m")
    return [
        widgets.phase_diagram(STATE),
        widgets.crash_matrix([strike(1, "completed"), strike(2, "blocked")]),
        widgets.refusal_table({"delete-claim": end, "of my own": end}),
    ]


@pytest.mark.parametrize("language", words.LANGUAGES)
def test_pictures_are_plain_values_in_the_readers_language(language: str) -> None:
    """Everything on the page came through JSON; no text is left in the other language, no script without its style."""
    words.use(language)
    for picture in pictures():
        shown = json.dumps([picture.view, picture.words], ensure_ascii=False)
        assert any("\u4e00" <= letter <= "\u9fff" for letter in shown) is (language == "zh")
        assert ".lab-phases" in picture._css
        assert "import {" not in picture._esm


def test_a_title_of_ones_own() -> None:
    """A notebook may say better what its picture is about."""
    words.use("en")

    assert widgets.crash_matrix([strike(1, "idle")], "Mine").words["title"] == "Mine"
    assert widgets.refusal_table({}, "Mine").words["title"] == "Mine"


def test_the_dial_is_a_slider_that_moves_without_choosing(tmp_path) -> None:
    """It shares its traits with every slider of the kit; before a page shows it there is nothing to choose."""
    dial = CrashDial(tmp_path)

    assert isinstance(dial, parts.Slider)
    assert (dial.high, dial.value, dial.seen, dial.counting) == (0, 1, False, None)
