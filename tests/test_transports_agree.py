"""One suite, two transports: both say the same of the solution and of the untouched starter (G11, law 4).

The mutants and the right code in other styles are compared in `test_mutants.py`.
"""

from __future__ import annotations

import pytest

from grader.suites import load_suite
from tests.piped import KIT
from tests.suite_run import in_process, over_the_pipe

SUITE = load_suite("22")


@pytest.mark.parametrize("name", ["right", "untouched-starter"])
def test_both_transports_agree_check_by_check(name, tmp_path):
    """The solution passes every check, the untouched starter is told "not implemented", both ways."""
    submission = KIT / "assets" / "sample-class" / name
    piped = {id_: found.reason for id_, found in over_the_pipe(submission, SUITE.checks).items()}
    direct = {
        check.id: _reason(in_process(check, submission / "lesson_22", tmp_path / check.id, 1))
        for check in SUITE.checks
    }

    assert piped == direct
    assert {piped[check.id] for check in SUITE.required} == {"" if name == "right" else "not-implemented"}


def _reason(error):
    if error is None:
        return ""
    return "not-implemented" if isinstance(error, NotImplementedError) else "fail"
