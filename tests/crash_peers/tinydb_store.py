"""tinydb 4.9.0: documents in one JSON file, inserted one by one, with its own storage and its defaults."""

from tinydb import TinyDB

PROMISES = ("recovery-ends", "readable", "acknowledged-survive", "nothing-invented", "contiguous", "goes-on")


def work(folder, events, acknowledge):
    with TinyDB(folder / "db.json") as db:
        for number in range(1, events + 1):
            db.insert({"n": number})
            acknowledge(number)


def read(folder):
    with TinyDB(folder / "db.json") as db:
        return [document["n"] for document in db.all()]


def recover(folder):
    before = read(folder)
    with TinyDB(folder / "db.json") as db:
        db.insert({"n": "after-crash"})
    return {"read": before, "error": None, "after": read(folder)}
