"""What ``statelab gate --tests --json`` found, as texts to show: which test stopped which store, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from labkit.words import language, t

_MARKS = {"pass": "·", "fail": "✗", "timeout": "…"}


@dataclass(frozen=True, slots=True)
class OwnTestsView:
    """A learner's tests on the stores that are wrong on purpose.

    ``head`` and ``rows`` are a grid of stores and tests, empty while the tests are not right themselves; ``tests`` says
    what each column stops. ``explained`` and ``rules`` are about the first store that got through: its mistake, what the
    kit's own check asks, and the rules it breaks. ``wrong`` names the tests that a right store does not pass.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    tests: tuple[tuple[str, str], ...]
    explained: str
    rules: tuple[str, ...]
    wrong: tuple[tuple[str, str], ...]
    message: str


def own_tests_view(found: dict[str, Any]) -> OwnTestsView:
    """Lay out the JSON of the gate. Raises: LookupError, TypeError when it is not of that shape."""
    spoken, tests, mutants = language(), found["tests"], found["mutants"]
    through = next((mutant for mutant in mutants if not mutant["killed"]), None)
    numbers = (str(number) for number, _ in enumerate(tests, 1))
    return OwnTestsView(
        head=(t("seen.mutant"), *numbers, t("mine.result")) if mutants else (),
        rows=tuple(_row(mutant, tests, spoken) for mutant in mutants),
        tests=tuple((test["name"], _stops(test["kills"])) for test in tests) if mutants else (),
        explained=_explained(through, spoken) if through else "",
        rules=tuple(f"{rule}: {t(f'rule.{rule}')}" for rule in through["rules"]) if through else (),
        wrong=tuple((one["test"], f"({one['store']}) {one['said'][spoken]}") for one in found["wrong"]),
        message=found["message"][spoken],
    )


def _row(mutant: dict[str, Any], tests: list[dict[str, Any]], spoken: str) -> tuple[str, ...]:
    marks = (_MARKS.get(mutant["tests"][test["name"]], "–") for test in tests)
    result = t("mine.stopped") if mutant["killed"] else f"○ {t('mine.through')}"
    return (mutant["idea"][spoken], *marks, result)


def _stops(kills: list[str]) -> str:
    return t("mine.stops", n=len(kills)) if kills else t("mine.nothing")


def _explained(mutant: dict[str, Any], spoken: str) -> str:
    return t("mine.explained", idea=mutant["idea"][spoken], title=mutant["meant"][spoken])
