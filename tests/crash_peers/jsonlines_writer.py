"""jsonlines 4.0.0: a JSON-lines writer, appended to with `flush=True`; its reader told to skip what is invalid."""

import jsonlines

PROMISES = ("recovery-ends", "readable", "acknowledged-survive", "nothing-invented", "contiguous", "goes-on")


def read(path):
    if not path.exists():
        return []
    with jsonlines.open(path) as reader:
        return [value["n"] for value in reader.iter(type=dict, skip_invalid=True)]


def work(folder, events, acknowledge):
    with jsonlines.open(folder / "log.jsonl", "a", flush=True) as writer:
        for number in range(1, events + 1):
            writer.write({"n": number})
            acknowledge(number)


def recover(folder):
    path = folder / "log.jsonl"
    before = read(path)
    with jsonlines.open(path, "a", flush=True) as writer:
        writer.write({"n": "after-crash"})
    return {"read": before, "error": None, "after": read(path)}
