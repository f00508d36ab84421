"""Lays down the sample class from the mutants, so that no sample is edited by hand.

    python -m grader.sample_class            write what is missing or stale
    python -m grader.sample_class --check    say what is stale, change nothing, exit 1

`right` and `untouched-starter` come from the solution (`python -m labkit.generate`); submissions that are wrong in
other ways than a store can be (no Python, nothing there) are kept beside them as they are.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from grader.pool import SAMPLE_CLASS
from grader.suites.mutants.lesson_22 import MUTANTS
from labkit.workspace import kit_root

SAMPLES = {
    "race": "no-queue",
    "poisoned-queue": "poisoned-queue",
    "skips-bad-lines": "skips-bad-lines",
    "only-monotonic": "only-monotonic",
    "burned-number": "number-burned",
    "glued-tail": "glued-tail",
}
"""Folder in the sample class -> the mutant it is made from."""


def made() -> dict[str, bytes]:
    """Give every file of the made samples, by its path below the kit."""
    mutants = {mutant.id: mutant for mutant in MUTANTS}
    files = {}
    with tempfile.TemporaryDirectory() as folder:
        for sample, mutant in SAMPLES.items():
            package = mutants[mutant].lay_down(Path(folder) / sample)
            for path in sorted(package.rglob("*.py")):
                name = path.relative_to(folder).as_posix()
                files[f"{SAMPLE_CLASS}/{name}"] = path.read_bytes()
    return files


def stale(root: Path) -> list[str]:
    """List the files that differ from what they are made from, or should not be there."""
    files = made()
    present = {
        path.relative_to(root).as_posix()
        for sample in SAMPLES
        for path in (root / SAMPLE_CLASS / sample).rglob("*.py")
    }
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
