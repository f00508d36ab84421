"""Code that owns the line answers a free question with any JSON: that earns nothing, and is never the grader's own error."""

from __future__ import annotations

import pytest

from grader.grade import grade_handin
from grader.intake import Handin, take
from grader.settings import load_settings
from grader.suites import load_suite
from grader.suites.mutants.lesson_04 import ROUND, STORE
from tests.piped import SOLUTION as RIGHT_22
from tests.test_forged_spines import SOLUTION as RIGHT_04
from tests.test_forged_spines import hand_in

SCENARIOS_GIVE = """
import builtins
compile_really = builtins.compile

def compile_it(source, name, *rest, **options):
    if name == "<scenario>":
        source = "async def scenario(lesson, folder, given):\\n    return {answer}\\n"
    return compile_really(source, name, *rest, **options)

builtins.compile = compile_it
"""
LAYER_TELLS = """
import sys
if "file_layer" in sys.modules:
    sys.modules["file_layer"].log = lambda: [5]
"""
ROUND_TELLS = """
import os
for number in range(3, 64):
    try:
        os.write(number, b'{told}')
    except OSError:
        pass
os._exit(0)
"""


def reasons_22(code: str) -> dict[str, str]:
    """Grade the right store behind `code`; give the reason of what did not pass, by check."""
    files = {path.name: path.read_bytes() for path in RIGHT_22.glob("*.py")}
    files["__init__.py"] = code.encode() + files["__init__.py"].replace(
        b"from __future__ import annotations", b""
    )
    _, outcome = grade_handin(Handin("22", files), load_suite("22").checks, load_settings())
    return {test.check.id: test.finding.reason for test in outcome.tests if not test.passed}


@pytest.mark.parametrize("answer", ["None", "5", "[1]", "{'a': {}}", "'x'"])
def test_a_scenario_that_answers_anything_fails(answer):
    """Whatever JSON stands where a scenario's answer is due, the checks that asked for it fail."""
    reasons = reasons_22(SCENARIOS_GIVE.replace("{answer}", answer))

    assert set(reasons.values()) == {"fail"}


def test_a_layer_that_tells_anything_fails_or_does_not_matter():
    """What the file layer is made to tell is the child's word: no check rests on its shape alone."""
    assert set(reasons_22(LAYER_TELLS).values()) <= {"fail"}


@pytest.mark.parametrize(
    "told", ['{"log":5}', '{"value":7,"log":[]}', '{"error":{"types":3}}', '{"loaded":true}']
)
def test_a_round_that_tells_anything_fails(told, tmp_path):
    """The same for what a process of lesson 04 says about itself."""
    store = (RIGHT_04 / STORE).read_text("utf-8")
    body = "def run_round(*_, **__):" + ROUND_TELLS.replace("{told}", told).replace("\n", "\n    ")
    source = (RIGHT_04 / ROUND).read_text("utf-8") + f"\n\n{body}\n"
    suite = load_suite("04")

    _, outcome = grade_handin(hand_in(tmp_path, store, source), suite.required, load_settings())

    assert "error" not in {test.finding.status for test in outcome.tests}
    assert not outcome.ok


def test_hand_ins_are_what_they_were():
    """The right store without an attack in front passes: what fails above fails by the attack."""
    assert reasons_22("") == {}
    assert take(RIGHT_22.parent, "22").problem is None
