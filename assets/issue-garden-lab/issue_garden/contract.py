"""The contract: what an agent may change, how much, and which commands decide."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from issue_garden.answers import refused
from issue_garden.json_files import BadFileError, parse_object, read_regular, require_fields

CONTRACT_NAME = "loop.contract.json"
CONTRACT_LIMIT_BYTES = 65_536
LONGEST_SECONDS = 86_400
BUDGETS = ("max_files", "max_lines", "agent_seconds", "command_seconds", "output_bytes")
FIELDS = ("version", "allowed_paths", "protected_paths", *BUDGETS, "verification")


@dataclass(frozen=True)
class Command:
    """One verification command: an argument list, never a line for a shell."""

    name: str
    argv: tuple[str, ...]
    min_tests: int


@dataclass(frozen=True)
class Contract:
    """A valid contract. Times are seconds, ``output_bytes`` is kept per process.

    ``document`` is the object as parsed; ``digest`` is the SHA-256 of the very bytes that were parsed.
    """

    allowed_paths: tuple[str, ...]
    protected_paths: tuple[str, ...]
    max_files: int
    max_lines: int
    agent_seconds: int
    command_seconds: int
    output_bytes: int
    verification: tuple[Command, ...]
    document: dict[str, Any]
    digest: str


def load_contract(lab: Path) -> Contract:
    """Read ``loop.contract.json``, once. A contract that is not wholly valid is refused with its cause."""
    try:
        raw = read_regular(lab / CONTRACT_NAME, CONTRACT_LIMIT_BYTES)
        return parse_contract(parse_object(raw), "sha256:" + hashlib.sha256(raw).hexdigest())
    except BadFileError as bad:
        cause, reason = bad.cause, bad.reason
    except FileNotFoundError:
        cause, reason = "not_found", "文件不存在 (the file is missing)"
    advice = "先改好契约，再运行 (correct the contract, then run again)"
    raise refused("bad_contract", cause, f"{CONTRACT_NAME}: {reason}; {advice}") from None


def parse_contract(value: dict[str, Any], digest: str) -> Contract:
    """Check every field of a contract; ``BadFileError`` names the first that is wrong."""
    require_fields(value, FIELDS)
    if type(value["version"]) is not int or value["version"] != 1:
        raise BadFileError("bad_value", "version 应为 1 (version must be 1)")
    for name in BUDGETS:
        _require_integer(name, value[name], 1)
    for name in ("agent_seconds", "command_seconds"):
        if value[name] > LONGEST_SECONDS:
            raise BadFileError(
                "bad_value",
                f"{name} 超过 {LONGEST_SECONDS} 秒 ({name} is more than {LONGEST_SECONDS} seconds)",
            )
    if not 1_024 <= value["output_bytes"] <= 262_144:
        raise BadFileError(
            "bad_value", "output_bytes 应在 1024 与 262144 之间 (output_bytes is 1024 to 262144)"
        )
    if not value["allowed_paths"]:
        raise BadFileError("bad_value", "allowed_paths 是空的 (allowed_paths is empty)")
    return Contract(
        allowed_paths=_paths("allowed_paths", value["allowed_paths"]),
        protected_paths=_paths("protected_paths", value["protected_paths"]),
        **{name: value[name] for name in BUDGETS},
        verification=_commands(value["verification"]),
        document=value,
        digest=digest,
    )


def _require_integer(name: str, number: Any, least: int) -> None:
    # `type is int`: True equals 1 in Python, and is no number of files.
    if type(number) is not int or number < least:
        raise BadFileError(
            "bad_value", f"{name} 应为不小于 {least} 的整数 ({name} is an integer of at least {least})"
        )


def _paths(name: str, paths: Any) -> tuple[str, ...]:
    if not isinstance(paths, list):
        raise BadFileError("bad_value", f"{name} 不是列表 ({name} is not a list)")
    for path in paths:
        parts = path.removesuffix("/").split("/") if isinstance(path, str) else [""]
        if any(part in ("", ".", "..") or "\\" in part for part in parts):
            raise BadFileError(
                "bad_value", f"{name} 里有不合法的路径 ({name} holds a path that is not plain and relative)"
            )
    return tuple(paths)


def _commands(value: Any) -> tuple[Command, ...]:
    if not isinstance(value, list) or not value:
        raise BadFileError("bad_value", "verification 不是非空列表 (verification is not a list, or empty)")
    commands = tuple(_command(item) for item in value)
    if len({command.name for command in commands}) != len(commands):
        raise BadFileError("bad_value", "verification 里有重名的命令 (verification names a command twice)")
    return commands


def _command(value: Any) -> Command:
    if not isinstance(value, dict):
        raise BadFileError(
            "bad_value", "verification 里有不是对象的项 (verification holds something that is no object)"
        )
    require_fields(value, ("name", "argv", "min_tests"))
    texts = [value["name"], *value["argv"]] if isinstance(value["argv"], list) and value["argv"] else [None]
    if not all(isinstance(text, str) and text and "\0" not in text for text in texts):
        raise BadFileError(
            "bad_value",
            "命令的 name 与 argv 应为非空文本 (name and argv of a command are texts that are not empty)",
        )
    _require_integer("min_tests", value["min_tests"], 0)
    return Command(value["name"], tuple(value["argv"]), value["min_tests"])
