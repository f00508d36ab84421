"""Which Node the kit uses. Standard library only: the set-up asks before anything is installed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST_NODE = 20


class UnfitNodeError(Exception):
    """`LAB_NODE` names something that is no Node of this age."""


def find_node() -> "str | None":
    """Give the path of a Node >= 20: `LAB_NODE`, else the one on PATH, else the wheel beside this Python.

    Raises `UnfitNodeError` when `LAB_NODE` is set but does not serve: a wish is refused, never passed over.
    """
    wished = os.environ.get("LAB_NODE")
    if wished:
        path = shutil.which(wished)
        if path is None or node_major(path) < OLDEST_NODE:
            raise UnfitNodeError(
                f"LAB_NODE={wished}: not a Node {OLDEST_NODE} or later; correct it, or unset it to let the kit choose"
            )
        return path
    beside_python = shutil.which("node", path=str(Path(sys.executable).parent))
    for path in (shutil.which("node"), beside_python):
        if path is not None and node_major(path) >= OLDEST_NODE:
            return path
    return None


def node_major(path: str) -> int:
    """Ask one Node for its major version; 0 when it does not answer like a Node."""
    try:
        # A machine's own start-up options must not decide whether its Node can be used.
        clean = {name: value for name, value in os.environ.items() if not name.startswith("NODE_")}
        answer = subprocess.run(
            [path, "--version"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            env=clean,
            check=False,
        )
    except OSError:
        return 0
    match = re.match(rb"v(\d+)\.", answer.stdout)
    return int(match.group(1)) if match else 0
