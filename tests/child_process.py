"""Runs a piece of Python in a child process that has the file layer underneath, as the grader's child does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

KIT = Path(__file__).resolve().parents[1]
_PRELUDE = """
import importlib.util, json, sys
from pathlib import Path
spec = importlib.util.spec_from_file_location("file_layer", {layer!r})
layer = importlib.util.module_from_spec(spec)
spec.loader.exec_module(layer)
layer.install()
sys.path[:0] = {imports!r}
folder = Path({folder!r})
def answer(value):
    print(json.dumps(value), flush=True)
"""


def run_child(
    source: str,
    folder: Path,
    python: str = sys.executable,
    options: tuple[str, ...] = (),
    imports: tuple[Path, ...] = (),
    environment: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run `source`, which knows `layer`, `folder` and `answer(value)`, by `python -I`; return how it ended.

    `options` go to the interpreter, `imports` are folders to import from, `environment` replaces the child's.
    """
    prelude = _PRELUDE.format(
        layer=str(KIT / "labkit/faults/file_layer.py"),
        folder=str(folder),
        imports=[str(path) for path in imports],
    )
    return subprocess.run(
        [python, "-I", *options, "-c", prelude + source],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
        env=environment,
    )


def answer_of(finished: subprocess.CompletedProcess[str]) -> Any:
    """Return what the child answered; its own words stand in the failure when it ended badly."""
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout)
