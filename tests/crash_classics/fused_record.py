"""A log that forgives a torn tail when it reads, and appends right behind it: the two become one line that nobody wrote."""

import json

PROMISES = ("recovery-ends", "readable", "acknowledged-survive", "goes-on")


def append(folder, value):
    with (folder / "log.jsonl").open("ab", buffering=0) as file:
        file.write(json.dumps(value).encode() + b"\n")


def read(folder):
    path = folder / "log.jsonl"
    whole = path.read_bytes().rpartition(b"\n")[0] if path.exists() else b""
    return [json.loads(line) for line in whole.splitlines()]


def work(folder, events, acknowledge):
    for number in range(1, events + 1):
        append(folder, f"event {number}")
        acknowledge(f"event {number}")


def recover(folder):
    before = read(folder)
    append(folder, "after-crash")
    try:
        return {"read": before, "error": None, "after": read(folder)}
    except ValueError as error:
        return {"read": before, "error": type(error).__name__, "after": None}
