"""A state file that is written in place: to open it for writing has already emptied it."""

import json

PROMISES = ("recovery-ends", "readable", "saved-survives")


def prepare(folder):
    (folder / "state.json").write_text(json.dumps({"n": 0}))


def work(folder, events, acknowledge):
    for number in range(1, events + 1):
        (folder / "state.json").write_text(json.dumps({"n": number}))
        acknowledge(number)


def recover(folder):
    return {"read": [json.loads((folder / "state.json").read_text())["n"]], "error": None, "after": None}
