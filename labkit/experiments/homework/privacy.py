"""What others could learn from a session's files: secrets in their bytes, and who may open them."""

from __future__ import annotations

import base64
import json
import secrets
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit.experiments.asking import answer_to
from labkit.experiments.homework.children import environment
from labkit.experiments.homework.on_disk import lines
from labkit.experiments.homework.tables import Cell, Table, fresh_place
from solution.durable_log import DurableLog
from solution.durable_log.secrets import SecretPolicy, keep, redact, refuse

POLICIES: dict[str, SecretPolicy] = {"keep": keep, "redact": redact, "refuse": refuse}


async def search_for_secrets(remark: str = "") -> Table:
    """Append fresh secrets under each policy, and a remark if given; then look for them in every byte (C22-35)."""
    place = fresh_place("secrets")
    planted = {name: secrets.token_hex(20) for name in ("token", "key", "password", "variable")}
    if remark:
        planted["remark"] = remark
    rows: dict[str, dict[str, Cell]] = {}
    for name, policy in POLICIES.items():
        async with await DurableLog.open(name, root=place, durability="os", secrets=policy) as log:
            answers = [await answer_to(log.append(*event)) for event in _events(planted)]
        rows[name] = {
            "stored": len(lines(place / name)),
            "refused-events": sum(answer.short == "SecretError" for answer in answers),
            "searched-bytes": sum(map(len, _all_bytes(place / name))),
            "secrets-found": sum(_is_in(place / name, secret) for secret in planted.values()),
        }
    return Table(rows)


def _events(planted: dict[str, str]) -> Iterator[tuple[str, Any]]:
    """Give the ways in which secrets come into logs: in a header, a file, a command's output, an environment."""
    yield "tool_called", {"request": {"headers": [{"Authorization": f"Bearer {planted['token']}"}]}}
    key = ("BEGIN", planted["key"], "END")
    yield (
        "file_read",
        {
            "path": "id_ed25519",
            "content": "-----{} PRIVATE KEY-----\n{}\n-----{} PRIVATE KEY-----\n".format(*key),
        },
    )
    yield "tool_result", {"stdout": json.dumps({"user": "lab", "password": planted["password"]})}
    yield "process_started", {"env": {"LANG": "C.UTF-8", "AWS_SECRET_ACCESS_KEY": planted["variable"]}}
    if "remark" in planted:
        yield "noted", {"remark": planted["remark"]}


def _all_bytes(folder: Path) -> Iterator[bytes]:
    """Give the content of every file below a folder, and every name."""
    for path in folder.rglob("*"):
        yield str(path.relative_to(folder)).encode()
        if path.is_file():
            yield path.read_bytes()


def _is_in(folder: Path, secret: str) -> bool:
    """Say whether a secret stands anywhere below a folder: as it is, as hex, as base64, or as JSON escapes it."""
    raw = secret.encode()
    forms = (raw, raw.hex().encode(), base64.b64encode(raw).rstrip(b"="), json.dumps(secret)[1:-1].encode())
    return any(form in content for content in _all_bytes(folder) for form in forms)


@dataclass(frozen=True, slots=True)
class Modes:
    """Permissions by path: of what a store made that gives them no thought, and of what `durable_log` made."""

    ordinary: Table
    private: Table

    def _repr_html_(self) -> str:
        return self.ordinary._repr_html_() + self.private._repr_html_()


def modes_under_umask(umask: int = 0o022) -> Modes:
    """Let a process with this umask write an ordinary log, and a session with all that belongs to one (C22-36)."""
    place = fresh_place("modes")
    program = Path(__file__).with_name("private_files.py")
    subprocess.run([sys.executable, "-P", program, place], env=environment(), umask=umask, check=True)
    return Modes(*(Table(dict(_modes(place / name))) for name in ("ordinary", "private")))


def _modes(folder: Path) -> Iterator[tuple[str, dict[str, Cell]]]:
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        others = bool(status.st_mode & (stat.S_IRGRP | stat.S_IROTH))
        yield (
            path.relative_to(folder).as_posix(),
            {
                "mode": f"{stat.S_IMODE(status.st_mode):04o}",
                "others-read": others,
            },
        )
