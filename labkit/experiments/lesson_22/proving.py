"""The suite on what must pass and on what must fail."""

from __future__ import annotations

import asyncio
import json
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from IPython.display import Code

from labkit import actions, generate, views, workspace
from labkit.experiments import cards
from labkit.experiments.bench import fresh_folder, shown_path
from labkit.experiments.left_out import need_reference
from labkit.words import catalogue, t


@dataclass(frozen=True, slots=True)
class Graded:
    """What ``statelab verify`` said about one folder: its tests as plain values, required and extended together."""

    tests: tuple[dict[str, Any], ...]

    @property
    def required(self) -> list[dict[str, Any]]:
        """The tests that decide."""
        return [test for test in self.tests if test["required"]]

    @property
    def passed(self) -> int:
        """How many required tests passed."""
        return sum(test["status"] == "pass" for test in self.required)

    @property
    def failed(self) -> int:
        """How many required tests did not."""
        return len(self.required) - self.passed

    @property
    def reasons(self) -> list[str]:
        """Why each required test that did not pass did not, in Chinese and English."""
        return [" ".join(test["message"].values()) for test in self.required if test["status"] != "pass"]


@dataclass(frozen=True, slots=True)
class Rules:
    """What a right store keeps: rule id -> the rule in one sentence, in the reader's language."""

    sentences: dict[str, str]

    def _repr_html_(self) -> str:
        return cards.named_list(self.sentences)


def rules(family: str = "S") -> Rules:
    """Return the rules that the code's comments and every failed test name: S1 to S18, or H1 to H10 of the homework."""
    keys = [key for key in catalogue() if key.startswith(f"rule.{family}")]
    return Rules({key.removeprefix("rule."): t(key) for key in keys})


@dataclass(frozen=True, slots=True)
class BothDirections:
    """The required tests of the untouched starter and of the solution, side by side."""

    graded: dict[str, Graded]

    def __getitem__(self, name: str) -> Graded:
        """Return one of them. Raises: KeyError."""
        return self.graded[name]

    def _repr_html_(self) -> str:
        from labkit.experiments.cards import graded_table  # noqa: PLC0415 — as in Seen

        return graded_table({name: one.required for name, one in self.graded.items()})


async def both_directions() -> BothDirections:
    """Grade the starter as it was generated, whatever the learner has written since, and the solution (C22-23)."""
    need_reference()
    folder = fresh_folder("untouched-starter")
    _lay_down_starter(folder / "lesson_22")
    starter, solution = await asyncio.gather(_grade(str(folder)), _grade("solution"))
    return BothDirections({"starter": starter, "solution": solution})


def _lay_down_starter(folder: Path) -> None:
    tree = next(tree for tree in generate.TREES if tree.target == "starter/lesson_22")
    for name, raw in generate.generated(workspace.kit_root(), tree).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)


@dataclass(frozen=True, slots=True)
class Gate:
    """Which check failed which mutant: what ``statelab gate`` found, as plain values."""

    tests: tuple[dict[str, Any], ...]
    mutants: tuple[dict[str, Any], ...]

    @property
    def survivors(self) -> list[str]:
        """Ids of the mutants that the check meant for them let through."""
        return [mutant["id"] for mutant in self.mutants if not mutant["caught"]]

    def failed_by(self, mutant: str) -> list[str]:
        """Return the ids of the checks that failed one mutant. Raises: KeyError."""
        return list({one["id"]: one["failed"] for one in self.mutants}[mutant])

    def _repr_html_(self) -> str:
        from labkit.experiments.cards import gate_table  # noqa: PLC0415 — as in Seen

        return gate_table(self.tests, self.mutants)


async def mutants() -> Gate:
    """Run the suite on the eleven stores that are wrong on purpose (C22-24)."""
    need_reference()
    found = await _statelab(actions.gate_command("22"))
    return Gate(tuple(found["tests"]), tuple(found["mutants"]))


@dataclass(frozen=True, slots=True)
class OwnTests:
    """Which test of one file stopped which store: what ``statelab gate --tests`` found, as plain values."""

    file: Path
    found: dict[str, Any]

    @property
    def verdict(self) -> str:
        """How far the file came: not-loaded, no-tests, wrong-tests (on a right store), survivors or all-killed."""
        return str(self.found["verdict"])

    @property
    def killed(self) -> list[str]:
        """Ids of the wrong stores that some test stopped."""
        return [mutant["id"] for mutant in self.found["mutants"] if mutant["killed"]]

    def _repr_html_(self) -> str:
        from labkit.experiments.cards import own_tests_card  # noqa: PLC0415 — as in Seen

        return own_tests_card(shown_path(self.file), views.own_tests_view(self.found))


def example_tests() -> Code:
    """Show the worked example of a test of one's own."""
    return Code(actions.example_tests().read_text("utf-8"), language="python")  # type: ignore[no-untyped-call]


async def try_example_tests() -> OwnTests:
    """Run the worked example on two right stores and the eleven wrong ones (C22-24)."""
    return await _try_tests(actions.example_tests())


async def try_my_tests() -> OwnTests:
    """Run the learner's own file of tests on the same stores; the first time, lay it down with the example in it."""
    return await _try_tests(actions.my_tests())


async def _try_tests(file: Path) -> OwnTests:
    need_reference()
    return OwnTests(file, await _statelab(actions.gate_command("22", file)))


async def _grade(target: str) -> Graded:
    found = await _statelab(actions.verify_command("22", target))
    return Graded(tuple(found["lessons"]["22"]["tests"]))


async def _statelab(command: list[str]) -> dict[str, Any]:
    """Run the kit's own command in a process of its own and return its JSON, whatever it says about the code.

    Raises: RuntimeError when it gives none.
    """
    done = await asyncio.to_thread(
        subprocess.run,
        command,
        cwd=workspace.kit_root(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or [
            f"exit code {done.returncode}"
        ]
        raise RuntimeError(
            f"statelab: no result ({said[0]}); run {shlex.join(['statelab', *command[3:]])} in a terminal"
        ) from None
    return answer
