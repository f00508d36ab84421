"""What a reader may forgive and what it must refuse."""

from __future__ import annotations

import json
import traceback
from pathlib import Path
from typing import Any

from labkit import actions
from labkit.experiments.bench import LOG, Bench, Seen, compare, fresh_folder, learners_store
from labkit.naive import (
    BlankSkippingStore,
    EchoingStore,
    HopefulStore,
    NewlineStore,
    RisingStore,
    SkippingStore,
)
from labkit.views import Answered, ask
from labkit.words import t
from solution.lesson_22 import SessionEvent

TOKEN = "sk-THE-SECRET"  # noqa: S105 — a bait, to be looked for in error messages


def records(*sequences: object, data: object = None) -> bytes:
    """Return a log of small sound records that carry these numbers."""
    rows = ({"sequence": number, "type": "step", "data": data} for number in sequences)
    return b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows)


class _ArrayFile:
    """The same history as one JSON array: there is no other way to read it than whole."""

    def __init__(self, path: Path) -> None:
        self.path = path

    async def read(self) -> list[SessionEvent]:
        return [SessionEvent(**row) for row in json.loads(self.path.read_bytes())]


async def cut_array_and_log() -> dict[str, list[str]]:
    """Store the same events as one JSON array and as a log, and cut both at every byte of the log (C22-02).

    Returns one verdict a position for each file, as ``labkit.actions.cut_everywhere`` words it.
    """
    folder = fresh_folder("array-and-log")
    log, array = folder / LOG, folder / "task.json"
    size = await actions.make_sample_log(log)
    array.write_bytes(b"[" + log.read_bytes().rstrip(b"\n").replace(b"\n", b",") + b"]")
    in_array = await actions.cut_everywhere(array, _ArrayFile)
    return {"array": in_array[: size + 1], "log": await actions.cut_everywhere(log, actions.solution_store)}


async def cut_at_every_byte() -> dict[str, list[str]]:
    """Cut a log at every byte, also inside Chinese characters, and let both readers read what is left (C22-05).

    The learner's row is missing while ``read`` is not written.
    """
    path = fresh_folder("every-byte") / LOG
    await actions.make_sample_log(path)
    verdicts = {"kit": await actions.cut_everywhere(path, actions.solution_store)}
    if (await ask(learners_store, path)).how is not Answered.UNFINISHED:
        verdicts["yours"] = await actions.cut_everywhere(path, learners_store)
    return verdicts


def titled(verdicts: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return verdicts under the names of their readers in the learner's language, for a picture."""
    return {t(f"seen.{name}"): row for name, row in verdicts.items()}


async def newline_missing() -> Seen:
    """Take the last byte, a newline, from a log of three records (C22-06)."""

    async def script(bench: Bench) -> None:
        bench.path.write_bytes(records(1, 2, 3)[:-1])
        await bench.read()

    return await compare("newline-missing", script, NewlineStore=NewlineStore)


async def not_json_line(line: int) -> Seen:
    """Put ``not-json`` into one of three lines, its newline untouched (C22-07)."""

    async def script(bench: Bench) -> None:
        bench.path.write_bytes(records(1, 2, 3))
        actions.damage_line(bench.path, line)
        await bench.read()

    return await compare(f"not-json-line-{line}", script, SkippingStore=SkippingStore)


async def no_history() -> Seen:
    """Read a missing file, an empty one, a folder, a failing disk; then append while the disk fails (C22-16)."""

    async def script(bench: Bench) -> None:
        await bench.read(shown="read(missing)")
        bench.path.write_bytes(b"")
        await bench.read(shown="read(empty)")
        folder = bench.folder / "folder"
        folder.mkdir()
        await bench.read(folder, shown="read(folder)")
        bench.path.write_bytes(records(1, 2))
        bench.reopen()
        with bench.fault("read", "EIO", times=None):
            await bench.read(shown="read(failing disk)")
            await bench.append("step")

    return await compare("no-history", script, HopefulStore=HopefulStore)


async def wrong_shapes() -> Seen:
    """Read five files whose JSON is fine and whose records are not (C22-17)."""
    first = records(1)
    shapes = {
        "null": b"null\n",
        "sequence true": first.replace(b":1,", b":true,"),
        "sequence 1.0": first.replace(b":1,", b":1.0,"),
        "blank type": first.replace(b'"step"', b'" "'),
        "blank line": first + b"\n" + records(2),
    }
    return await _read_each("wrong-shapes", shapes, BlankSkippingStore=BlankSkippingStore)


async def wrong_numbers() -> Seen:
    """Read a log that lacks 2, and one that has it twice (C22-18)."""
    return await _read_each(
        "wrong-numbers", {"1,3": records(1, 3), "1,2,2": records(1, 2, 2)}, RisingStore=RisingStore
    )


async def _read_each(experiment: str, contents: dict[str, bytes], **naive: Any) -> Seen:
    async def script(bench: Bench) -> None:
        for name, raw in contents.items():
            path = bench.folder / f"{name}.jsonl"
            path.write_bytes(raw)
            await bench.read(path, shown=f"read({name})")

    return await compare(experiment, script, **naive)


async def secret_in_a_bad_line() -> Seen:
    """Break a line that holds a token, and look for the token in the error (C22-22). True means that it leaked."""

    async def script(bench: Bench) -> None:
        bench.path.write_bytes(records(1) + records(2, data={"token": TOKEN}).replace(b"}}", b"}"))
        try:
            await bench.store.read()
        except NotImplementedError:
            raise
        except Exception as error:  # noqa: BLE001 — whatever a store raises is searched
            bench.note("read()", error)
            bench.note("token in str(error)", TOKEN in str(error))
            bench.note("token in repr(error)", TOKEN in repr(error))
            bench.note("token in traceback", TOKEN in "".join(traceback.format_exception(error)))

    return await compare("secret-in-a-bad-line", script, EchoingStore=EchoingStore)
