"""Closes a task by a person's decision (lesson 4): python tools/close_task.py ID --reason TEXT"""

from __future__ import annotations

import sys
from pathlib import Path

LAB = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(LAB))  # started as a file, Python looks beside it only

from issue_garden.answers import Answer  # noqa: E402
from issue_garden.closing import close_task  # noqa: E402
from issue_garden.command_line import JsonParser, end_with  # noqa: E402


def main() -> Answer:
    """Read the command line and close the task."""
    parser = JsonParser(prog="close_task.py", description=__doc__, allow_abbrev=False)
    parser.add_argument("id", help="任务 ID (the task's id)")
    parser.add_argument("--reason", required=True, help="为什么关闭 (why it is closed)")
    options = parser.parse_args()
    return close_task(LAB, options.id, options.reason)


if __name__ == "__main__":
    end_with(main)
