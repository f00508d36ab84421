"""The promises of the crash lab, each by itself: what keeps it, and what breaks it and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from labkit.faults.crash import promises
from labkit.faults.crash.promises import LOG, STATE_FILE, Facts
from labkit.faults.crash.scenarios import STORES, scenario_path
from labkit.faults.crash.spine_promises import SPINE_PROMISES

ROOT = Path(__file__).resolve().parent.parent

FOUR = Facts(attempted=(1, 2, 3, 4), acknowledged=(1, 2))
NOTHING = Facts((), ())


def log(*read: object, after: list[Any] | None = None, **other: Any) -> dict[str, Any]:
    return {"read": list(read), "after": [*read, "after-crash"] if after is None else after, **other}


@pytest.mark.parametrize("read", [(1, 2), (1, 2, 3), (1, 2, 3, 4)])
def test_a_log_that_has_all_that_was_said_keeps_every_promise(read: tuple[int, ...]) -> None:
    """What was acknowledged, and any beginning of what was under way."""
    assert promises.broken(LOG, FOUR, log(*read)) == ()


@pytest.mark.parametrize(
    ("facts", "report", "broken"),
    [
        (FOUR, {"ended": "died of signal 9"}, ("recovery-ends",)),
        (FOUR, {"read": None, "error": "CorruptLogError", "after": None}, ("readable",)),
        (FOUR, log(1), ("acknowledged-survive",)),
        (FOUR, log(), ("acknowledged-survive",)),
        (FOUR, log(1, 2, 2), ("nothing-invented", "contiguous")),
        (FOUR, log(1, 2, "\0\0"), ("nothing-invented",)),
        (FOUR, log(1, 2, 4), ("contiguous",)),
        (FOUR, log(2, 1), ("contiguous",)),
        (FOUR, log(1, 2, after=[1, 2]), ("goes-on",)),
        (FOUR, log(1, 2, after=[1, "after-crash"]), ("goes-on",)),
        (FOUR, {"read": [1, 2], "error": "CorruptLogError", "after": None}, ("goes-on",)),
    ],
)
def test_a_log_breaks_the_promise_that_is_meant(
    facts: Facts, report: dict[str, Any], broken: tuple[str, ...]
) -> None:
    """Each way to fail has its promise; what cannot be judged any more is not said to be broken."""
    assert promises.broken(LOG, facts, report) == broken


def test_a_refused_value_leaves_no_hole() -> None:
    """The disk refused 2, and the caller was told: 1, 3 is whole; and 1, 2, 3 too, as the refusal may have come late."""
    facts = Facts(attempted=(1, 2, 3), acknowledged=(1, 3), refused=(2,))

    assert promises.broken(LOG, facts, log(1, 3)) == ()
    assert promises.broken(LOG, facts, log(1, 2, 3)) == ()
    assert promises.broken(LOG, facts, log(1)) == ("acknowledged-survive",)


@pytest.mark.parametrize(
    ("read", "broken"),
    [([2], ()), ([4], ()), ([1], ("saved-survives",)), ([], ("saved-survives",)), (None, ("readable",))],
)
def test_a_state_file_never_goes_back(read: list[int] | None, broken: tuple[str, ...]) -> None:
    """The last state that was said to be saved or a later one: neither an older one, nor none, nor half of one."""
    assert promises.broken(STATE_FILE, FOUR, {"read": read}) == broken
    assert promises.broken(("saved-survives",), NOTHING, {"read": []}) == ()


def test_files_that_speak_of_one_thing_are_in_step() -> None:
    """Two files that differ break the promise, two that agree keep it."""
    assert promises.broken(("in-step",), FOUR, {"read": [3, 3]}) == ()
    assert promises.broken(("in-step",), FOUR, {"read": [3, 2]}) == ("in-step",)


def test_an_unknown_promise_is_named() -> None:
    """A scenario that promises what nobody judges is wrong, and is told what there is."""
    with pytest.raises(LookupError, match="'durable'; choose from recovery-ends, work-ends"):
        promises.broken(("durable",), FOUR, log(1, 2))


@pytest.mark.parametrize("store", STORES)
def test_every_store_has_its_scenario_and_its_row(store: str) -> None:
    """A name that can be asked for leads to a file, and the table says under which models it promises something."""
    assert scenario_path(store).is_file()
    assert set(promises.PROMISED[store]) <= set(promises.ALL_MODELS)
    assert promises.promised(store, "kill")


def test_what_is_promised_where_is_as_designed() -> None:
    """Without a sync nobody promises anything of power loss; a scenario of the learner's own promises under all models."""
    unsynced = ("naive", "starter", "lesson", "durable-os")

    assert not any(promises.promised(store, model) for store in unsynced for model in ("ordered", "weak"))
    assert all(promises.promised("my-own", model) for model in promises.ALL_MODELS)


def test_the_page_shows_the_table_that_the_code_has() -> None:
    """docs/crash-lab.md says who promises what by the very table that decides the exit code."""
    page = (ROOT / "docs" / "crash-lab.md").read_text("utf-8")
    shown = page.partition("<!-- promised: begin -->\n")[2].partition("\n<!-- promised: end -->")[0]

    assert shown == promises.table(), f"put this table there:\n{promises.table()}"


def test_the_page_explains_every_promise() -> None:
    """A promise that the command can name is explained on the page, or in the spine's own file."""
    page = (ROOT / "docs" / "crash-lab.md").read_text("utf-8")

    assert [
        name for name in promises.PROMISES if f"`{name}`" not in page and name not in SPINE_PROMISES
    ] == []


def test_equal_values_are_kept_as_often_as_they_were_said() -> None:
    """Three beats of which one is left are a loss, though the value is there."""
    facts = Facts(attempted=("beat",) * 4, acknowledged=("beat",) * 3)

    assert promises.broken(("acknowledged-survive",), facts, log("beat")) == ("acknowledged-survive",)
    assert promises.broken(("acknowledged-survive",), facts, log("beat", "beat", "beat")) == ()


def test_a_state_that_comes_again_is_no_licence_to_go_back() -> None:
    """Off, on, off, and nothing after it: `on` is an older state, though `off` was first saved before it."""
    facts = Facts(attempted=("off", "on", "off"), acknowledged=("off", "on", "off"))

    assert promises.broken(STATE_FILE, facts, {"read": ["on"]}) == ("saved-survives",)
    assert promises.broken(STATE_FILE, facts, {"read": ["off"]}) == ()


def test_a_state_that_only_the_failed_run_saved_is_judged_too() -> None:
    """Values with a time in them differ from run to run: the last that was said is the last."""
    facts = Facts(attempted=("10:01", "10:02"), acknowledged=("10:07",))

    assert promises.broken(STATE_FILE, facts, {"read": ["10:07"]}) == ()
    assert promises.broken(STATE_FILE, facts, {"read": ["09:00"]}) == ("saved-survives",)


@pytest.mark.parametrize("name", sorted({*LOG, *STATE_FILE, "in-step"} - {"recovery-ends", "readable"}))
def test_whoever_promises_what_is_read_promises_that_it_can_be_read(name: str) -> None:
    """A recovery that reads nothing at all would keep every other promise."""
    assert promises.broken((name,), FOUR, {"read": None, "error": "AttributeError"}) == ("readable",)
