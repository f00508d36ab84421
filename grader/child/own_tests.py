"""The program that runs a learner's own tests on one store: pytest, led from outside one test at a time.

Started like `host.py`, and on the same line (docs/grader-pipe.md, "Own tests"). Beside the standard library it sees
pytest, the store's package and the learner's one file. Nothing is judged here.
"""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import sys
from pathlib import Path
from types import ModuleType

TESTS, LIBRARIES = "tests", "libraries"  # beside the package: the learner's file, and what it may import


def _sibling(name: str) -> ModuleType:
    """Load another program of this folder: nothing of the kit can be imported by its name here."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Close the learner's code in, put the store on the path, and let pytest run what is asked for."""
    settings = json.loads(sys.argv.pop())
    channel = socket.socket(fileno=settings["channel"])
    channel.set_inheritable(False)
    host = _sibling("host")
    host.limit_self(settings["limits"])
    code = Path(settings["code"])
    sys.path[:0] = [str(code), str(code / LIBRARIES)]
    import pytest  # noqa: PLC0415 - there is a way to it only now

    led_pytest = _sibling("led_pytest")
    layer = host.load("file_layer", Path(settings["faults"]))
    layer.install()  # before a store is imported
    alone = [
        "--disable-plugin-autoload",
        "--noconftest",
        "-p",
        "no:terminal",
        "-p",
        "no:cacheprovider",
        "--import-mode=importlib",
    ]
    place = ["-c", os.devnull, "--rootdir", str(code), "--basetemp", str(Path.cwd() / "tmp")]
    files = [str(path) for path in (code / TESTS).iterdir()]
    plugins = [led_pytest.Led(channel, host.Describer(code / TESTS)), led_pytest.Faults(layer)]
    pytest.main(["--capture=no", *alone, *place, *files], plugins=plugins)


if __name__ == "__main__":
    main()
