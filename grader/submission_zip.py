"""What `statelab submit` makes: one zip of the lessons' named files and a manifest, the same bytes for the same content.

Everything goes through intake twice: the files are taken from the learner's folder as the grader would take them, and
the finished zip is opened again as the grader will open it, before it gets its name.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from grader.intake import MANIFEST, Handin, content_hash, open_submission, take
from grader.intake.folders import read_plain
from grader.intake.handin import kit_paths
from grader.intake.kit_files import MAX_NOTEBOOK_BYTES, MAX_NOTEBOOKS, is_notebook
from grader.intake.manifest import Manifest
from grader.intake.names import is_tools_own, showable
from labkit.workspace import LESSON_FOLDERS, kit_root

NOTEBOOKS = "notebooks"
UNTOUCHED = "assets/sample-class/untouched-starter"
_OLDEST_TIME = (1980, 1, 1, 0, 0, 0)  # zips know no earlier one; a real one would make every zip differ
_GIT_SECONDS = 20


class NotWholeError(Exception):
    """The zip does not give back what went into it. Nothing was left on disk."""


class NotebookError(ValueError):
    """A notebook that cannot be handed in: where, what, and what to do next."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a learner's folder holds of some lessons, and the notebooks chosen beside it, by their paths in the zip."""

    handins: Mapping[str, Handin]
    notebooks: Mapping[str, bytes]

    @property
    def files(self) -> dict[str, bytes]:
        """The lessons' files by their paths in the zip."""
        return kit_paths(self.handins)

    @property
    def missing(self) -> list[str]:
        """Lessons of which a needed file is not there."""
        return [lesson for lesson, handin in self.handins.items() if handin.problem]

    @property
    def untouched(self) -> list[str]:
        """Lessons whose files are the starter's, as the kit gave it out."""
        return [lesson for lesson, handin in self.handins.items() if handin.files and _is_untouched(handin)]


def gather(folder: Path, lessons: Sequence[str], notebooks: Sequence[Path] = ()) -> Work:
    """Take the lessons' files as the grader would, and read the notebooks. Raises: NotebookError."""
    return Work({lesson: take(folder, lesson) for lesson in lessons}, _read_notebooks(notebooks))


def pack(work: Work, manifest: Manifest) -> bytes:
    """Give the zip's bytes: manifest first, then files by name, without times, owners or folders."""
    files = {MANIFEST: manifest.encode(), **work.files, **work.notebooks}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in (MANIFEST, *sorted(files.keys() - {MANIFEST})):
            member = zipfile.ZipInfo(name, _OLDEST_TIME)
            member.create_system = 3  # or its mode would not count
            member.external_attr = 0o100644 << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, files[name])
    return packed.getvalue()


def write_whole(path: Path, work: Work, manifest: Manifest, *, replace: bool) -> None:
    """Write the zip whole or not at all, after opening it again as the grader will.

    Raises: FileExistsError for a file that is there, unless `replace`; NotWholeError; OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _beside(path) as new:
        with new.open("xb") as file:
            file.write(pack(work, manifest))
            file.flush()
            os.fsync(file.fileno())
        if not _gives_back(new, work, manifest):
            raise NotWholeError(f"{path}: what was packed does not come back; nothing was written")
        if replace:
            new.replace(path)
        else:
            _give_name(new, path)


def _give_name(new: Path, path: Path) -> None:
    """Give a file its name, never that of another, even of one that came meanwhile. Raises: OSError."""
    try:
        path.hardlink_to(new)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links, like that of a memory stick
        path.open("xb").close()
        new.replace(path)


def uncommitted(folder: Path, work: Work) -> list[str]:
    """List the handed-in files that differ from the last commit; none where there is no Git work tree."""
    git = shutil.which("git")
    if git is None:
        return []
    command = [git, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--", *LESSON_FOLDERS.values()]
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, check=False, timeout=_GIT_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    changed = [os.fsdecode(entry[3:]) for entry in done.stdout.split(b"\0") if len(entry) > 3]
    return [path for path in work.files if any(name == path or name.endswith(f"/{path}") for name in changed)]


def _read_notebooks(paths: Sequence[Path]) -> dict[str, bytes]:
    if len(paths) > MAX_NOTEBOOKS:
        raise NotebookError(f"{len(paths)} notebooks: at most {MAX_NOTEBOOKS} can be handed in; choose fewer")
    read: dict[str, bytes] = {}
    for path in paths:
        name = f"{NOTEBOOKS}/{path.name}"
        odd = is_tools_own(path.name) or "\\" in name or showable(name) != name
        if odd or not is_notebook(name):
            raise NotebookError(f"{path}: is not named like a notebook; name an .ipynb file")
        if name in read:
            raise NotebookError(f"{path}: another notebook has the same name; rename one")
        raw = read_plain(path, MAX_NOTEBOOK_BYTES)
        if not isinstance(raw, bytes):
            raise NotebookError(f"{path}: cannot be handed in ({raw}); name a notebook of at most 4 MiB")
        read[name] = raw
    return read


def _is_untouched(handin: Handin) -> bool:
    kit = take(kit_root() / UNTOUCHED, handin.lesson).files
    return _without_line_ends(handin.files) == _without_line_ends(kit)


def _without_line_ends(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {name: raw.replace(b"\r\n", b"\n") for name, raw in files.items()}


def _gives_back(path: Path, work: Work, manifest: Manifest) -> bool:
    opened = open_submission(path)
    return (
        {lesson: opened.handin(lesson).files for lesson in work.handins}
        == {lesson: handin.files for lesson, handin in work.handins.items()}
        and opened.notebooks == work.notebooks
        and opened.manifest == manifest
        and opened.content == content_hash(work.files)
        and not opened.left_out
    )


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """Give a name beside the file, which is gone at the end."""
    new = path.with_name(f".statelab-{os.getpid()}.new")
    try:
        yield new
    finally:
        new.unlink(missing_ok=True)
