"""Names inside a submission: made one way, judged, and never used as a path of ours."""

from __future__ import annotations

import re
import unicodedata

MAX_SHOWN = 200
_DRIVE = re.compile(r"[A-Za-z]:")
_TOOLS_OWN = {
    "__pycache__",
    ".git",
    ".ipynb_checkpoints",
    "__MACOSX",
    ".DS_Store",
    "Thumbs.db",
    "desktop.ini",
}


def tidy(name: str) -> tuple[str, str]:
    """Give a name inside an archive without `.` and empty parts, and why it is not taken (`outside`, or "").

    A name that leads out (absolute, `..`, a drive, NUL) is given back as it is: so it never equals one of the kit's.
    """
    parts = name.split("/")
    if name.startswith("/") or ".." in parts or "\0" in name or _DRIVE.match(name):
        return name, "outside"
    return "/".join(part for part in parts if part not in ("", ".")), ""


def is_tools_own(name: str) -> bool:
    """Say whether a name belongs to a cache, a repository or the desktop: nobody's stray file, and never taken."""
    return any(part in _TOOLS_OWN or part.startswith("._") for part in name.split("/"))


def decoded(raw: bytes) -> str:
    """Read a name whose encoding nobody wrote down: UTF-8, else what Chinese Windows writes, else byte by byte."""
    for encoding in ("utf-8", "gb18030"):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    return raw.decode("cp437")


def in_utf8(name: str) -> str:
    """Give a name that can be written as UTF-8: bytes that are no text are escaped."""
    return name.encode("utf-8", "backslashreplace").decode()


def showable(name: str) -> str:
    """Give a name within a submission as it is listed: UTF-8, at most 200 characters."""
    whole = in_utf8(name)
    return whole if len(whole) <= MAX_SHOWN else f"{whole[: MAX_SHOWN - 1]}…"


def folded(name: str) -> str:
    """Give a name as it is compared by people: one Unicode form, no case."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKC", name).casefold())


def ends_like(name: str, ending: str) -> bool:
    """Say whether a name ends like another one but for case and Unicode form.

    Only that much of it is looked at: putting a long run of combining marks in order takes quadratic time.
    """
    return folded(name[-2 * len(ending) :]).endswith(folded(ending))
