"""Which of a submission's entries are taken for a lesson, and what is said about the others."""

from __future__ import annotations

from collections.abc import Sequence

from grader.intake.handin import Handin, LeftOut
from grader.intake.kit_files import (
    KIT_FILES,
    MANIFEST,
    MAX_FILE_BYTES,
    MAX_NOTEBOOK_BYTES,
    MAX_NOTEBOOKS,
    KitFiles,
    is_notebook,
)
from grader.intake.names import ends_like, showable
from grader.intake.reasons import reason
from grader.intake.source import Entry, Source
from grader.suites.check import Text
from labkit.workspace import HOMEWORK, LESSON_FOLDERS

MAX_LISTED = 50
_ARCHIVE_ENDINGS = (".zip", ".tar", ".gz", ".tgz", ".xz", ".bz2", ".zst", ".7z", ".rar")
_KIT_OWN = ("__init__.py", ".generated.json")  # beside the lesson folders; nobody needs to hear of them


def choose(source: Source, lesson: str) -> Handin:
    """Take one lesson's files: at the root, below `starter/`, or one folder down; or the lesson's folder itself.

    The homework is taken from where its lesson lies.
    """
    if lesson == HOMEWORK:
        return choose(source, "22").homework()
    return _Choice(source, lesson).handin()


class _Choice:
    """One lesson's files, picked from one source."""

    def __init__(self, source: Source, lesson: str) -> None:
        self._source, self._lesson, self._kit = source, lesson, KIT_FILES[lesson]
        self._home = home_of([entry.name for entry in source.entries], lesson)
        self._files: dict[str, bytes] = {}
        self._left_out: list[LeftOut] = []
        self._named: dict[str, str] = {}
        self._unlisted = 0

    def handin(self) -> Handin:
        others = {name for number, name in LESSON_FOLDERS.items() if number != self._lesson}
        for entry in sorted(self._source.entries):
            if not others.intersection(entry.name.split("/")):
                self._look(entry)
        if self._unlisted:
            self._left_out.append(LeftOut(f"+{self._unlisted}", "more"))
        return Handin(self._lesson, self._files, tuple(self._left_out), self._missing())

    def _look(self, entry: Entry) -> None:
        """Take one entry, or leave it out."""
        known = entry.name.removeprefix(self._home) if entry.name.startswith(self._home) else ""
        if known in self._kit.named:
            raw = entry.why or self._source.read(entry.name, MAX_FILE_BYTES)
            if isinstance(raw, bytes):
                self._files[known] = raw
            else:
                self._named[known] = raw
                self._left_out.append(LeftOut(showable(entry.name), raw))
        elif not self._is_nobodys(entry, known):
            self._leave(entry, known)

    def _is_nobodys(self, entry: Entry, known: str) -> bool:
        """Say whether an entry is the kit's own, unchanged, or taken otherwise: it need not be listed."""
        folder, _, last = entry.name.rpartition("/")
        if last == MANIFEST or is_notebook(last):
            return not entry.why
        if last in _KIT_OWN and folder == self._home.rstrip("/").rpartition("/")[0]:
            return True
        given = self._kit.given_bytes(known) if known and not entry.why else None
        return given is not None and self._source.read(entry.name, MAX_FILE_BYTES) == given

    def _leave(self, entry: Entry, known: str) -> None:
        if len(self._left_out) >= MAX_LISTED and entry.why != "too-many":
            self._unlisted += 1
            return
        why = entry.why
        if not why and known and any(ends_like(f"/{known}", f"/{name}") for name in self._kit.named):
            why = "misnamed"
        if not why and entry.name.lower().endswith(_ARCHIVE_ENDINGS):
            why = "archive"
        self._left_out.append(LeftOut(showable(entry.name), why or "unnamed"))

    def _missing(self) -> Text | None:
        """Say which needed files are not there, and what stands in their place."""
        missing = [name for name in self._kit.needed if name not in self._files]
        if not missing:
            return None
        told = [self._told(name) for name in missing]
        return Text(
            f"缺少 {'、'.join(text.zh for text in told)}",
            f"{', '.join(text.en for text in told)} is not there",
        )

    def _told(self, name: str) -> Text:
        """Name one missing file, with what was found instead."""
        path = f"{LESSON_FOLDERS[self._lesson]}/{name}"
        if name in self._named:
            why = reason(self._named[name])
            return Text(f"{path}（{why.zh}）", f"{path} ({why.en})")
        names = [entry.name for entry in self._source.entries]
        for found in names:
            if ends_like(f"/{found}", f"/{path}"):
                shown = showable(found)
                return Text(f"{path}（有一个在 {shown}）", f"{path} (there is one at {shown})")
        for found in names:
            if found.lower().endswith(_ARCHIVE_ENDINGS):
                shown = showable(found)
                return Text(f"{path}（先解开 {shown}）", f"{path} (unpack {shown} first)")
        return Text(path, path)


def home_of(names: Sequence[str], lesson: str) -> str:
    """Give the prefix of the lesson's files, with its final `/`: the first place that has any of the needed ones.

    Beside a `starter/` only that counts: what else lies there is the kit's own, its solution among it.
    """
    kit, folder, present = KIT_FILES[lesson], LESSON_FOLDERS[lesson], set(names)
    tops = sorted({name.partition("/")[0] for name in names if "/" in name})
    above = [""] if "starter" in tops else ["", *(f"{top}/" for top in tops)]
    places = [f"{prefix}{inner}{folder}/" for prefix in above for inner in ("", "starter/")]
    return next((place for place in (*places, "") if _has_any(kit, place, present)), places[0])


def _has_any(kit: KitFiles, place: str, present: set[str]) -> bool:
    return any(f"{place}{needed}" in present for needed in kit.needed)


def notebooks_of(source: Source) -> tuple[dict[str, bytes], list[LeftOut]]:
    """Give the notebooks by their names, and those that were left out."""
    taken: dict[str, bytes] = {}
    left_out: list[LeftOut] = []
    for entry in sorted(source.entries):
        if not is_notebook(entry.name):
            continue
        raw = entry.why or (
            source.read(entry.name, MAX_NOTEBOOK_BYTES) if len(taken) < MAX_NOTEBOOKS else "too-many"
        )
        if isinstance(raw, bytes):
            taken[showable(entry.name)] = raw
        elif len(left_out) < MAX_LISTED:
            left_out.append(LeftOut(showable(entry.name), raw))
    return taken, left_out
