"""Two files that say the same, each replaced whole and synced, one after the other: a crash may come in between."""

import os

PROMISES = ("recovery-ends", "readable", "in-step")
FILES = ("events.count", "state.count")


def save(folder, name, number):
    temporary = folder / f"{name}.tmp"
    with temporary.open("wb") as file:
        file.write(b"%d" % number)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / name)
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def prepare(folder):
    for name in FILES:
        save(folder, name, 0)


def work(folder, events, acknowledge):
    for number in range(1, events + 1):
        for name in FILES:
            save(folder, name, number)
        acknowledge(number)


def recover(folder):
    return {"read": [int((folder / name).read_bytes()) for name in FILES], "error": None, "after": None}
