"""What is taken from a submission: the files that the kit names, as bytes, and nothing else (G3).

`open_submission` is the door of a class run: a folder, zip, tar or Git repository in, one plain value out, whatever the
submission holds. `take` is the door for one lesson of a folder or archive as it stands. What each kind of submission
may look like, and what is left out, is told in docs/hand-in.md.
"""

from __future__ import annotations

from grader.intake.handin import ARCHIVES, Handin, LeftOut, Opened, content_hash
from grader.intake.kit_files import KIT_FILES, MANIFEST, MAX_FILE_BYTES, KitFiles
from grader.intake.opening import is_submission, open_submission, take
from grader.intake.reasons import reason

__all__ = [
    "ARCHIVES",
    "KIT_FILES",
    "MANIFEST",
    "MAX_FILE_BYTES",
    "Handin",
    "KitFiles",
    "LeftOut",
    "Opened",
    "content_hash",
    "is_submission",
    "open_submission",
    "reason",
    "take",
]
