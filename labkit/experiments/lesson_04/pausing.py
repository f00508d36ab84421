"""Runs a lab's tool and pauses it each time a file of one name has been replaced. Standard library only.

    python pausing.py state.json tools/run_once.py [ARGUMENT ...]        in the lab folder

At each pause one line goes to standard error; a line on standard input lets it go on. Meanwhile somebody else looks.
"""

from __future__ import annotations

import os
import runpy
import sys
from typing import Any

_replace = os.replace


def main() -> None:
    """Put the pause underneath ``os.replace``, then run the tool as if it had been started itself."""
    name, tool, *arguments = sys.argv[1:]

    def replace(source: Any, target: Any, **places: Any) -> None:
        _replace(source, target, **places)
        if os.path.basename(target) == name:  # noqa: PTH119 — a path of any kind
            print("paused", file=sys.stderr, flush=True)
            sys.stdin.readline()

    os.replace = replace  # type: ignore[assignment]
    sys.argv = [tool, *arguments]
    runpy.run_path(tool, run_name="__main__")


if __name__ == "__main__":
    main()
