"""Labs brought to a stage once, by the lesson's own commands, and copied from then on.

first      the garden before its first task: one commit, issue-001 in the inbox, the runner without a memory
lesson-3   as lesson 4 finds it: what lesson 3 made, not committed
ready      that and the overlay committed, as before the third step
claimed    interrupted after its claim
finished   resumed and verified

A quick lab has one ``git grep`` for its three verification commands: it decides the same, without waiting for Node.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from labkit import lab_folder, workspace
from labkit.experiments.left_out import need_reference
from labkit.experiments.lesson_04.garden import LAB, NOTEBOOK, Garden, environment

QUICK = [
    {"name": "acceptance", "argv": ["git", "grep", "-q", "p{P}", "--", "src/search.mjs"], "min_tests": 0}
]
_one_at_a_time = threading.RLock()

# The learner's code may not be able to claim yet, and is to be asked about a task that was claimed as it should be.
_CLAIM_BY = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from issue_garden.agents import SimulatedAgent
from issue_garden.stateful_round import run_round
run_round(Path.cwd(), SimulatedAgent(), interrupt_after_claim=True)
"""


def copy_of(stage: str, place: Path, code: str = "solution", *, quick: bool = True) -> Path:
    """Make ``place`` and in it a lab at that stage, with ``code``'s spine; return the lab."""
    place.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copytree(template(stage, code, quick=quick), place / LAB, symlinks=True))


def folder() -> Path:
    """Return where prepared labs are kept between runs."""
    made = workspace.scratch(NOTEBOOK) / ".prepared"
    made.mkdir(exist_ok=True)
    return made


def template(stage: str, code: str, *, quick: bool) -> Path:
    """Return a lab at a stage, made now unless one of the same sources is there. Half a lab is never seen."""
    about = f"{stage}-{'quick' if quick else 'real'}-{'reference' if code == 'solution' else 'yours'}"
    ready = folder() / f"{about}-{_fingerprint(code)}"
    with _one_at_a_time:
        if not ready.is_dir():
            for stale in set(folder().glob(f"{about}-*")) - {ready}:
                shutil.rmtree(stale, ignore_errors=True)
            _make_whole(stage, code, ready, quick=quick)
    return ready


def _make_whole(stage: str, code: str, ready: Path, *, quick: bool) -> None:
    staging = Path(tempfile.mkdtemp(prefix=".making-", dir=folder()))
    try:
        _make(stage, code, staging / LAB, quick=quick).rename(ready)
    except OSError:
        if not ready.is_dir():  # else another kernel was quicker: its lab is as good
            raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _make(stage: str, code: str, lab: Path, *, quick: bool) -> Path:
    if stage in ("claimed", "finished"):
        before = {"claimed": "ready", "finished": "claimed"}[stage]
        shutil.copytree(template(before, code, quick=quick), lab, symlinks=True)
        _claim(lab, code) if stage == "claimed" else Garden(lab, []).run()
        return lab
    lab_folder.new(lab, code, ready=stage == "ready")
    garden = Garden(lab, [])
    if stage == "first":
        garden.git("checkout", "--quiet", "--", ".")
        garden.git("clean", "--quiet", "--force", "-d")
    if quick and stage != "lesson-3":
        garden.edit(lab / "loop.contract.json", verification=QUICK)
        garden.commit("one quick command verifies")
    garden.git("gc", "--quiet", "--prune=now")  # few files: it is copied often
    return lab


def _claim(lab: Path, code: str) -> None:
    if code == "solution":
        Garden(lab, []).interrupt()
        return
    need_reference()
    reference = template("ready", "solution", quick=True)
    subprocess.run(
        [sys.executable, "-c", _CLAIM_BY, str(reference)],
        cwd=lab,
        env=environment(),
        check=True,
        capture_output=True,
    )


def _fingerprint(code: str) -> str:
    """Tell one set of sources from the next: assets, spine, and how a lab is laid down, as they are now."""
    assets = workspace.kit_root() / "assets"
    trees = [*(assets / name for name in ("issue-garden-lab", "lesson-03-result", "lesson-04-state"))]
    digest = hashlib.sha256(sys.executable.encode())
    for module in (__file__, lab_folder.__file__):
        digest.update(Path(module).read_bytes())
    for tree in [*trees, workspace.lesson_source("04", "solution"), workspace.lesson_source("04", code)]:
        for path in sorted(tree.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"\0{path.relative_to(tree)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]
