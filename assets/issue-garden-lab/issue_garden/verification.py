"""Runs the commands that decide. Their exit codes and test counts are evidence; nobody's words are (P10, P12)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from issue_garden.answers import blocked
from issue_garden.contract import Command, Contract
from issue_garden.processes import run_program
from issue_garden.task import Task

OLDEST_NODE = 20
_PASSED_LINE = re.compile(r"^# pass (\d{1,9})\r?$", re.MULTILINE)
_PASSING_NAME = re.compile(r"^ok \d+ - (.{1,200}?)\r?$", re.MULTILINE)


@dataclass(frozen=True)
class CommandResult:
    """What one command did. ``tests`` is how many passing tests it reported, None when it reported no number."""

    name: str
    argv: list[str]
    exit_code: int
    timed_out: bool
    seconds: float
    tests: int | None
    passed: bool
    output: str
    dropped_bytes: int

    def as_object(self) -> dict[str, Any]:
        """The result as it stands in an attempt."""
        return dict(vars(self))


def verify(lab: Path, contract: Contract, task: Task, inherit: tuple[int, ...] = ()) -> list[CommandResult]:
    """Run every command of the contract, whichever fails: the evidence should be whole."""
    return [run_command(lab, command, contract, task, inherit) for command in contract.verification]


def run_command(
    lab: Path, command: Command, contract: Contract, task: Task, inherit: tuple[int, ...] = ()
) -> CommandResult:
    """Run one command within its limits. ``{acceptance}`` in its arguments stands for the task's own test."""
    argv = [argument.replace("{acceptance}", task.acceptance) for argument in command.argv]
    done = run_program(
        argv,
        cwd=lab,
        env=clean_environment(),
        seconds=contract.command_seconds,
        output_bytes=contract.output_bytes,
        inherit=inherit,
    )
    tests = _passing_tests(lab, done.output)
    passed = done.exit_code == 0 and not done.timed_out and (tests or 0) >= command.min_tests
    return CommandResult(
        command.name,
        argv,
        done.exit_code,
        done.timed_out,
        done.seconds,
        tests,
        passed,
        done.output,
        done.dropped_bytes,
    )


def _passing_tests(lab: Path, output: str) -> int | None:
    """Return how many tests the runner says passed, None when it says nothing.

    Less the files: one in which Node finds no test to run counts, for Node, as a test that passes under the file's name.
    """
    # The last such line is the runner's own: what a test prints comes before it.
    counts: list[str] = _PASSED_LINE.findall(output)
    if not counts:
        return None
    names: list[str] = _PASSING_NAME.findall(output)
    return max(0, int(counts[-1]) - sum((lab / name).is_file() for name in names))


def clean_environment() -> dict[str, str]:
    """The environment without what silently changes a test run.

    An inherited ``NODE_TEST_CONTEXT`` lets every test file pass unread; ``NODE_OPTIONS``, npm's settings and forced
    colour change what runs or how it prints.
    """
    unwanted = ("NODE_", "NPM_", "FORCE_COLOR", "CLICOLOR_FORCE")
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(unwanted)}
    return kept | {
        "npm_config_userconfig": os.devnull,
        "npm_config_update_notifier": "false",
        "npm_config_logs_max": "0",
    }


def require_tools(contract: Contract) -> None:
    """Stop before anything is claimed when Node, npm or a new enough Node is missing on this machine."""
    for program in ("node", "npm"):
        needed = any(command.argv[0] == program for command in contract.verification)
        if needed and shutil.which(program) is None:
            advice = "安装 Node 20 或更新版本 (install Node 20 or later)"
            raise blocked(
                "environment",
                f"{program}_missing",
                f"{program}: 找不到命令 (there is no such command); {advice}",
            )
    if any(command.argv[0] == "node" for command in contract.verification):
        _require_node_age()


def _require_node_age() -> None:
    node = shutil.which("node") or "node"
    asked = subprocess.run(
        [node, "--version"], env=clean_environment(), capture_output=True, text=True, check=False
    )
    version = re.match(r"v(\d+)\.", asked.stdout)
    if version is None or int(version[1]) < OLDEST_NODE:
        found = asked.stdout.strip() or "无版本号 (no version)"
        advice = "换成 Node 20 或更新版本 (change to Node 20 or later)"
        raise blocked("environment", "node_too_old", f"node: {found} 太旧 (is too old); {advice}")
