"""Released packages under the crash lab: the page's table is what the real command finds today."""

from __future__ import annotations

import pytest

from tests.crash_packages import table


def page_lines() -> list[str]:
    return table.table_of_page().splitlines(keepends=True)[2:]


def test_the_page_speaks_of_the_releases_that_are_locked():
    """One row for each package and model, in this order, with the version of requirements-crashlab.lock."""
    versions = table.versions()
    due = [
        f"| {package} {versions[package]} | `{model}` |"
        for package in table.SCENARIOS
        for model in table.MODELS
    ]

    assert [line[: len(start)] for line, start in zip(page_lines(), due, strict=True)] == due


@pytest.mark.proof
def test_the_page_is_what_the_command_finds():
    """Explored, possible, verdict and every id are as written, and every counterexample fails again when it is replayed."""
    rows = list(table.rows())

    assert [table.line(row) for row in rows] == page_lines()
    assert {code for row in rows for code in row.replayed if row.found["verdict"] != "not-seen"} == {1}
