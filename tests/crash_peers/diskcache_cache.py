"""diskcache 5.6.3: a cache of files, with its index in SQLite."""

import diskcache

PROMISES = ("recovery-ends", "readable", "acknowledged-survive")


def work(folder, events, acknowledge):
    with diskcache.Cache(folder) as cache:
        for number in range(1, events + 1):
            cache[number] = "x" * 40_000
            acknowledge(number)


def recover(folder):
    with diskcache.Cache(folder) as cache:
        return {"read": [number for number in cache if cache.get(number)], "error": None, "after": None}
