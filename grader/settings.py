"""What an instructor may change, read from `grading.toml`: limits of one submission, points of each check."""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grader.suites.check import Check

DEFAULT_FILE = Path(__file__).parent / "grading.toml"
_MIB = 1024 * 1024


class SettingsError(Exception):
    """A settings file that cannot be used: where, what, and what to do next."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one submission (G4). Seconds are wall clock unless the name says CPU."""

    submission_seconds: float = 60.0
    check_seconds: float = 20.0
    call_seconds: float = 5.0
    start_seconds: float = 10.0
    timeouts: int = 2
    cpu_seconds: int = 30
    memory_mib: int = 1024
    address_space_mib: int = 1024
    file_mib: int = 16
    work_mib: int = 128
    open_files: int = 128
    processes: int = 128

    def for_child(self, tasks_now: int | None) -> dict[str, int]:
        """Give the limits the operating system keeps for one child, by their names in `resource`.

        The system counts processes by user, so `tasks_now`, those the child's user runs already, are added;
        None (not known) leaves processes unlimited.
        """
        limits = {
            "RLIMIT_CPU": self.cpu_seconds,
            "RLIMIT_DATA": self.memory_mib * _MIB,
            "RLIMIT_AS": self.address_space_mib * _MIB,
            "RLIMIT_FSIZE": self.file_mib * _MIB,
            "RLIMIT_NOFILE": self.open_files,
            "RLIMIT_CORE": 0,
        }
        if tasks_now is not None:
            limits["RLIMIT_NPROC"] = tasks_now + self.processes
        return limits


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits, those that one lesson has otherwise, and points by lesson: `required`, `extended`, or a check's own id."""

    limits: Limits
    points: Mapping[str, Mapping[str, float]]
    by_lesson: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def limits_of(self, lesson: str) -> Limits:
        """Give the limits of one lesson."""
        return replace(self.limits, **self.by_lesson.get(lesson, {}))

    def worth(self, lesson: str, check: Check) -> float:
        """Give the points of one check."""
        points = self.points.get(lesson, {})
        return points.get(check.id, points.get("required" if check.required else "extended", 0))


def load_settings(file: Path = DEFAULT_FILE) -> Settings:
    """Read a settings file. Raises: SettingsError for one that is missing, no TOML, or has an unknown name."""
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read ({error.strerror}); name a file that is there") from None
    except ValueError as error:
        raise SettingsError(f"{file}: is not TOML ({error}); start from a copy of grading.toml") from None
    limits, points = raw.pop("limits", {}), raw.pop("points", {})
    by_lesson = _by_lesson(limits)
    wrong = [*raw, *_wrong_limits(limits), *_wrong_points(points)]
    wrong += [
        name for lesson, table in by_lesson.items() for name in _wrong_limits(table, f"limits.{lesson}")
    ]
    if wrong:
        raise SettingsError(f"{file}: {wrong[0]}: is not understood; start from a copy of grading.toml")
    return Settings(Limits(**limits), points, by_lesson)


def _by_lesson(limits: Any) -> dict[str, Any]:
    """Take the tables of single lessons out of the limits."""
    names = (
        [name for name, value in limits.items() if isinstance(value, dict)]
        if isinstance(limits, dict)
        else []
    )
    return {name: limits.pop(name) for name in names}


def _wrong_limits(limits: Any, where: str = "limits") -> list[str]:
    """Name what is no limit, or no positive number of its kind."""
    if not isinstance(limits, dict):
        return [where]
    kinds = {name: (int,) if type(value) is int else (int, float) for name, value in asdict(Limits()).items()}
    return [
        f"{where}.{name}"
        for name, value in limits.items()
        if type(value) not in kinds.get(name, ()) or not 0 < value < float("inf")
    ]


def _wrong_points(points: Any) -> list[str]:
    """Name what is no table of points, each a number from 0."""
    if not isinstance(points, dict):
        return ["points"]
    return [
        f"points.{lesson}"
        for lesson, table in points.items()
        if not isinstance(table, dict)
        or not all(type(worth) in (int, float) and 0 <= worth < float("inf") for worth in table.values())
    ]
