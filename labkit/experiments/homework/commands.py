"""The command that anybody would use, run as they would: in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from labkit import words, workspace

_STATELAB = "from labkit.cli import main; main(prog_name='statelab')"


def statelab_log(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `statelab log ARGUMENT...` in `folder`, in the learner's language. What it prints and how it ends is the answer."""
    return subprocess.run(
        [sys.executable, "-c", _STATELAB, "log", *arguments],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(workspace.kit_root()),
            "PYTHONUTF8": "1",
            "LAB_LANG": words.language(),
        },
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
