"""What plain calls cannot carry, written to run beside the student's code. Sent as text, never run over here.

Each scenario is `async def name(lesson, folder, given)`, complete in itself but for `attempt`, `overwrite` and
`ended_in_time`, and returns plain JSON. It only tells what happened; every judgement is made by the check that sent it.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import inspect
import json
import logging
import os
import threading
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


@cache
def source_of(scenario: Callable[..., Any]) -> str:
    """Give the text to send: the modules imported above, the shared functions, the scenario under its name."""
    imports = [f"import {name}" for name, value in globals().items() if isinstance(value, ModuleType)]
    head = "\n".join(["from __future__ import annotations", *imports])
    functions = [inspect.getsource(function) for function in (attempt, overwrite, ended_in_time, scenario)]
    return "\n\n".join([head, *functions, f"scenario = {scenario.__name__}\n"])


async def attempt(call: Any) -> dict[str, Any]:
    """Tell how a call ends: its event or events, or the names of what it raised. `call` makes the awaitable."""

    def told(event: Any) -> list[Any]:
        return [event.sequence, event.type, event.data]

    try:
        found = await call()
    except NotImplementedError:
        raise
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - told, whatever it is
        line = getattr(error, "line", None)
        names = [kind.__name__ for kind in type(error).__mro__]
        return {"error": names, "line": line if type(line) is int else None}
    return {"events": [told(event) for event in found]} if isinstance(found, list) else {"event": told(found)}


def overwrite(path: Any, raw: bytes) -> None:
    """Give a file other bytes in place. Not by emptying it first: some file systems then flush it, a thousandfold."""
    with path.open("r+b") as file:
        file.write(raw)
        file.truncate()


async def ended_in_time(ended: Any) -> bool:
    """Wait for what a right store ends at once; give up after 400 pauses of ours, which grow as long as its own work does."""
    for _ in range(400):
        if ended():
            return True
        await asyncio.sleep(0.01)
    return bool(ended())


async def resolve_order(lesson: Any, folder: Any, given: Any) -> Any:
    """Call all appends at once; tell in which order they were resolved, and the numbers in call order."""
    store = lesson.JsonlSessionStore(folder / given["name"])
    order: list[int] = []
    handles = [asyncio.ensure_future(store.append(kind, data)) for kind, data in given["appends"]]
    for place, handle in enumerate(handles):
        handle.add_done_callback(lambda _, place=place: order.append(place))
    events = await asyncio.gather(*handles)
    await asyncio.sleep(0)
    return {"order": order, "numbers": [event.sequence for event in events]}


async def changed_after_call(lesson: Any, folder: Any, given: Any) -> Any:
    """Change the very object that was handed to `append`, before anything can have been written."""
    store = lesson.JsonlSessionStore(folder / given["name"])
    data = {"kept": given["kept"], "list": [1]}
    waiting = store.append(given["type"], data)
    data["kept"] = "changed"
    data["list"].append(2)
    data["more"] = True
    await waiting


async def refused_values(lesson: Any, folder: Any, given: Any) -> Any:
    """Append one value after the other that cannot be JSON; tell how each ends."""
    cycle: list[Any] = []
    cycle.append(cycle)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    values = {
        "cycle": cycle,
        "set": {1, 2},
        "bytes": b"raw",
        "nan": {"x": float("nan")},
        "infinity": [float("inf")],
        "colliding keys": {1: "a", "1": "b"},
        "nested too deep": deep,
        "lone surrogate": {"m": "\ud83d"},
        "integer too long": 10**5000,
    }
    store = lesson.JsonlSessionStore(folder / given["name"])
    told = {}
    for name, value in values.items():
        told[name] = await attempt(lambda value=value: store.append(given["type"], value))
    return told


async def refused_in_queue(lesson: Any, folder: Any, given: Any) -> Any:
    """Call append at once for good values with one between them that is not JSON; tell how each ends."""
    store = lesson.JsonlSessionStore(folder / given["name"])
    values = list(given["data"])
    values.insert(given["at"], {"not json": {1, 2}})
    begun = []
    for value in values:
        try:
            begun.append(asyncio.ensure_future(store.append(given["type"], value)))
        except NotImplementedError:
            raise
        except Exception as error:  # noqa: BLE001 - told, whatever it is
            begun.append(asyncio.get_running_loop().create_future())
            begun[-1].set_exception(error)
    return [await attempt(lambda handle=handle: handle) for handle in begun]


async def refused_types(lesson: Any, folder: Any, given: Any) -> Any:
    """Append under types that are no types; tell how each ends."""
    store = lesson.JsonlSessionStore(folder / given["name"])
    kinds = {"empty": "", "blank": " \t\n ", "ideographic space": "\u3000", "number": 7, "none": None}
    told = {}
    for name, kind in kinds.items():
        told[name] = await attempt(lambda kind=kind: store.append(kind, 1))
    return told


async def returned_event(lesson: Any, folder: Any, given: Any) -> Any:
    """Append what changes its shape in JSON; tell whether the returned event is the one that is read."""
    data = {"pair": (1, [2]), 7: given["word"], "inner": {"list": [1]}}
    store = lesson.JsonlSessionStore(folder / given["name"])
    event = await store.append(given["type"], data)
    before = await store.read()
    kinds = [type(event.data["pair"]).__name__, sorted(type(key).__name__ for key in event.data)]
    equal = event == before[0] and event.data == before[0].data
    data["inner"]["list"].append(2)
    shares_with_caller = event.data["inner"]["list"] != [1]
    event.data["inner"]["list"].append(3)
    before[0].data["inner"]["list"].append(4)
    after = await store.read()
    return {
        "equal": equal,
        "kinds": kinds,
        "shares": shares_with_caller or data["inner"]["list"] != [1, 2],
        "log": after[0].data["inner"]["list"],
    }


async def large_appends(lesson: Any, folder: Any, given: Any) -> Any:
    """Append big records at once, each of one repeated letter."""
    store = lesson.JsonlSessionStore(folder / given["name"])
    handles = [store.append(given["type"], letter * given["bytes"]) for letter in given["letters"]]
    await asyncio.gather(*handles)


async def append_with_open_umask(lesson: Any, folder: Any, given: Any) -> Any:
    """Append where the process would give everyone the right to read."""
    old = os.umask(0o022)
    try:
        await lesson.JsonlSessionStore(folder / given["name"]).append(given["type"], given["data"])
    finally:
        os.umask(old)


async def cancelled_in_queue(lesson: Any, folder: Any, given: Any) -> Any:
    """Queue appends, let the loop turn, cancel some; tell how each ends, then append once more.

    `written` is how many ended lines the disk held right after the cancelling: of the rest, at most one had begun.
    """
    path = folder / given["name"]
    store = lesson.JsonlSessionStore(path)
    handles = [asyncio.ensure_future(store.append(kind, data)) for kind, data in given["appends"]]
    for _ in range(given["turns"]):
        await asyncio.sleep(0)
    for place in given["cancel"]:
        handles[place].cancel()
    written = path.read_bytes().count(b"\n") if path.exists() else 0
    await ended_in_time(lambda: all(handle.done() for handle in handles))
    told = [await attempt(lambda h=h: h) if h.done() else {"hung": True} for h in handles]
    last = await attempt(lambda: store.append(*given["last"]))
    return {"told": told, "written": written, "last": last}


async def unheard_failure(lesson: Any, folder: Any, given: Any) -> Any:
    """Let appends go without awaiting them: one fails (its write is faulted), one is cancelled. Tell who reports.

    The faulted write is armed from outside. `failed` and `cancelled` count what the loop or the log was told.
    """
    loop = asyncio.get_running_loop()
    heard: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: Any) -> None:
            heard.append(record.getMessage())

    ear, log = Ear(level=logging.WARNING), logging.getLogger()
    old = loop.get_exception_handler()
    loop.set_exception_handler(lambda _loop, context: heard.append(context["message"]))
    log.addHandler(ear)
    try:
        store = lesson.JsonlSessionStore(folder / given["name"])
        store.append(given["type"], 1)
        await store.append(given["type"], 2)  # behind the first one, which has ended by now
        for _ in range(3):
            gc.collect()
            await asyncio.sleep(0)
        failed = len(heard)
        handle = asyncio.ensure_future(store.append(given["type"], 3))
        handle.cancel()
        del handle
        await store.append(given["type"], 4)
        for _ in range(3):
            gc.collect()
            await asyncio.sleep(0)
        return {"failed": failed, "cancelled": len(heard) - failed}
    finally:
        log.removeHandler(ear)
        loop.set_exception_handler(old)


async def event_loops(lesson: Any, folder: Any, given: Any) -> Any:
    """Use one store on three loops after each other, then another one on two loops at once."""

    def on_another_loop(call: Any) -> dict[str, Any]:
        ended: list[Any] = []

        def run() -> None:
            try:
                ended.append(asyncio.run(attempt(call)))
            except NotImplementedError as error:
                ended.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        for _ in range(400):  # as in `ended_in_time`; this loop stands still meanwhile, as another one would
            thread.join(0.01)
        told = ended[0] if ended else {"hung": True}
        if isinstance(told, Exception):
            raise told
        return told

    kind = given["type"]
    store = lesson.JsonlSessionStore(folder / given["after"])
    after = [on_another_loop(lambda: store.append(kind, 1)), on_another_loop(lambda: store.append(kind, 2))]
    after.append(await attempt(lambda: store.append(kind, 3)))
    store = lesson.JsonlSessionStore(folder / given["at_once"])
    first = store.append(kind, 1)
    second = on_another_loop(lambda: store.append(kind, 2))
    return {"after": after, "second": second, "first": await attempt(lambda: first)}


async def read_beside_appends(lesson: Any, folder: Any, given: Any) -> Any:
    """Read again and again while a queue of appends is written.

    Each read is told by its numbers, and by how many ended lines stood on disk right after it.
    """
    path = folder / given["name"]
    store = lesson.JsonlSessionStore(path)
    handles = [asyncio.ensure_future(store.append(kind, data)) for kind, data in given["appends"]]
    reads = []
    while True:
        ended = all(handle.done() for handle in handles)
        told = await attempt(store.read)
        if "events" in told:
            lines = path.read_bytes().count(b"\n") if path.exists() else 0
            told = {"numbers": [event[0] for event in told["events"]], "lines": lines}
        reads.append(told)
        if ended:
            break
        await asyncio.sleep(0)
    await asyncio.gather(*handles)
    return reads


async def read_each(lesson: Any, folder: Any, given: Any) -> Any:
    """Write one set of bytes after the other into a file and read it: the base, changed at one place or cut.

    `changes` are `[offset, byte]` (a byte replaced), `cuts` are lengths in bytes. Each read is told by its count
    and a digest of its events as canonical JSON, or by what it raised.
    """
    base, path = bytes.fromhex(given["base"]), folder / given["name"]
    cases = [base[:at] + bytes([byte]) + base[at + 1 :] for at, byte in given.get("changes", [])]
    cases += [base[:length] for length in given.get("cuts", [])]
    results = []
    path.write_bytes(base)
    for raw in cases:
        overwrite(path, raw)
        told = await attempt(lesson.JsonlSessionStore(path).read)
        if "events" in told:
            text = json.dumps(told["events"], sort_keys=True, separators=(",", ":"))
            told = {"count": len(told["events"]), "digest": hashlib.sha256(text.encode()).hexdigest()}
        results.append(told)
    return results


async def append_after_each_cut(lesson: Any, folder: Any, given: Any) -> Any:
    """Cut the base at each length, each into a file of its own (`NUMBER.jsonl`), and append one event to it."""
    base, told = bytes.fromhex(given["base"]), []
    for length in given["cuts"]:
        path = folder / f"{length}.jsonl"
        path.write_bytes(base[:length])
        store = lesson.JsonlSessionStore(path)
        told.append(await attempt(lambda store=store: store.append(given["type"], given["data"])))
    return told


async def change_from_outside(lesson: Any, folder: Any, given: Any) -> Any:
    """Append with a store; change its file behind its back; append again; then again with a new store."""
    path = folder / given["name"]
    store = lesson.JsonlSessionStore(path)
    kind, raw = given["type"], bytes.fromhex(given["bytes"])
    for data in given["before"]:
        await store.append(kind, data)
    if given["deed"] == "write":
        overwrite(path, raw)
    elif given["deed"] == "vanish":
        path.unlink()
    elif given["deed"] == "replace":
        other = folder / "other.tmp"
        other.write_bytes(raw)
        other.replace(path)
    told = [await attempt(lambda: store.append(kind, given["then"]))]
    disk = path.read_bytes().hex() if path.exists() else None
    new = lesson.JsonlSessionStore(path)
    told.append(await attempt(lambda: new.append(kind, given["then"])))
    return {"told": told, "disk": disk}


async def append_to_damage(lesson: Any, folder: Any, given: Any) -> Any:
    """Append with a store; add bytes to its file behind its back; tell how two more appends by it end."""
    path = folder / given["name"]
    store = lesson.JsonlSessionStore(path)
    for kind, data in given["appends"]:
        await store.append(kind, data)
    with path.open("ab") as file:
        file.write(bytes.fromhex(given["damage"]))
    return [await attempt(lambda then=then: store.append(*then)) for then in given["then"]]


async def two_stores(lesson: Any, folder: Any, given: Any) -> Any:
    """Append to one file through two instances in turn; tell how each append ends."""
    path = folder / given["name"]
    stores = [lesson.JsonlSessionStore(path), lesson.JsonlSessionStore(path)]
    told = []
    for place, data in enumerate(given["data"]):
        told.append(
            await attempt(lambda place=place, data=data: stores[place % 2].append(given["type"], data))
        )
    return told
