"""`statelab bundle OUT.zip`: makes what an instructor hands to students.

0 the zip is written   1 refused, nothing was written   2 wrong use
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

import click

from labkit import words, workspace
from labkit.bundle.contents import FILES, FOLDERS, FRAME, KEPT_BACK, contents
from labkit.bundle.leaks import answers, leaks
from labkit.generate import GenerateError

SCHEMA = 1
TOP = "state-lab"
"""The one folder that the zip unpacks to."""
MAX_SHOWN = 5  # names in one sentence
_OLDEST_TIME = (1980, 1, 1, 0, 0, 0)  # zips know no earlier one; a real one would make every zip differ
_GIT_SECONDS = 20


class Refused(click.ClickException):
    """Nothing was written, and the text says why."""


@click.command(epilog="Example: statelab bundle out/state-lab.zip")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@click.option(
    "--lang", type=click.Choice(words.LANGUAGES), help="Language. Default: LAB_LANG, or the system's."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema 1) and nothing else.")
def main(*, out: Path, force: bool, lang: str | None, as_json: bool) -> None:
    """Make the zip that students get: the whole kit as they need it, without any solution.

    No answer is in it, in no file, notebook or overlay; the zip is searched for every line of them before it gets its
    name. Your own starter, and what running notebooks left behind, stay here. docs/instructor.md has the list.
    """
    if lang:
        words.use(lang)
    root = workspace.kit_root()
    if out.exists() and (out.is_dir() or not force):
        _refuse("exists", path=out)
    try:
        files = contents(root, known_to_git(root))
    except (OSError, GenerateError) as error:
        _refuse("incomplete", problem=error)
    _search(root, files)
    raw = pack(files)
    _write(out, raw, force=force)
    changed = uncommitted(root)
    _tell(out, files, raw, changed, as_json=as_json)


def pack(files: dict[str, bytes]) -> bytes:
    """Give the zip's bytes: files by name in one folder, no times, owners or links. The same files, the same bytes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, raw in sorted(files.items()):
            member = zipfile.ZipInfo(f"{TOP}/{name}", _OLDEST_TIME)
            member.create_system = 3  # or its mode would not count
            member.external_attr = 0o100644 << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, raw)
    return packed.getvalue()


def known_to_git(root: Path) -> set[str] | None:
    """Return the files that belong to the kit; None where it is no work tree, and so nobody's private file is told.

    Raises: Refused when Git cannot be asked: then a file of yours might be handed out.
    """
    if not (root / ".git").exists():
        return None
    return set(_git(root, "ls-files", "-z"))


def uncommitted(root: Path) -> list[str]:
    """List what is handed out and not committed as it is. Raises: Refused, as `known_to_git` does."""
    if not (root / ".git").exists():
        return []
    places = (*FILES, *FOLDERS, FRAME, "solution")
    changed = [
        entry[3:]
        for entry in _git(
            root, "status", "--porcelain=v1", "-z", "--untracked-files=no", "--no-renames", "--", *places
        )
    ]
    return [name for name in changed if not name.startswith(KEPT_BACK)]


def _git(root: Path, *words: str) -> list[str]:
    """Give Git's answer, which ends each entry with a NUL."""
    line = ["git", "-c", f"safe.directory={root}", *words]
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            line, cwd=root, env=environment, capture_output=True, check=True, timeout=_GIT_SECONDS
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or str(error).encode()
        _refuse("git", command=f"git {words[0]}", said=said.decode(errors="replace").strip().split("\n")[0])
    return [os.fsdecode(entry) for entry in done.stdout.split(b"\0") if entry]


def _search(root: Path, files: dict[str, bytes]) -> None:
    """Refuse what would give an answer away, or tell where this kit lies."""
    if workspace.reference_left_out():
        _refuse("no-reference")
    told = answers(root)
    places = dict.fromkeys({str(root), str(Path.home())} - {"/", "/root"}, "the path of a folder of yours")
    for name, what in leaks(files, told | places):
        _refuse("leak", name=name, what=what)


def _write(out: Path, raw: bytes, *, force: bool) -> None:
    """Write the zip whole or not at all; a file that came meanwhile keeps its name and its bytes."""
    new = out.with_name(f".statelab-{os.getpid()}.new")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        try:
            new.write_bytes(raw)
            if not force:
                out.open("xb").close()
            new.replace(out)
        finally:
            new.unlink(missing_ok=True)
    except FileExistsError:
        _refuse("exists", path=out)
    except OSError as error:
        _refuse("unwritable", path=out, why=error.strerror or "OSError")


def _tell(out: Path, files: dict[str, bytes], raw: bytes, changed: list[str], *, as_json: bool) -> None:
    plain: dict[str, Any] = {
        "schema": SCHEMA,
        "path": str(out),
        "kit": version("agent-state-lab"),
        "size": len(raw),
        "files": len(files),
        "uncommitted": changed,
    }
    if as_json:
        click.echo(json.dumps(plain, indent=1, ensure_ascii=False))
        return
    click.echo(words.t("bundle.written", path=str(out), files=len(files), size=len(raw)))
    if changed:
        more = f" … (+{len(changed) - MAX_SHOWN})" * (len(changed) > MAX_SHOWN)
        click.echo(words.t("bundle.uncommitted", names=", ".join(changed[:MAX_SHOWN]) + more), err=True)
    click.echo(words.t("bundle.next"))


def _refuse(key: str, **values: object) -> NoReturn:
    raise Refused(words.t(f"bundle.{key}", **values)) from None
