"""One event and its line: strict JSON, both ways (docs/formats.md).

Everything here is pure: text in, value out. Files, order and recovery live in ``session_store``.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any, NoReturn

MAX_DEPTH = 100
"""Levels of ``[`` and ``{`` that ``data`` may have; one limit for writer and reader."""

_COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_JSON_SPACE = " \t\r\n"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_FIELDS = {"sequence", "type", "data"}
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]+|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class SessionEvent:
    """One thing that happened: its number (1-based), its stable code name, its JSON data.

    Frozen, but shallow: nested ``data`` can still be changed by whoever holds this copy, never the log.
    """

    sequence: int
    type: str
    data: Any


class NotJsonError(ValueError):
    """The bytes are not one strict JSON text. At the very end of a log this may be a torn write."""


class NotAnEventError(ValueError):
    """The bytes are JSON, but not an event. No crash leaves this behind."""


def capture_type(type_: object) -> tuple[str, bytes]:
    """Return the event type without the white space around it, and its JSON bytes (S3).

    Raises: TypeError when it is not a string, ValueError when it is blank or not encodable.
    """
    if not isinstance(type_, str):
        raise TypeError(
            "type: 事件类型必须是字符串 (the event type must be a string); 请传入 str (pass a str)"
        )
    name = type_.strip()
    if not name:
        raise ValueError("type: 事件类型不能为空 (the event type is blank); 请给事件起名 (name the event)")
    return name, _utf8(_COMPACT.encode(name), "type")


def capture_data(data: object) -> tuple[Any, bytes]:
    """Take ``data`` as it is now: a copy that shares nothing with the caller, and its JSON bytes (S3, S5).

    Raises: TypeError or ValueError for what cannot be JSON, or would not come back equal (S4).
    """
    try:
        text = _COMPACT.encode(data)
    except TypeError:
        raise TypeError(
            "data: 含有 JSON 没有的类型 (holds a type that JSON does not have); 先转换 (convert it)"
        ) from None
    except (ValueError, RecursionError):
        # A cycle, NaN or Infinity, an integer of over 4,300 digits, or nesting past the stack.
        raise ValueError(
            "data: 循环引用、NaN、过长整数或嵌套过深 (a cycle, NaN, an integer too long or nesting too deep); 先整理 (clean it up)"
        ) from None
    try:
        return parse_strict(text, MAX_DEPTH), _utf8(text, "data")
    except NotJsonError as problem:
        # Written as JSON, but not readable as strict JSON: keys that collide as text, or nesting over the limit.
        raise ValueError(f"data: {problem}; 先整理再追加 (clean it up before you append)") from None


def encode_line(sequence: int, type_json: bytes, data_json: bytes) -> bytes:
    """Return the whole record, newline included, ready for one write (S9)."""
    return b'{"sequence":%d,"type":%b,"data":%b}\n' % (sequence, type_json, data_json)


def decode_line(raw: bytes) -> SessionEvent:
    """Return the event that one line (without its newline) stands for.

    Raises: NotJsonError when it does not parse, NotAnEventError when it parses and is no event; neither quotes it.
    """
    if raw.startswith(_BYTE_ORDER_MARK):
        raise NotJsonError("以 BOM 开头 (starts with a byte order mark)")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise NotJsonError("不是合法 UTF-8 (not valid UTF-8)") from None
    return _as_event(parse_strict(text, MAX_DEPTH + 1))


def parse_strict(text: str, max_depth: int) -> Any:
    """Parse one JSON text and refuse what Python's own parser lets pass.

    Raises: NotJsonError for bad JSON, NaN, Infinity, an overflowing number, a doubled key, or too many levels.
    """
    if text.count("[") + text.count("{") > max_depth and _depth(text) > max_depth:
        raise NotJsonError(f"嵌套超过 {max_depth} 层 (nested deeper than {max_depth} levels)")
    body = text.strip(_JSON_SPACE)
    try:
        value, end = _STRICT.raw_decode(body)
    except NotJsonError:
        raise
    except json.JSONDecodeError:
        # `from None`: the parser's own error keeps the whole text, and this one must not leak it.
        raise NotJsonError("不是合法 JSON (not valid JSON)") from None
    except ValueError:
        raise NotJsonError("整数过长 (an integer is too long)") from None
    if end != len(body):
        raise NotJsonError("一个 JSON 之后还有别的字节 (more bytes follow one JSON text)")
    return value


def _as_event(value: Any) -> SessionEvent:
    if not isinstance(value, dict):
        raise NotAnEventError("不是 JSON 对象 (not a JSON object)")
    if value.keys() != _FIELDS:
        raise NotAnEventError("字段应恰为 sequence、type、data (the fields must be sequence, type and data)")
    sequence, type_ = value["sequence"], value["type"]
    if type(sequence) is not int:  # True == 1 == 1.0 in Python; on disk they differ
        raise NotAnEventError("sequence 不是整数 (sequence is not an integer)")
    if not isinstance(type_, str) or not type_.strip():
        raise NotAnEventError("type 不是非空字符串 (type is not a string with text)")
    return SessionEvent(sequence, type_, value["data"])


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise NotJsonError("有重复的键 (a key stands twice)")
    return members


def _refuse_constant(_token: str) -> NoReturn:
    raise NotJsonError("NaN 或 Infinity 不是 JSON (NaN or Infinity is not JSON)")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise NotJsonError("数字溢出 (a number overflows)")
    return number


_STRICT = json.JSONDecoder(
    object_pairs_hook=_unique_keys, parse_constant=_refuse_constant, parse_float=_finite
)


def _depth(text: str) -> int:
    """Count levels without recursion, so that a nesting bomb cannot reach the parser's stack."""
    deepest = level = 0
    for found in _STRING_OR_BRACKET.findall(text):
        if found in "[{":
            level += 1
            deepest = max(deepest, level)
        elif found in "]}":
            level -= 1
    return deepest


def _utf8(text: str, where: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        # `from None`: the encoder's own error keeps the whole text.
        raise ValueError(
            f"{where}: 含有孤立的代理字符 (holds a lone surrogate), UTF-8 无法编码; 先替换 (replace it first)"
        ) from None
