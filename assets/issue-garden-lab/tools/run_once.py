"""Runs one round without a memory (lesson 3): python tools/run_once.py"""

from __future__ import annotations

import sys
from pathlib import Path

LAB = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(LAB))  # started as a file, Python looks beside it only

from issue_garden.agents import SimulatedAgent  # noqa: E402
from issue_garden.answers import answer_of, print_answer  # noqa: E402
from issue_garden.one_round import run_one_round  # noqa: E402

if __name__ == "__main__":
    sys.exit(print_answer(answer_of(lambda: run_one_round(LAB, SimulatedAgent()))))
