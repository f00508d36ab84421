"""Runs one round that remembers (lesson 4).

python tools/run_once.py                                          the simulated agent
python tools/run_once.py --simulate-interruption-after-claim      claim, then end on purpose (exit code 75)
python tools/run_once.py -- my-agent --print "{prompt}"           any coding agent's command line
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

LAB = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(LAB))  # started as a file, Python looks beside it only

from issue_garden.agents import Agent, CommandAgent, SimulatedAgent  # noqa: E402
from issue_garden.answers import Answer  # noqa: E402
from issue_garden.command_line import JsonParser, end_with  # noqa: E402
from issue_garden.stateful_round import run_round  # noqa: E402


def main() -> Answer:
    """Read the command line and do one round."""
    parser = JsonParser(
        prog="run_once.py",
        usage="run_once.py [-h] [--simulate-interruption-after-claim] [-- COMMAND [ARGUMENT ...]]",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--simulate-interruption-after-claim", action="store_true", help="end after the claim, exit code 75"
    )
    own, dashes, command = _split(sys.argv[1:])
    options = parser.parse_args(own)
    if dashes and not command:
        parser.error("-- 之后应有命令 (a command belongs behind --)")
    if command and not CommandAgent(tuple(command)).startable(LAB):
        parser.error(f"{command[0]}: 没有这个程序 (no such program)")
    agent: Agent = CommandAgent(tuple(command)) if command else SimulatedAgent()
    return run_round(LAB, agent, interrupt_after_claim=options.simulate_interruption_after_claim)


def _split(arguments: list[str]) -> tuple[list[str], bool, list[str]]:
    """Everything behind the first ``--`` is the agent's own."""
    if "--" not in arguments:
        return arguments, False, []
    at = arguments.index("--")
    return arguments[:at], True, arguments[at + 1 :]


if __name__ == "__main__":
    end_with(main)
