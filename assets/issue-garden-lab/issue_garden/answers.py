"""What a run says at its end: one JSON object on stdout and an exit code (P13)."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

EXIT_CODES = {
    "completed": 0,
    "closed": 0,
    "idle": 0,
    "rejected": 1,
    "refused": 2,  # bad input: contract, task, usage
    "blocked": 3,  # a person must look
    "interrupted": 75,
}


@dataclass(frozen=True)
class Answer:
    """A decision, its reason, and for everything that needs a second look a cause and a sentence about it.

    ``cause`` is a word for programs. ``message`` says in two languages what to look at. ``details`` are further fields.
    """

    decision: str
    reason: str
    cause: str | None = None
    message: str | None = None
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def exit_code(self) -> int:
        """The process's exit code, 0 to 75."""
        return EXIT_CODES[self.decision]

    def as_object(self) -> dict[str, Any]:
        """The answer as it is printed and saved."""
        head = {"decision": self.decision, "reason": self.reason}
        if self.cause is not None:
            head["cause"] = self.cause
        tail = {} if self.message is None else {"message": self.message}
        return head | self.details | tail


class StoppedError(Exception):
    """The run can go no further; ``answer`` says why. Raised deep inside, printed at the top."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.reason, answer.cause)
        self.answer = answer


def refused(reason: str, cause: str, message: str, **details: Any) -> StoppedError:
    """Bad input: nothing was moved, nothing was written."""
    return StoppedError(Answer("refused", reason, cause, message, details))


def blocked(reason: str, cause: str, message: str, **details: Any) -> StoppedError:
    """Something that only a person can decide."""
    return StoppedError(Answer("blocked", reason, cause, message, details))


def answer_of(run: Callable[[], Answer]) -> Answer:
    """Run to an answer, whatever stops it. A mistake in our own code is no answer: it stays loud."""
    try:
        return run()
    except StoppedError as stopped:
        return stopped.answer
    except OSError as error:
        return _environment_answer(error)
    except NotImplementedError as error:
        return Answer("blocked", "not_implemented", "exercise", str(error))


_DISK_ERRORS = {
    errno.ENOSPC: ("disk_full", "磁盘已满 (the disk is full)"),
    errno.EDQUOT: ("disk_full", "磁盘配额已用完 (the disk quota is used up)"),
    errno.EFBIG: ("disk_full", "文件大小到了上限 (the limit on file size is reached)"),
    errno.EROFS: ("not_writable", "文件系统只读 (the file system is read-only)"),
    errno.EACCES: ("not_writable", "没有权限 (permission is denied)"),
    errno.EPERM: ("not_writable", "没有权限 (permission is denied)"),
    errno.ENOENT: ("folder_missing", "文件或文件夹不存在 (a file or folder is missing)"),
    errno.ELOOP: ("unsafe_path", "路径上有符号链接 (a symbolic link stands in the path)"),
    errno.ENOTDIR: ("unsafe_path", "路径中间不是文件夹 (something in the path is no folder)"),
}


def _environment_answer(error: OSError) -> Answer:
    cause, what = _DISK_ERRORS.get(error.errno or 0, ("io_error", f"{error.strerror}"))
    where = os.fspath(error.filename) if isinstance(error.filename, (str, os.PathLike)) else "磁盘 (disk)"
    advice = "先解决它，再运行一次；已写下的状态没有被改动"
    advice_en = "put that right and run again; what was recorded before stays as it is"
    return Answer("blocked", "environment", cause, f"{where}: {what}; {advice} ({advice_en})")


def print_answer(answer: Answer) -> int:
    """Write the answer to stdout as UTF-8, whatever the terminal's own encoding, and return its exit code.

    Where nobody can read it, that is a person's matter (3), whatever was decided: the records have the decision.
    """
    text = json.dumps(answer.as_object(), ensure_ascii=False, indent=2) + "\n"
    try:
        _write_out(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        what = f"回答写不出去 (the answer cannot be written): {error.strerror}"
        advice = "结论在 .loop 里，修好输出再看 (the decision is in .loop; mend the output, then look there)"
        if sys.stderr is not None:
            print(f"stdout: {what}; {advice}", file=sys.stderr)
        return EXIT_CODES["blocked"]
    return answer.exit_code


def _write_out(content: bytes) -> None:
    """Hand ``content`` to stdout, past Python's buffer: what fails in there fails again, silently, at the exit."""
    if sys.stdout is None:  # closed before we began; descriptor 1 may by now be somebody's file
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    sys.stdout.flush()
    while content:
        content = content[os.write(sys.stdout.fileno(), content) :]
