"""Which files a student gets, and what stands in them where the kit itself holds an answer.

Lesson code keeps its marker regions, with a stand-in for each body: so the starter is still generated from it, byte for
byte, and everything that imports it still finds its names.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from labkit import generate, notebook_strip
from labkit.lab_folder import EXERCISE

FRAME = "assets/student-bundle"
"""What only a bundle has: its first pages, the learner's own AGENTS.md, the stand-in for the reference's reader."""
FILES = (
    *(".gitignore", "Makefile", "pyproject.toml", "requirements.lock", "requirements-node.lock"),
    *(f"docs/{name}.md" for name in ("formats", "formats-spine", "formats-durable", "formats-crash")),
    *("docs/crash-models.md", "docs/log-command.md"),
)
FOLDERS = (
    *("grader", "labkit", "notebooks/en", "notebooks/zh", "solution/durable_log"),
    *("assets/corruption-zoo", "assets/crash-lab", "assets/my-tests"),
    *("assets/issue-garden-lab", "assets/lesson-03-result", "assets/lesson-04-state"),
)
KEPT_BACK = (
    "grader/suites/mutants/",  # small edits of right stores: the right one stands beside them
    "grader/sample_class.py",
    "labkit/devgate.py",
    "labkit/experiments/instructor.py",
    "notebooks/en/instructor.ipynb",
    "notebooks/zh/instructor.ipynb",
)
LESSONS = ("lesson_22", "lesson_04")
_LEFT_BEHIND = {"__pycache__", ".ipynb_checkpoints", ".DS_Store", ".git", ".loop"}
_DEVELOPERS = re.compile(r"^(grade|test|check|bench|proof): .*\n\t.*\n", re.MULTILINE)
_SAID = "这份套件不带参考实现 (this kit was handed out without the reference)"
_READS = {  # the engineering version's own inspector judges a lesson's log; nobody can hand that in
    "def scan(": "return stand_in.judge(raw, path, decode_line, LogScan, CorruptLogError)",
    "async def read(": "return list(stand_in.events(self.path, scan, _refuse_special_file))",
}
_IMPORT = (
    "# BEGIN SOLUTION\nfrom labkit.bundle import stand_in\n# END SOLUTION\n"  # vanishes from the starter
)


def contents(root: Path, known: Collection[str] | None = None) -> dict[str, bytes]:
    """Return path -> bytes of everything that a student gets, by path; of whole folders only what is ``known``.

    None knows everything. Raises: OSError, GenerateError.
    """
    files = {name: (root / name).read_bytes() for name in FILES}
    for folder in FOLDERS:
        names = [name for name in _below(root, folder) if known is None or name in known]
        files |= {name: (root / name).read_bytes() for name in names}
    files |= dict(_lessons(root))
    files["solution/__init__.py"] = (root / "solution/__init__.py").read_bytes()
    files |= {name.removeprefix(f"{FRAME}/"): (root / name).read_bytes() for name in _below(root, FRAME)}
    files["Makefile"] = _for_students(files["Makefile"].decode())
    files["starter/.generated.json"] = _record(files)
    return {name: _stripped(name, raw) for name, raw in sorted(files.items())}


def stand_in_text(source: str, where: str) -> str:
    """Return a lesson's source with a stand-in for the body of every region. Raises: GenerateError."""
    made: list[str] = []
    opened = reads = ""
    for _, line, is_answer in generate.regions(source, where):
        if is_answer:
            continue
        mark = line.strip()
        if mark.startswith("# BEGIN SOLUTION:"):
            opened = line[: len(line) - len(line.lstrip())]
            made.append(
                f"{line}{opened}{reads or f'raise NotImplementedError({json.dumps(_SAID, ensure_ascii=False)})'}\n"
            )
            continue
        if mark.startswith(("def ", "async def ")):
            reads = next((body for head, body in _READS.items() if mark.startswith(head)), "")
        made.append(line)
    text = "".join(made)
    first = "from .event_line import"
    return text.replace(first, _IMPORT + first, 1) if "stand_in." in text else text


def _lessons(root: Path) -> Iterator[tuple[str, bytes]]:
    """Give the lessons' code: with stand-ins, as the starter, as the untouched starter, and in the overlay."""
    for tree in generate.TREES:
        if tree.leave_out:
            yield from (
                (f"{tree.target}/{name}", raw) for name, raw in generate.generated(root, tree).items()
            )
    for lesson in LESSONS:
        for name in _below(root, f"solution/{lesson}"):
            raw = (root / name).read_bytes()
            if name.endswith(".py"):
                raw = stand_in_text(raw.decode(), name).encode()
            yield name, raw
            if Path(name).name in EXERCISE:
                yield f"assets/lesson-04-state/issue_garden/{Path(name).name}", raw


def _below(root: Path, folder: str) -> Iterator[str]:
    for path in sorted((root / folder).rglob("*")):
        name = path.relative_to(root).as_posix()
        dull = _LEFT_BEHIND.intersection(path.parts) or path.is_symlink() or not path.is_file()
        if not dull and not name.startswith(KEPT_BACK):
            yield name


def _for_students(makefile: str) -> bytes:
    text = _DEVELOPERS.sub("", makefile)
    return re.sub(r"^\.PHONY: .*$", ".PHONY: help setup lab verify reset", text, flags=re.MULTILINE).encode()


def _record(files: dict[str, bytes]) -> bytes:
    """Write down what is generated in the bundle, or `statelab workspace reset` would take it for somebody's edit."""
    known = {
        name: hashlib.sha256(raw).hexdigest()
        for name, raw in files.items()
        if any(name.startswith(f"{tree.target}/") for tree in generate.TREES)
    }
    return (json.dumps(known, indent=1, sort_keys=True) + "\n").encode()


def _stripped(name: str, raw: bytes) -> bytes:
    if not name.endswith(".ipynb"):
        return raw
    return notebook_strip.dumps(notebook_strip.strip(json.loads(raw)))
