"""The generator: bodies leave, signatures stay, and a learner's edit is never overwritten."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from labkit.generate import GenerateError, Tree, stale, starter_text, write

SOURCE = """import os
# BEGIN SOLUTION
import json
# END SOLUTION


def double(n: int) -> int:
    \"\"\"Return twice n.\"\"\"
    # BEGIN SOLUTION: 实现加倍 (implement doubling)
    half = n
    return half + n
    # END SOLUTION
"""
TREE = Tree("solution/lesson_22", "starter/lesson_22", leave_out=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a small kit with one lesson: a file with a region and a plain one."""
    lesson = tmp_path / "solution" / "lesson_22"
    lesson.mkdir(parents=True)
    (lesson / "store.py").write_text(SOURCE, "utf-8")
    (lesson / "given.py").write_bytes(b"A = '\xe4\xb8\xad'\r\n")
    return tmp_path


def test_a_body_becomes_one_line_that_names_the_step() -> None:
    """A region inside a body becomes one NotImplementedError; signature and docstring stay."""
    made = starter_text(SOURCE, "store.py")

    assert (
        '    """Return twice n."""\n    raise NotImplementedError("实现加倍 (implement doubling)")\n' in made
    )
    assert "half" not in made


def test_a_region_at_module_level_vanishes() -> None:
    """An import that only the answer needs is gone, and its neighbours are not."""
    made = starter_text(SOURCE, "store.py")

    assert "import json" not in made
    assert "import os" in made


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("def f():\n    # BEGIN SOLUTION: a (a)\n    # BEGIN SOLUTION: b (b)\n", 3),
        ("x = 1\n# END SOLUTION\n", 2),
        ("def f():\n    # BEGIN SOLUTION: a (a)\n    pass\n", 2),
        ("def f():\n    # BEGIN SOLUTION\n    pass\n    # END SOLUTION\n", 2),
    ],
    ids=["nested", "never opened", "never closed", "body without message"],
)
def test_a_broken_region_is_refused_with_its_line(source: str, line: int) -> None:
    """A region that is nested, unopened, unclosed or unnamed stops the generator at its line."""
    with pytest.raises(GenerateError, match=f"^store.py:{line}: "):
        starter_text(source, "store.py")


def test_files_without_regions_are_copied_byte_for_byte(root: Path) -> None:
    """Line ends and characters of a given file arrive as they are."""
    write(root, TREE)

    assert (root / "starter/lesson_22/given.py").read_bytes() == b"A = '\xe4\xb8\xad'\r\n"


def test_writing_twice_changes_nothing(root: Path) -> None:
    """A second run finds nothing to do, and the check agrees."""
    write(root, TREE)

    assert write(root, TREE) == []
    assert stale(root, TREE) == []


def test_an_edited_file_is_never_overwritten(root: Path) -> None:
    """A learner's edit stops the generator before any file is touched."""
    write(root, TREE)
    edited = root / "starter/lesson_22/store.py"
    edited.write_text("mine", "utf-8")
    (root / "solution/lesson_22/given.py").write_text("B = 2\n", "utf-8")
    (root / "solution/lesson_22/store.py").write_text(SOURCE + "\n", "utf-8")

    with pytest.raises(GenerateError, match=r"starter/lesson_22/store\.py: edited"):
        write(root, TREE)

    assert edited.read_text("utf-8") == "mine"
    assert (root / "starter/lesson_22/given.py").read_bytes().startswith(b"A")


def test_a_file_that_left_the_solution_leaves_the_starter(root: Path) -> None:
    """A generated file without a source any more is removed; the check names it before."""
    write(root, TREE)
    (root / "solution/lesson_22/given.py").unlink()

    assert stale(root, TREE) == ["starter/lesson_22/given.py"]
    write(root, TREE)
    assert not (root / "starter/lesson_22/given.py").exists()


def test_an_old_record_is_named_by_the_check(root: Path) -> None:
    """A record that was merged by hand, or not at all, would take the kit's own file for a learner's edit."""
    write(root, TREE)
    record = root / "starter" / ".generated.json"
    record.write_text(re.sub('": "[0-9a-f]{4}', '": "0000', record.read_text("utf-8")), "utf-8")
    assert stale(root, TREE) == ["starter/.generated.json"]


def test_a_stray_file_is_named_by_the_check(root: Path) -> None:
    """A file that nothing generates is stale, and stays: it may be somebody's work."""
    write(root, TREE)
    stray = root / "starter/lesson_22/notes.py"
    stray.write_text("", "utf-8")

    assert stale(root, TREE) == ["starter/lesson_22/notes.py"]
    write(root, TREE)
    assert stray.exists()
