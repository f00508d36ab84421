"""The manifest that `statelab submit` puts beside the lessons: whose work it is, of which kit, of which content."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import asdict, dataclass
from datetime import datetime

from grader.suites.check import Text

SCHEMA = 1
MAX_MANIFEST_BYTES = 64 * 1024
MAX_ID_CHARACTERS = 100
_HASH = re.compile(r"[0-9a-f]{64}")


class ManifestError(ValueError):
    """A manifest that is not used. The text says why, in English; a submission without one is as good."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a submission says about itself: a student's word, not evidence.

    student   the student's id, as `student_id` gives it
    kit       version of the kit that made it
    content   `content_hash` of the files when it was made
    made_at   when: ISO 8601 with a zone
    """

    student: str
    kit: str
    content: str
    made_at: str

    def encode(self) -> bytes:
        """Give the manifest's bytes."""
        return (json.dumps({"schema": SCHEMA, **asdict(self)}, ensure_ascii=False, indent=1) + "\n").encode()


CHANGED = Text(
    "文件在打包之后改动过，和清单对不上",
    "the files were changed after they were packed: they are not what the manifest says",
)


def decode(raw: bytes) -> Manifest:
    """Read a manifest strictly. Raises: ManifestError."""
    if len(raw) > MAX_MANIFEST_BYTES:
        raise ManifestError(f"larger than {MAX_MANIFEST_BYTES} bytes")
    try:
        plain = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise ManifestError("not JSON") from None
    if not isinstance(plain, dict) or plain.get("schema") != SCHEMA:
        raise ManifestError(f"not a manifest of schema {SCHEMA}")
    fields = {name: plain.get(name) for name in Manifest.__slots__}
    if not all(type(value) is str and len(value) <= MAX_ID_CHARACTERS for value in fields.values()):
        raise ManifestError("a field is missing, or is no short text")
    manifest = Manifest(**{name: str(value) for name, value in fields.items()})
    if not manifest.student or student_id(manifest.student) != manifest.student:
        raise ManifestError("the student id is not one")
    if not _HASH.fullmatch(manifest.content) or not _is_time(manifest.made_at):
        raise ManifestError("the content hash or the time is not one")
    return manifest


def student_id(text: str) -> str:
    """Give a student id as it is kept: one Unicode form, no white space around it. "" for what is none.

    An id has 1 to 100 printable characters of any script; what moves a cursor or hides in a line is not printable.
    """
    kept = unicodedata.normalize("NFC", text).strip()
    return kept if 1 <= len(kept) <= MAX_ID_CHARACTERS and kept.isprintable() else ""


def unusable(error: ManifestError) -> Text:
    """Say that a manifest was not used."""
    return Text(
        f"清单文件用不了（{error}），按文件名认人",
        f"the manifest was not used ({error}); the name decides whose it is",
    )


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False
