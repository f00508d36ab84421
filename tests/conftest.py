"""Options of the pytest adapter: which folder the suites judge, over which transport, with which draw."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("suites", "the lessons' suites (tests/test_suite_*.py)")
    group.addoption(
        "--target", default="solution", help="starter, solution, or a folder that holds lesson_22/"
    )
    group.addoption(
        "--transport",
        choices=("direct", "pipe"),
        default="direct",
        help="direct: in this process, for a debugger; pipe: boxed, as every verdict is made",
    )
    group.addoption("--seed", default="", help="repeat the draw of a run that failed")
