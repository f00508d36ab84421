"""Does any test notice? Every small change that mutmut can make to record, chain, reader and repair of `durable_log`.

    python -m tests.mutation [--children N] [--keep]

Fails below 85 % of the mutants found, on a survivor that tests/golden/mutation-survivors.toml gives no reason for, and on
an entry there that survives no longer. Works on a copy under build/, with the tests that need no second process.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

import click

ROOT = Path(__file__).resolve().parent.parent
COPY = ROOT / "build" / "mutation"
KNOWN = ROOT / "tests" / "golden" / "mutation-survivors.toml"
LEAST_SCORE = 85
"""Percent of the mutants that the tests have to find."""

PACKAGE = Path("solution/durable_log")
MUTATED = ("record", "reading", "strict_json", "repair", "log_repair")
TESTS = (
    "tests/test_durable_record.py",
    "tests/test_durable_reading.py",
    "tests/test_durable_strict_json.py",
    "tests/test_durable_repair.py",
)
BESIDE = ("solution/__init__.py", "solution/lesson_22", "tests/durable_session.py")
DRAWN_OR_SLOW = (
    *("both_judges_agree", "flipped_at_every_bit", "cut_at_every_byte", "in_the_whole_log_too"),
    *("pieces_of_any_size", "holds_a_byte_of_data", "follower_waits"),
)
"""Tests left out by a part of their name: a mutant's verdict is to be the same each time, and soon there."""

_NAME = re.compile(r"durable_log\.(\w+)\.x(?:ǁ(\w+)ǁ|_)(\w+?)__mutmut_\d+$")


class Mutant(NamedTuple):
    """One change of the code: in which function, the lines as they are, and as they were made."""

    place: str
    was: str
    became: str

    def __str__(self) -> str:
        gone, come = self.was.replace("\n", "\n  - "), self.became.replace("\n", "\n  + ")
        return f"{self.place}\n  - {gone}\n  + {come}"


class Outcome(NamedTuple):
    """How many mutants there were, and those that no test noticed."""

    total: int
    survivors: list[Mutant]

    @property
    def score(self) -> float:
        """Percent of the mutants that were found."""
        return 100 * (1 - len(self.survivors) / self.total)


@click.command(epilog="Example: python -m tests.mutation --children 1")
@click.option("--children", type=click.IntRange(min=1), default=os.cpu_count(), help="Mutants tried at once.")
@click.option("--keep", is_flag=True, help="Go on with the verdicts of the copy that is there.")
def main(children: int, *, keep: bool) -> None:
    """Count the mutants of durable_log that the tests find, and hold the rest against the known ones."""
    began = time.monotonic()
    if not keep:
        lay_copy()
    _mutmut("run", "--max-children", str(children), shown=sys.stdout.isatty())
    outcome = told()
    reasons = known()
    new = [str(mutant) for mutant in outcome.survivors if mutant not in reasons]
    gone = [str(mutant) for mutant in reasons if mutant not in outcome.survivors]
    click.echo(
        f"{outcome.score:.1f} % of {outcome.total} mutants found, {len(outcome.survivors)} survived, "
        f"{len(new)} of them without a reason; {time.monotonic() - began:.0f} s"
    )
    for title, mutants in (("survives, and nobody says why", new), ("survives no longer", gone)):
        for mutant in mutants:
            click.echo(f"{title}: {mutant}")
    if outcome.score < LEAST_SCORE or new or gone:
        raise click.ClickException(
            f"mutation: below {LEAST_SCORE} %, or another list of survivors than {KNOWN.relative_to(ROOT)}; "
            "write the test that finds the mutant, or its entry with the reason why none can"
        )


def lay_copy() -> None:
    """Copy the package and its tests to a folder of their own, for mutmut to work in."""
    if COPY.exists():
        shutil.rmtree(COPY)
    COPY.mkdir(parents=True)
    for name in (str(PACKAGE), *BESIDE, *TESTS):
        place = COPY / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, place)
    left_out = " and ".join(f"not {part}" for part in DRAWN_OR_SLOW)
    settings = {
        "source_paths": ["solution"],
        "only_mutate": [str(PACKAGE / f"{name}.py") for name in MUTATED],
        "pytest_add_cli_args": ["-p", "no:cacheprovider", "-k", left_out],
        "pytest_add_cli_args_test_selection": list(TESTS),
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    ini = '[tool.pytest.ini_options]\naddopts = ["--import-mode=importlib"]\npythonpath = ["."]\n'
    (COPY / "pyproject.toml").write_text("\n".join(["[tool.mutmut]", *lines, "", ini]), encoding="utf-8")


def told() -> Outcome:
    """Give the verdicts that lie in the copy. What ran out of time or crashed was noticed; what no test ran was not."""
    _mutmut("export-cicd-stats")
    counts = json.loads((COPY / "mutants" / "mutmut-cicd-stats.json").read_text(encoding="utf-8"))
    unnoticed = re.findall(r"^\s*(\S+): (?:survived|no tests|not checked)$", _mutmut("results"), re.MULTILINE)
    return Outcome(counts["total"], [_mutant(name) for name in unnoticed])


def known() -> dict[Mutant, str]:
    """Give the survivors that are expected, each with its reason."""
    entries = tomllib.loads(KNOWN.read_text(encoding="utf-8"))["survivor"]
    return {Mutant(one["place"], one["was"], one["became"]): one["reason"] for one in entries}


def _mutant(name: str) -> Mutant:
    """Give a mutant by what it changes, which other changes of the code leave as it is, unlike mutmut's numbers."""
    module, owner, function = re.search(_NAME, name).groups()  # type: ignore[union-attr]
    lines = _mutmut("show", name).splitlines()
    body = lines[next(at for at, line in enumerate(lines) if line.startswith("@@")) + 1 :]
    was, became = (
        "\n".join(line[1:].strip() for line in body if line.startswith(sign)) for sign in ("-", "+")
    )
    return Mutant(".".join(filter(None, (module, owner, function))), was, became)


def _mutmut(*words: str, shown: bool = False) -> str:
    """Run mutmut in the copy; give what it prints, or let it show its progress.

    Raises: click.ClickException, with its last words.
    """
    done = subprocess.run(
        [sys.executable, "-m", "mutmut", *words],
        cwd=COPY,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=None if shown else subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    said = done.stdout or ""
    if done.returncode != 0:
        raise click.ClickException(f"mutmut {words[0]}: ended with {done.returncode}: {said[-2000:]}")
    return said


if __name__ == "__main__":
    main()
