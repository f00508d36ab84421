"""What a failed write, a torn tail or a stranger's edit does to the next append."""

from __future__ import annotations

import hashlib

from labkit.experiments.bench import NO_ANSWER, Bench, Seen, compare
from labkit.experiments.lesson_22.reading import records
from labkit.faults import file_layer
from labkit.naive import CachingStore, GluingStore, HoleStore, PoisonedStore


async def one_line_more() -> Seen:
    """Append text that holds a newline to a log of two records (C22-04).

    After the append come three facts: how many ``0A`` it wrote, whether the old bytes kept their hash, and how many
    write calls it took.
    """

    async def script(bench: Bench) -> None:
        before = records(1, 2)
        bench.path.write_bytes(before)
        with bench.fault("write", "full"):
            await bench.append("note", {"text": "first line\nsecond line"})
        after = bench.path.read_bytes()
        same = hashlib.sha256(after[: len(before)]).digest() == hashlib.sha256(before).digest()
        bench.note("new.count(b'\\n')", after[len(before) :].count(b"\n"))
        bench.note("sha256(old) == sha256(old, afterwards)", same)
        bench.note("os.write calls", sum(entry["op"] == "write" for entry in file_layer.log()))

    return await compare("one-line-more", script)


async def one_disk_error() -> Seen:
    """Fail the first write, heal the disk, append again (C22-12)."""

    async def script(bench: Bench) -> None:
        with bench.fault("write", "ENOSPC"):
            await bench.append("a")
        await bench.append("b")
        await bench.read()

    return await compare("one-disk-error", script, PoisonedStore=PoisonedStore)


async def number_before_write() -> Seen:
    """Append three times; the disk is full at the second (C22-13)."""

    async def script(bench: Bench) -> None:
        await bench.append("a")
        with bench.fault("write", "ENOSPC"):
            await bench.append("b")
        await bench.append("c")
        await bench.read()

    return await compare("number-before-write", script, HoleStore=HoleStore)


async def edited_outside() -> Seen:
    """Append twice, reopen and append, then add a line by hand and append once more (C22-14)."""

    async def script(bench: Bench) -> None:
        await bench.append("a")
        await bench.append("b")
        bench.reopen()
        await bench.append("c")
        with bench.path.open("ab") as file:
            file.write(records(4))
        bench.note("echo … >> task.jsonl", NO_ANSWER)
        await bench.append("d")
        await bench.read()

    return await compare("edited-outside", script, CachingStore=CachingStore)


async def append_after_tear() -> Seen:
    """Append behind a torn tail with a store opened anew, then read (C22-15)."""

    async def script(bench: Bench) -> None:
        bench.path.write_bytes(records(1) + records(2)[:-12])
        await bench.append("step")
        await bench.read()

    return await compare("append-after-tear", script, GluingStore=GluingStore)
