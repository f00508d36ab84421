"""Strict JSON from regular files: what cannot be trusted is refused with a cause, never read halfway.

A file is read once; whoever hashes it hashes the bytes that were parsed.
"""

from __future__ import annotations

import json
import math
import os
import stat
from pathlib import Path
from typing import Any, NoReturn

DEPTH_LIMIT = 100


class BadFileError(Exception):
    """A file whose content must not be used. ``cause`` is for programs, ``reason`` for people."""

    def __init__(self, cause: str, reason: str) -> None:
        super().__init__(cause, reason)
        self.cause, self.reason = cause, reason

    def __str__(self) -> str:
        return self.reason


def load_object(path: Path, limit_bytes: int) -> dict[str, Any]:
    """Read one JSON object. Raises ``BadFileError``; an error of the operating system passes through."""
    return parse_object(read_regular(path, limit_bytes))


def read_regular(path: Path, limit_bytes: int) -> bytes:
    """Return the bytes of a regular file, looking at the open file itself: a name may change its meaning in between."""
    if path.is_symlink():
        raise BadFileError("symbolic_link", "是符号链接 (is a symbolic link)")
    # O_NONBLOCK: a named pipe must be refused, not waited for.
    flags = (
        os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    )
    descriptor = os.open(path, flags)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise BadFileError("not_a_file", "不是普通文件 (is not a regular file)")
        content = _read_up_to(descriptor, limit_bytes + 1)
    finally:
        os.close(descriptor)
    if len(content) > limit_bytes:
        raise BadFileError("too_large", f"超过 {limit_bytes} 字节 (is larger than {limit_bytes} bytes)")
    return content


def _read_up_to(descriptor: int, limit_bytes: int) -> bytes:
    content = bytearray()
    while len(content) < limit_bytes:
        piece = os.read(descriptor, limit_bytes - len(content))
        if not piece:
            break
        content += piece
    return bytes(content)


def parse_object(raw: bytes) -> dict[str, Any]:
    """Parse one strict JSON object; ``BadFileError`` with cause ``bad_json`` says why not, without quoting the content."""
    value = parse_value(raw)
    if not isinstance(value, dict):
        _refuse("不是 JSON 对象 (is not a JSON object)")
    return value


def parse_value(raw: bytes) -> Any:
    """Parse strict JSON of any kind; raises as ``parse_object`` does."""
    try:
        # Decoding first: json.loads would accept UTF-16, and a byte order mark, from bytes.
        value = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_unique_keys,
            parse_constant=_no_constant,
            parse_float=_finite,
        )
        _check_depth(value)
        # A lone surrogate, written as an escape, parses and then can be neither hashed nor saved.
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError as error:
        _refuse(f"第 {error.lineno} 行不是合法 JSON (line {error.lineno} is not valid JSON)")
    except UnicodeError:
        _refuse("不是合法的 UTF-8 文本 (is not valid UTF-8 text)")
    except RecursionError:
        _refuse("嵌套太深 (is nested too deeply)")
    except ValueError:  # an integer of more digits than Python reads back
        _refuse("有过长的整数 (holds an integer that is too long)")
    return value


def _check_depth(value: Any) -> None:
    """The same limit everywhere, whatever stack happens to be left."""
    level = [value]
    for _ in range(DEPTH_LIMIT + 1):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return
    raise RecursionError


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        _refuse("有重复的键 (holds a key twice)")
    return value


def _no_constant(word: str) -> NoReturn:
    _refuse(f"{word} 不是 JSON ({word} is not JSON)")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        _refuse("有超出范围的数 (holds a number out of range)")
    return number


def _refuse(reason: str) -> NoReturn:
    # `from None`: a JSONDecodeError carries the whole document, which must not reach a log.
    raise BadFileError("bad_json", reason) from None


def require_fields(value: dict[str, Any], names: tuple[str, ...]) -> None:
    """Check that an object has exactly these fields: a misspelt one must not pass as absent."""
    for name in value:
        if name not in names:
            raise BadFileError("unknown_field", f"有未知字段 {name!r} (has the unknown field {name!r})")
    for name in names:
        if name not in value:
            raise BadFileError("missing_field", f"缺少字段 {name!r} (lacks the field {name!r})")
