"""Lays down the sample class from the mutants, so that no sample is edited by hand.

    python -m grader.sample_class            write what is missing or stale
    python -m grader.sample_class --check    say what is stale, change nothing, exit 1

`right` and `untouched-starter` come from the solution (`python -m labkit.generate`). Submissions that are wrong in
other ways than a store can be (no Python, no file, no end) are made here; the forger's store is kept by hand.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from importlib import import_module
from itertools import chain
from pathlib import Path

from grader.intake import KIT_FILES
from grader.pool import SAMPLE_CLASS
from grader.suites.check import Text
from grader.suites.mutants import Sample
from labkit.workspace import LESSON_FOLDERS, kit_root, lesson_source

SAMPLES: dict[str, dict[str, str]] = {
    "22": {
        "race": "no-queue",
        "poisoned-queue": "poisoned-queue",
        "skips-bad-lines": "skips-bad-lines",
        "only-monotonic": "only-monotonic",
        "burned-number": "number-burned",
        "glued-tail": "glued-tail",
    },
    "04": {
        "replays-agent-running": "replays-agent-running",
        "digest-by-key-order": "digest-by-key-order",
        "leaves-temp-files": "leaves-temp-files",
        "no-exclusive-claim": "no-exclusive-claim",
    },
}
"""Lesson -> folder in the sample class -> the mutant it is made from. Its other lesson is right."""

STORE = "lesson_22/session_store.py"
ODD: dict[str, tuple[tuple[str, str], ...] | None] = {
    "syntax-error": (("class JsonlSessionStore:", "class JsonlSessionStore"),),
    "infinite-loop": (
        ("        loop = self._enter_loop()\n", "        while self._worker is None:\n            pass\n"),
    ),
    "missing-file": None,
    "forger": None,
}
"""Folder -> the edits that make its store of lesson 22 from a right one; None: there is none to make."""
BY_HAND = f"{SAMPLE_CLASS}/forger/{STORE}"


def made() -> dict[str, bytes]:
    """Give every file of the made samples, by its path below the kit."""
    files = {}
    with tempfile.TemporaryDirectory() as folder:
        for lesson, samples in SAMPLES.items():
            for sample, mutant in samples.items():
                submission = Path(folder) / sample
                _mutant(lesson, mutant).lay_down(submission)
                for other in SAMPLES.keys() - {lesson}:
                    _hand_in(other, submission / LESSON_FOLDERS[other])
        for sample, edits in ODD.items():
            submission = Path(folder) / sample
            for lesson in SAMPLES:
                _hand_in(lesson, submission / LESSON_FOLDERS[lesson])
            (submission / STORE).unlink()
            if edits:
                (submission / STORE).write_text(
                    Sample(sample, Text("", ""), edits).source(), encoding="utf-8"
                )
        for path in sorted(Path(folder).rglob("*.py")):
            files[f"{SAMPLE_CLASS}/{path.relative_to(folder).as_posix()}"] = path.read_bytes()
    return files


def _hand_in(lesson: str, folder: Path) -> None:
    """Put the right code of a lesson there: the files that the kit takes from a submission."""
    kit, source = KIT_FILES[lesson], lesson_source(lesson, "solution")
    for name in (*kit.needed, *kit.optional):
        if (source / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, folder / name)


def _mutant(lesson: str, name: str) -> Sample:
    mutants: tuple[Sample, ...] = import_module(f"grader.suites.mutants.lesson_{lesson}").MUTANTS
    return next(mutant for mutant in mutants if mutant.id == name)


def stale(root: Path) -> list[str]:
    """List the files that differ from what they are made from, or should not be there."""
    files = made()
    present = {
        path.relative_to(root).as_posix()
        for sample in chain(*SAMPLES.values(), ODD)
        for path in (root / SAMPLE_CLASS / sample).rglob("*.py")
    } - {BY_HAND}
    wrong = [name for name, raw in files.items() if name not in present or (root / name).read_bytes() != raw]
    return sorted({*wrong, *(present - files.keys())})


def main(arguments: list[str]) -> int:
    """Write the samples, or check them; return the exit code."""
    root, check = kit_root(), "--check" in arguments
    names = stale(root)
    for name in names:
        print(f"{name}: {'stale; run python -m grader.sample_class' if check else 'written'}")
    if not check:
        files = made()
        for name in names:
            (root / name).unlink(missing_ok=True)
            if name in files:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_bytes(files[name])
    return 1 if check and names else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
