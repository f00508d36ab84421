"""The hostile corpus: how each of its submissions ends, and what it leaves behind.

A case is a file, the `__init__.py` of lesson 22 beside the right ones, or a folder laid over a right submission; its
first line says what it does. Some are right only if they get out: whoever passes was not contained. In a case's text
`@NAME@` stands for what is there to be reached, see `Surroundings`.

Run by hand, as any user, also to write the goldens anew (to be read before they are committed):

    python -m tests.hostile RUNG [CASE...]            print, as JSON
    python -m tests.hostile --write RUNG              write the goldens of this rung and kind of user
    python -m tests.hostile --table                   write the table of docs/isolation.md from the goldens
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from grader import grade, rungs, sandbox
from grader.grade import grade_handin
from grader.intake import take
from grader.outcome import GRAVEST_FIRST
from grader.settings import load_settings
from grader.suites import load_suite
from tests import residue
from tests.piped import KIT, SOLUTION

CORPUS = Path(__file__).parent / "golden" / "hostile"
GOLDEN = CORPUS.with_suffix(".json")
CASES = sorted(
    path.stem for path in CORPUS.iterdir() if path.suffix == ".py" or (path / "about.txt").is_file()
)

DOCUMENT, BEGIN, END = KIT / "docs" / "isolation.md", "<!-- begin goldens -->\n\n", "\n<!-- end goldens -->"
KINDS = [
    f"{rung}, {who}"
    for rung in ("bubblewrap", "namespaces-landlock", "limits-only")
    for who in ("root", "user")
]

NEVER_ANSWER = ("forks_without_end", "loops", "loops_deaf", "never_done")
RIGHT_ALL_THE_SAME = {
    "fills_the_folder": "its folder has a size, and goes with the box",
    "floods_the_output": "nobody reads it",
    "leaves_a_daemon": "it ends with the box",
    "leaves_after_each_call": "they end with the box",
    "nests_without_end": "the grader's look has an end, and the folders go with the box",
    "leaves_sixty_children": "they end with the box",
    "listens_on_an_abstract_socket": "it ends with the box",
    "opens_without_end": "there is a limit",
    "thread_without_end": "it ends with the box",
    "writes_outside": "what it may write is its own box's",
    "times_the_calls": "only the instructor sees how long a submission took",
}
"""Cases whose store is a right one: they pass, and what they do beside it comes to nothing; and why."""

Ended = dict[str, Any]
"""`reasons`: a check's reason, "" for a pass, or one word where all are the same; `left`: what stayed on this machine."""


def about(case: str) -> str:
    """Give the first line of a case: what it does."""
    folder = CORPUS / case / "about.txt"
    if folder.is_file():
        return folder.read_text("utf-8").strip()
    return (CORPUS / f"{case}.py").read_text("utf-8").splitlines()[0].strip('"')


@contextlib.contextmanager
def surroundings() -> Iterator[dict[str, str]]:
    """Give what a child could reach if nothing held it: servers, another student's file, a secret, a folder of ours."""
    with contextlib.ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        (folder / "other.py").write_text("secret = 1\n", "utf-8")
        (folder / "open").mkdir()
        (folder / "open").chmod(0o777)
        tcp = held.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        abstract = held.enter_context(socket.socket(socket.AF_UNIX))
        abstract.bind(f"\0grader-{os.getpid()}")
        abstract.listen()
        secret = "of-the-grader-alone"
        other = subprocess.Popen(["sleep", "infinity"], env={"PATH": os.defpath, "OF_THE_GRADER": secret})
        held.callback(other.wait)
        held.callback(other.kill)
        threading.Thread(target=_echo, args=(udp,), daemon=True).start()
        yield {
            "KIT": str(KIT),
            "OTHER": str(folder / "other.py"),
            "OUTSIDE": str(folder / "open"),
            "SECRET": secret,
            "TCP": str(tcp.getsockname()[1]),
            "UDP": str(udp.getsockname()[1]),
            "ABSTRACT": f"grader-{os.getpid()}",
        }


def _echo(line: socket.socket) -> None:
    """Send each datagram back until the socket is closed."""
    with contextlib.suppress(OSError):
        while True:
            line.sendto(*line.recvfrom(100))


@contextlib.contextmanager
def noted_box(*arguments: Any) -> Iterator[sandbox.Box]:
    """Open a box, and take note of whom it belongs to."""
    with sandbox.open_box(*arguments) as box:
        if box.place.user is not None:
            residue.box_users.add(box.place.user)
        yield box


grade.open_box = noted_box


def hand_in(case: str, folder: Path, names: dict[str, str]) -> Path:
    """Lay one case down as a submission."""
    package = folder / "lesson_22"
    shutil.copytree(SOLUTION, package, ignore=shutil.ignore_patterns("__pycache__"))
    if (CORPUS / case).is_dir():
        shutil.copytree(CORPUS / case, folder, dirs_exist_ok=True)
        return folder
    text = (CORPUS / f"{case}.py").read_text("utf-8")
    for name, found in names.items():
        text = text.replace(f"@{name}@", found)
    (package / "__init__.py").write_text(text, "utf-8")
    return folder


def ended(case: str, names: dict[str, str]) -> Ended:
    """Grade one case on the required checks, and look at what it left."""
    settings = load_settings()
    if case in NEVER_ANSWER:
        settings = replace(settings, limits=replace(settings.limits, call_seconds=0.5, start_seconds=2))
    known, before = residue.here(), residue.descriptors()
    with tempfile.TemporaryDirectory() as folder:
        handin = take(hand_in(case, Path(folder), names), "22")
        _, outcome = grade_handin(handin, load_suite("22").required, settings)
    reasons = {test.check.id: test.finding.reason for test in outcome.tests}
    left = residue.left(known)
    if left:
        residue.clear(known)
    left += ["descriptor"] if residue.descriptors() > before else []
    return {
        "left": left,
        "reasons": reasons if len(set(reasons.values())) > 1 else next(iter(reasons.values())),
    }


def all_ended(cases: Sequence[str]) -> dict[str, Ended]:
    """Grade cases one after the other: what one leaves is not taken for another's."""
    with surroundings() as names:
        return {case: ended(case, names) for case in cases}


def contained(case: str, found: Ended) -> bool:
    """Say whether a case came to nothing: nothing is left, and who is not right does not pass."""
    passed = found["reasons"] == ""
    return not found["left"] and (not passed or case in RIGHT_ALL_THE_SAME)


def kind() -> str:
    """Name the rung and who starts it, as the goldens do: `bubblewrap, root`."""
    return f"{rungs.strongest_rung().name}, {'user' if os.geteuid() else 'root'}"


def use(name: str) -> None:
    """Let this process use one rung, the strongest for `strongest`. Raises: LookupError when it does not work here."""
    if name == "strongest":
        return
    if name.endswith("-as-root"):
        raise LookupError(f"{name}: the corpus is not for this rung; it would reach everything")
    found = next((rung for rung in rungs.rungs() if rung.name == name and rungs.works(rung)), None)
    if found is None:
        raise LookupError(f"{name}: does not work here")
    rungs.strongest_rung = grade.strongest_rung = lambda: found
    sandbox.way_to_mount.cache_clear()


ANOTHER = 1_234_567
"""A user that is nobody's."""


def as_someone(user: int, *words: str) -> list[str]:
    """Give the command that runs this module as root or as an ordinary user, from root.

    Where the way to Python or to the kit is closed to others, it is opened in mounts of the command's own.
    """
    needed = [Path(sys.base_prefix).resolve(), KIT]
    closed = {
        next((up for up in reversed(path.parents) if not up.stat().st_mode & 1), None) for path in needed
    } - {None}
    opened = ["bwrap", "--dev-bind", "/", "/"] if closed else []
    for folder in closed:
        opened += ["--perms", "0755", "--tmpfs", str(folder)]
    for path in needed if closed else []:
        inside = [up for up in reversed(path.parents) if closed & set(up.parents)]
        for folder in inside:  # those that bubblewrap makes by itself are closed, too
            opened += ["--perms", "0755", "--dir", str(folder)]
        opened += ["--bind", str(path), str(path)]
    identity = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
    return [
        *opened,
        *(["--"] if opened else []),
        *identity,
        sys.executable,
        "-B",
        "-m",
        "tests.hostile",
        *words,
    ]


def goldens() -> dict[str, dict[str, Ended]]:
    """Give what is written: kind -> case -> how it ends."""
    return dict(json.loads(GOLDEN.read_text("utf-8"))) if GOLDEN.exists() else {}


def in_a_word(case: str, found: Ended) -> str:
    """Say how a case ends, as the table does."""
    if not contained(case, found):
        return "**not contained**" + (f" ({', '.join(found['left'])} left)" if found["left"] else "")
    reasons = found["reasons"]
    if reasons == "":
        return "harmless"
    return (
        reasons
        if isinstance(reasons, str)
        else next(word for word in GRAVEST_FIRST if word in reasons.values())
    )


def table() -> str:
    """Give the table of docs/isolation.md: every case on every rung, from the goldens."""
    golden = goldens()
    lines = [["case", "what it does", *KINDS], ["---"] * (2 + len(KINDS))]
    lines += [
        [f"`{case}`", about(case), *(in_a_word(case, golden[kind][case]) for kind in KINDS)] for case in CASES
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main(words: list[str]) -> None:
    """Run the corpus on one rung; print how it ended, or write that down as golden."""
    if words == ["--table"]:
        before, after = DOCUMENT.read_text("utf-8").split(BEGIN)[0], DOCUMENT.read_text("utf-8").split(END)[1]
        DOCUMENT.write_text(f"{before}{BEGIN}{table()}{END}{after}", "utf-8")
        return
    write = "--write" in words
    rung, *cases = [word for word in words if word != "--write"]
    use(rung)
    found = all_ended(cases or CASES)
    if not write:
        print(json.dumps({"kind": kind(), "ended": found}))
        return
    golden = goldens()
    golden[kind()] = golden.get(kind(), {}) | found if cases else found
    GOLDEN.write_text(json.dumps(golden, indent=1, sort_keys=True) + "\n", "utf-8")
    print(f"{GOLDEN.relative_to(KIT)}: {kind()} written", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
