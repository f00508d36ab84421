"""Scripts run on labs, side by side, and what each left on disk: the result of most experiments of lesson 04."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labkit import workspace
from labkit.experiments import bench
from labkit.experiments.left_out import ReferenceMissingError
from labkit.experiments.lesson_04 import prepared
from labkit.experiments.lesson_04.garden import NOTEBOOK, Garden, Step, UnfinishedError

Script = Callable[[Garden], object]


@dataclass(frozen=True, slots=True)
class Scene:
    """What one lab went through: the steps in their order, and the files that are worth looking at, by name.

    ``unfinished`` holds the learner's own message that a step is not written yet. ``root`` is where the lab is.
    """

    name: str
    steps: tuple[Step, ...]
    files: dict[str, bytes] = field(default_factory=dict)
    unfinished: str = ""
    root: Path | None = None

    def __getitem__(self, text: str) -> Any:
        """Return what was found under this name. Raises: KeyError."""
        return {step.text: step.value for step in self.steps if step.code is None}[text]

    def typed(self, line: str) -> list[Step]:
        """Return the programs that were run by this line, in order."""
        return [step for step in self.steps if step.text == line]

    @property
    def found(self) -> list[Any]:
        """What was found, in order, where no program was run."""
        return [step.value for step in self.steps if step.code is None]

    @property
    def exits(self) -> list[int]:
        """Exit codes of the programs, in order; negative for a signal."""
        return [step.code for step in self.steps if step.code is not None]

    @property
    def answers(self) -> list[dict[str, Any]]:
        """The JSON objects that were answered, in order."""
        return [step.answer for step in self.steps if step.answer]

    @property
    def decisions(self) -> list[str]:
        """The decision of each answer."""
        return [str(answer["decision"]) for answer in self.answers]

    @property
    def causes(self) -> list[str | None]:
        """The cause of each answer; None where there is none."""
        return [answer.get("cause") for answer in self.answers]

    def _repr_html_(self) -> str:
        from labkit.experiments.lesson_04.transcript import scene  # noqa: PLC0415 — a test of the facts needs none

        return scene(self)


@dataclass(frozen=True, slots=True)
class Scenes:
    """Several labs beside each other. ``seen["kit"]`` is one of them."""

    sides: tuple[Scene, ...]

    def __getitem__(self, name: str) -> Scene:
        """Return one of them. Raises: KeyError; ReferenceMissingError for the kit's where there is none."""
        side = {side.name: side for side in self.sides}[name]
        if name == "kit" and side.unfinished:
            raise ReferenceMissingError(side.unfinished)
        return side

    def _repr_html_(self) -> str:
        from labkit.experiments.lesson_04.transcript import scenes  # noqa: PLC0415 — as in Scene

        return scenes(self)


@dataclass(frozen=True, slots=True)
class Trial:
    """One change behind the runner's back, and the run after it.

    ``unchanged``: no file differs afterwards. ``starts``: how many starts of an agent the log tells of.
    """

    exit_code: int | None
    decision: str | None = None
    reason: str | None = None
    cause: str | None = None
    message: str = ""
    unchanged: bool = False
    starts: int = 0
    unfinished: str = ""


@dataclass(frozen=True, slots=True)
class Trials:
    """The same changes under two runners: ``seen["delete-claim"]`` is the reference's answer to one of them.

    ``yours`` is empty where the learner writes nothing that could make a difference.
    """

    kit: dict[str, Trial]
    yours: dict[str, Trial]

    def __getitem__(self, kind: str) -> Trial:
        """Return what the reference did. Raises: KeyError; ReferenceMissingError where there is none."""
        if self.kit[kind].unfinished:
            raise ReferenceMissingError(self.kit[kind].unfinished)
        return self.kit[kind]

    @property
    def causes(self) -> list[str | None]:
        """The reference's causes, in order."""
        return [trial.cause for trial in self.kit.values()]

    def _repr_html_(self) -> str:
        from labkit.experiments.lesson_04.transcript import trials  # noqa: PLC0415 — as in Scene

        return trials(self)


async def compare(
    experiment: str, script: Script, stage: str = "ready", *look: str, quick: bool = True
) -> Scenes:
    """Run one script on a lab with the reference's spine, and on one with the learner's; ``look`` names records."""
    codes = {"kit": "solution", "yours": workspace.target()}
    return await _together(experiment, dict.fromkeys(codes, script), codes, stage, look, quick=quick)


async def scenes(
    experiment: str, scripts: Mapping[str, Script], stage: str = "ready", *look: str, quick: bool = True
) -> Scenes:
    """Run several scripts, each on a lab of its own with the reference's spine. Raises: ReferenceMissingError."""
    codes = dict.fromkeys(scripts, "solution")
    played = await _together(experiment, scripts, codes, stage, look, quick=quick)
    if unfinished := next((side.unfinished for side in played.sides if side.unfinished), ""):
        raise ReferenceMissingError(unfinished)
    return played


async def scene(
    experiment: str, script: Script, stage: str = "ready", *look: str, quick: bool = True
) -> Scene:
    """Run one script on one lab with the reference's spine."""
    return (await scenes(experiment, {"kit": script}, stage, *look, quick=quick)).sides[0]


async def trials(
    experiment: str, changes: Mapping[str, Script], stage: str = "claimed", *, yours: bool = True
) -> Trials:
    """Make each change on a lab of its own and run it once; with the reference's spine, and with the learner's."""
    place = fresh_folder(experiment)

    def on(name: str, code: str, kind: str, change: Script) -> Trial:
        return _try(prepared.copy_of(stage, place / name / kind, code), change, ours=name == "kit")

    codes = {"kit": "solution"} | ({"yours": workspace.target()} if yours else {})
    jobs = [
        asyncio.to_thread(on, name, code, kind, change)
        for name, code in codes.items()
        for kind, change in changes.items()
    ]
    made = iter(await asyncio.gather(*jobs))
    done = {name: {kind: next(made) for kind in changes} for name in codes}
    return Trials(done["kit"], done.get("yours", {}))


def fresh_folder(experiment: str) -> Path:
    """Return ``workspace/04-state-spine/EXPERIMENT``, emptied of what the same experiment left there before."""
    return bench.fresh_folder(experiment, NOTEBOOK)


async def _together(
    experiment: str, scripts: Mapping[str, Script], codes: Mapping[str, str], stage: str, look: tuple[str, ...],
    *, quick: bool,
) -> Scenes:  # fmt: skip
    place = fresh_folder(experiment)

    def one(name: str) -> Scene:
        garden = Garden(prepared.copy_of(stage, place / name, codes[name], quick=quick), [])
        return _play(name, garden, scripts[name], look)

    return Scenes(tuple(await asyncio.gather(*(asyncio.to_thread(one, name) for name in scripts))))


def _play(name: str, garden: Garden, script: Script, look: tuple[str, ...]) -> Scene:
    unfinished = ""
    try:
        script(garden)
    except UnfinishedError as error:
        unfinished = str(error)
    except Exception as error:
        if name != "yours":
            raise
        # A learner's code may leave anything behind, or nothing; here it is shown.
        garden.note("…", _in_short(error))
    return Scene(name, tuple(garden.steps), _files(garden, look), unfinished, garden.root)


def _files(garden: Garden, kinds: tuple[str, ...]) -> dict[str, bytes]:
    paths = [garden.root / kind if "/" in kind else garden.path(kind) for kind in kinds]
    return {path.relative_to(garden.root).as_posix(): path.read_bytes() for path in paths if path.is_file()}


def _try(lab: Path, change: Script, *, ours: bool) -> Trial:
    garden = Garden(lab, [])
    try:
        change(garden)
        before = garden.snapshot()
        step = garden.run()
        answer = step.answer
        return Trial(
            step.code, *step.said, answer.get("message", ""), garden.snapshot() == before, garden.starts()
        )
    except UnfinishedError as error:
        return Trial(None, unfinished=str(error))
    except Exception as error:
        if ours:
            raise
        return Trial(None, message=_in_short(error))


def _in_short(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
