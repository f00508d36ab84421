"""What the pages for people name is there: make targets, doors with their options, modules, files."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import click
import pytest

from labkit import cli

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "README.zh.md", "docs/contributing.md", "docs/instructor.md")
A_READERS_OWN = {"class/", "class-2026/", "conftest.py"}  # what stands for the reader's, or a student's
MADE = (".venv/", "out/", "feedback/", "gradescope/", "junit/", "results/", "class-records/")
"""Where commands put what they make: it is not there before."""

each_page = pytest.mark.parametrize("page", PAGES)


def code_of(page: str) -> list[str]:
    """Give every piece of code on a page: spans, and the lines of fences without their comments."""
    text = (ROOT / page).read_text("utf-8")
    fences = re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    lines = [re.sub(r"\s+#.*", "", line) for fence in fences for line in fence.splitlines()]
    return [code for code in [*lines, *re.findall(r"`([^`\n]+)`", prose)] if code.strip()]


def calls_of(page: str, command: str) -> list[list[str]]:
    """Give the words after `command` wherever a page calls it."""
    calls = []
    for code in code_of(page):
        found = re.search(rf"(?:^|\s|/){command}(?:\s+(.*))?$", code)
        if found:
            calls.append(shlex.split(found[1] or ""))
    return calls


@each_page
def test_every_make_target_exists(page: str) -> None:
    """`make X Y=…`: X is a target, and Y a variable that the Makefile uses."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    words = [word for call in calls_of(page, "make") for word in call]

    assert words
    for word in words:
        name, is_setting, _ = word.partition("=")

        assert f"$({name})" in makefile if is_setting else name in targets, f"{page}: make {word}"


@each_page
def test_every_door_and_option_exists(page: str) -> None:
    """`statelab X --y`: X opens, and has an option y."""
    for words in calls_of(page, "statelab"):
        command: click.Command = cli.main
        for word in words:
            if isinstance(command, click.Group):
                inner = command.get_command(click.Context(command), word)

                assert inner is not None, f"{page}: statelab {word}"
                command = inner
        known = {name for option in command.get_params(click.Context(command)) for name in option.opts}

        assert {word for word in words if word.startswith("-")} - known - {"--help"} == set(), (
            f"{page}: {words}"
        )


@each_page
def test_every_module_exists(page: str) -> None:
    """`python -m X`: X can be found."""
    for words in calls_of(page, r"python3? -m"):
        assert importlib.util.find_spec(words[0]), f"{page}: python -m {words[0]}"


@each_page
def test_every_file_exists(page: str) -> None:
    """Links and paths lead somewhere, seen from the page or from the kit's root."""
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text("utf-8"))
    words = [word for code in code_of(page) for word in code.split()]
    paths = {word for word in words if re.fullmatch(r"[\w.-]+(/[\w.-]*)+|[\w-]+\.(md|lock|toml|py)", word)}
    missing = {
        name
        for name in {*links, *paths} - A_READERS_OWN
        if not name.startswith(MADE)
        and not ((ROOT / page).parent / name).exists()
        and not (ROOT / name).exists()
    }

    assert missing == set()


def test_both_languages_give_the_same_commands() -> None:
    """The READMEs differ in prose only: the code on them is the same, but for the language that is asked for."""
    english, chinese = (
        {code.replace("LAB_LANG=zh ", "").strip() for code in code_of(page)}
        for page in ("README.md", "README.zh.md")
    )

    assert english == chinese
