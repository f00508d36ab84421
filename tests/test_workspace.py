"""Where things are, and that an edit is seen at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from labkit import workspace
from labkit.workspace import WorkspaceError


def lesson(folder: Path, answer: int) -> Path:
    """Write a small lesson package with a relative import."""
    package = folder / "lesson_22"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text("from .part import ANSWER\n", "utf-8")
    (package / "part.py").write_text(f"ANSWER = {answer}\n", "utf-8")
    return package


def test_the_target_is_starter_unless_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without LAB_TARGET the learner is on the starter."""
    monkeypatch.delenv("LAB_TARGET", raising=False)

    assert workspace.target() == "starter"


def test_an_edit_is_seen_even_within_the_same_second(tmp_path: Path) -> None:
    """Same size, same time stamp, other content: the new code is loaded, not stale byte code."""
    part = lesson(tmp_path, 1) / "part.py"
    os.utime(part, (1_000_000_000, 1_000_000_000))
    before = workspace.load_lesson("22", str(tmp_path)).ANSWER
    lesson(tmp_path, 2)
    os.utime(part, (1_000_000_000, 1_000_000_000))

    assert (before, workspace.load_lesson("22", str(tmp_path)).ANSWER) == (1, 2)


def test_one_module_of_a_lesson_can_be_loaded() -> None:
    """A submodule comes from the same fresh package."""
    assert workspace.load_lesson("22", "solution", "todo").LABELS


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """A target without the lesson says which folder is missing."""
    with pytest.raises(WorkspaceError, match="lesson_22: missing"):
        workspace.lesson_source("22", str(tmp_path))
    with pytest.raises(WorkspaceError, match="no such folder"):
        workspace.target_folder(str(tmp_path / "nowhere"))
    with pytest.raises(WorkspaceError, match="lesson 99: unknown"):
        workspace.lesson_source("99")


def test_setting_aside_never_overwrites(tmp_path: Path) -> None:
    """Two things set aside in one second keep two names, and both contents."""
    kept = []
    for content in ("one", "two"):
        (tmp_path / "work").write_text(content, "utf-8")
        kept.append(workspace.set_aside(tmp_path / "work"))

    assert [path.read_text("utf-8") for path in kept] == ["one", "two"]


def test_nothing_to_set_aside_is_an_error(tmp_path: Path) -> None:
    """A name that is not there is refused."""
    with pytest.raises(WorkspaceError, match="nothing there"):
        workspace.set_aside(tmp_path / "work")


def test_the_state_folder_is_the_users_own_and_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LAB_STATE moves it; it is made with mode 0700."""
    monkeypatch.setenv("LAB_STATE", str(tmp_path / "state"))

    assert workspace.state_folder() == tmp_path / "state"
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("settings", "language"),
    [
        ({"LAB_LANG": "zh", "LANG": "en_US.UTF-8"}, "zh"),
        ({"LAB_LANG": "en", "LC_ALL": "zh_CN.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LC_ALL": "C.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LAB_LANG": "", "LANG": "zh_TW.UTF-8"}, "zh"),
    ],
)
def test_the_language_is_the_learners(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], language: str
) -> None:
    """LAB_LANG says it, else the system's settings, also where that locale is not installed."""
    for name in ("LAB_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)

    assert workspace.language() == language
