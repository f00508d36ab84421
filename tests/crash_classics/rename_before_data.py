"""A state file that is written beside its place and renamed, and never synced: the name may be on the disk before the bytes."""

import json

PROMISES = ("recovery-ends", "readable")


def prepare(folder):
    (folder / "state.json").write_text(json.dumps({"n": 0}))


def work(folder, events, acknowledge):
    for number in range(1, events + 1):
        (folder / "state.tmp").write_text(json.dumps({"n": number}))
        (folder / "state.tmp").replace(folder / "state.json")
        acknowledge(number)


def recover(folder):
    return {"read": [json.loads((folder / "state.json").read_text())["n"]], "error": None, "after": None}
