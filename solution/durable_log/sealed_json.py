"""A JSON object in a file that carries the hash of its own bytes: how manifests and checkpoints notice damage.

{"v":1, … ,"file_hash":"<SHA-256 of the bytes before this comma, 64 hex digits>"}⏎
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import TypeVar

import msgspec

from .atomic_file import replace_file
from .errors import CorruptLogError, UnknownVersionError
from .reading import open_log
from .strict_json import judge

Sealed = TypeVar("Sealed", bound=msgspec.Struct)

_HASH_FIELD = b',"file_hash":"'
_SEAL = re.compile(re.escape(_HASH_FIELD) + rb'([0-9a-f]{64})"\}\n\Z')
_SEAL_BYTES = len(_HASH_FIELD) + 64 + 3


class _Versioned(msgspec.Struct):
    v: int


def write_sealed(path: Path, value: msgspec.Struct) -> None:
    """Put `value` and its hash in the place of `path`, whole and synced. Raises: OSError, as `replace_file` says."""
    body = msgspec.json.encode(value)[:-1]
    replace_file(path, [body, _HASH_FIELD, hashlib.sha256(body).hexdigest().encode(), b'"}\n'])


def read_sealed(path: Path, kind: type[Sealed], version: int, most_bytes: int) -> Sealed:
    """Return what `write_sealed` put there, proved.

    Raises: CorruptLogError when it is damaged, no `kind`, or longer than `most_bytes`; UnknownVersionError when its `v`
    is another; FileNotFoundError and any other OSError.
    """
    with open_log(path) as file:
        raw = file.read(min(most_bytes, os.fstat(file.fileno()).st_size) + 1)
    if not raw.strip(b"\0"):
        raise CorruptLogError(str(path), f"holds nothing but {len(raw)} empty bytes")
    if len(raw) > most_bytes:
        raise CorruptLogError(str(path), f"is longer than {most_bytes} bytes")
    try:
        found = msgspec.convert(judge(raw).value, _Versioned).v
        if found != version:
            raise UnknownVersionError(
                f"{path}: has version {found}, and this code knows version {version}; update the code"
            )
        body, seal = raw[:-_SEAL_BYTES], _SEAL.fullmatch(raw[-_SEAL_BYTES:])
        if seal is None or hashlib.sha256(body).hexdigest().encode() != seal[1]:
            raise CorruptLogError(str(path), "does not match the hash that it carries")
        return msgspec.convert(judge(body + b"}").value, kind)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise CorruptLogError(str(path), f"is not a {kind.__name__.lower()}") from None
