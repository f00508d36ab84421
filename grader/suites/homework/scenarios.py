"""What runs beside the student's homework. Sent as text, never run over here.

Each scenario is `async def name(lesson, folder, given)`, complete in itself, and returns plain JSON. It only tells what
happened; every judgement is made by the check that sent it, by the disk wherever the disk can say it.
"""

from __future__ import annotations

import inspect
import os
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


@cache
def source_of(scenario: Callable[..., Any]) -> str:
    """Give the text to send: the scenario under its name."""
    head = "from __future__ import annotations\n\nimport os"
    return "\n\n".join([head, inspect.getsource(scenario), f"scenario = {scenario.__name__}\n"])


async def take_steps(lesson: Any, folder: Any, given: Any) -> Any:
    """Open a log, then call it step by step; tell what each step acknowledged, or what it raised.

    Steps are `["open"]`, `["append", line]`, `["sync"]`, `["close"]`. With `marks`, a folder `NAME.step-N` is made behind
    each, so that the file layer's record says what came before its answer.
    """
    log, told = None, []
    for number, (deed, *arguments) in enumerate(given["steps"], start=1):
        try:
            if deed == "open":
                log = lesson.homework.DurableLines(folder / given["name"], given["level"], given["group"])
                found = []
            else:
                found = list(getattr(log, deed)(*(text.encode() for text in arguments)))
            told.append({"acknowledged": found})
        except NotImplementedError:
            raise
        except Exception as error:  # noqa: BLE001 - told, whatever it is
            told.append({"error": [kind.__name__ for kind in type(error).__mro__]})
        if given.get("marks"):
            (folder / f"{given['name']}.step-{number}").mkdir()
        if log is None:
            break
    return told


async def open_session(lesson: Any, folder: Any, given: Any) -> Any:
    """Ask for a session's file below `sessions`, under a umask; give its path below the folder."""
    before = os.umask(given.get("umask", 0o022))
    try:
        found = lesson.homework.session_file(folder / given["root"], given["id"])
        return found.relative_to(folder).as_posix()
    finally:
        os.umask(before)


async def list_all(_lesson: Any, folder: Any, _given: Any) -> Any:
    """List everything below the folder, folders too."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


async def seal_each(lesson: Any, _folder: Any, given: Any) -> Any:
    """Seal each payload; give the lines. Bytes are hexadecimal, both ways."""
    return [lesson.homework.seal(bytes.fromhex(payload)).hex() for payload in given["payloads"]]


async def read_log(lesson: Any, _folder: Any, given: Any) -> Any:
    """Read a log; give its payloads, its good bytes and its torn bytes."""
    found = lesson.homework.read_sealed(bytes.fromhex(given["raw"]))
    return {
        "payloads": [payload.hex() for payload in found.payloads],
        "good": found.good_bytes,
        "torn": found.torn.hex(),
    }


async def write_sealed(lesson: Any, folder: Any, given: Any) -> Any:
    """Write sealed payloads as durable lines; give the numbers acknowledged, in the order in which they were."""
    log = lesson.homework.DurableLines(folder / given["name"], "group", given["group"])
    acknowledged = []
    for payload in given["payloads"]:
        acknowledged += log.append(lesson.homework.seal(bytes.fromhex(payload)))
    return acknowledged + list(log.close())


async def cut_everywhere(lesson: Any, folder: Any, given: Any) -> Any:
    """Read a log cut at every byte, 0 and the whole included.

    Tells `[bytes, lines, good bytes, whether lines and torn bytes are those of the log]` wherever the last three are
    others than one byte before. Of a read that raised, `lines` is -1.
    """
    read = lesson.homework.read_sealed
    raw = (folder / given["name"]).read_bytes()
    payloads = [bytes.fromhex(payload) for payload in given["payloads"]]
    told: list[list[Any]] = []
    for size in range(len(raw) + 1):
        try:
            found = read(raw[:size])
            count, good = len(found.payloads), found.good_bytes
            honest = list(found.payloads) == payloads[:count] and found.torn == raw[good:size]
        except NotImplementedError:
            raise
        except Exception:  # noqa: BLE001 - told, whatever it is
            count, good, honest = -1, 0, False
        if not told or told[-1][1:] != [count, good, honest]:
            told.append([size, count, good, honest])
    return told


async def flip_every_bit(lesson: Any, _folder: Any, given: Any) -> Any:
    """Read a log with one bit flipped, for every bit of every byte.

    Tells `[place, verdict]` wherever the verdict is another than one bit before; place is 8 × offset + bit. The verdict
    is the line of a CorruptLogError, 0 for a torn tail, -1 for a read that saw nothing, -2 for another error.
    """
    raw = bytearray.fromhex(given["raw"])
    told: list[list[int]] = []
    for place in range(8 * len(raw)):
        raw[place // 8] ^= 1 << place % 8
        try:
            verdict = 0 if lesson.homework.read_sealed(bytes(raw)).torn else -1
        except NotImplementedError:
            raise
        except lesson.homework.CorruptLogError as error:
            verdict = error.line if type(error.line) is int else -2
        except Exception:  # noqa: BLE001 - told, whatever it is
            verdict = -2
        raw[place // 8] ^= 1 << place % 8
        if not told or told[-1][1] != verdict:
            told.append([place, verdict])
    return told
