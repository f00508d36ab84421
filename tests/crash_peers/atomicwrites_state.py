"""atomicwrites 1.4.1: a state file replaced whole by `atomic_write(path, overwrite=True)`."""

import json

import atomicwrites

PROMISES = ("recovery-ends", "readable", "saved-survives")


def save(path, number):
    with atomicwrites.atomic_write(path, overwrite=True) as file:
        json.dump({"n": number}, file)


def prepare(folder):
    save(folder / "state.json", 0)


def work(folder, events, acknowledge):
    for number in range(1, events + 1):
        save(folder / "state.json", number)
        acknowledge(number)


def recover(folder):
    return {"read": [json.loads((folder / "state.json").read_text())["n"]], "error": None, "after": None}
