"""What the grader reads from a submission's source, without running it."""

from __future__ import annotations

import pytest

from grader.interface import MAX_SOURCE_BYTES, read_interface
from grader.own_tests import handed_in
from grader.suites.mutants.lesson_22 import VARIANTS
from tests.piped import PLAIN_STORE

PUBLIC = "from .session_store import CorruptLogError, JsonlSessionStore, SessionEvent\n"


def read(store, init=PUBLIC, **others):
    """Read a package with this `session_store.py`, below what every small store of the tests stands on."""
    files = {"__init__.py": init, "session_store.py": PLAIN_STORE + store}
    files |= {f"{name}.py": text for name, text in others.items()}
    return read_interface({name: text.encode() for name, text in files.items()})


@pytest.mark.parametrize("sample", VARIANTS, ids=lambda sample: sample.id)
def test_right_code_in_another_style_has_the_interface(sample):
    """No way of writing the store that is right is taken for one that lacks something."""
    found = read_interface(handed_in(sample).files)
    assert (found.problem, found.methods) == (None, {"append": "def", "read": "async def"})


@pytest.mark.parametrize(
    ("store", "append"),
    [
        ("class JsonlSessionStore(Plain): pass", "async def"),
        ("class JsonlSessionStore(Plain):\n    def append(self, type, data): pass", "def"),
        ("class JsonlSessionStore(Plain):\n    def append(self, type, data=None, *more): pass", "def"),
        ("class JsonlSessionStore(Plain):\n    @queued\n    async def append(self, a): pass", "other"),
        ("class JsonlSessionStore(Plain):\n    append = Plain.write", "other"),
        ("class Base(Plain): pass\nclass JsonlSessionStore(Base, Generic[int]): pass", "async def"),
        ("class Mine(Plain): pass\nJsonlSessionStore = Mine", "async def"),
        (
            "def make(): pass\nclass JsonlSessionStore:\n    async def read(self): pass\nJsonlSessionStore.append = make",
            "other",
        ),
    ],
)
def test_methods_are_found_however_they_are_bound(store, append):
    """Own and inherited ones, decorated and assigned ones, under another name of the class."""
    found = read(store)
    assert (found.problem, found.methods.get("append")) == (None, append)


@pytest.mark.parametrize("homework", ["def broken(:", "x = 1\n" * MAX_SOURCE_BYTES])
def test_a_homework_that_cannot_be_read_hides_nothing_of_its_lesson(homework):
    """It is judged by itself: `async def append` beside it is seen all the same."""
    found = read("class JsonlSessionStore(Plain): pass", homework=homework)
    assert (found.problem, found.methods["append"]) == (None, "async def")


def test_a_class_is_followed_through_the_files_of_the_package():
    """What the package's front door shows counts, through imports under other names and of everything."""
    init = "from .all import *\nfrom .session_store import CorruptLogError, SessionEvent\n"
    files = {"all": "from .session_store import Mine as JsonlSessionStore\n"}
    assert read("class Mine(Plain): pass", init, **files).methods["append"] == "async def"


@pytest.mark.parametrize(
    ("store", "said"),
    [
        ("class JsonlSessionStore: pass", "no method append"),
        ("class JsonlSessionStore:\n    def append(self, type, data): pass", "no method read"),
        ("JsonlSessionStore = type('JsonlSessionStore', (Plain,), {})", "no method append"),
        ("class JsonlSessionStore(Plain):\n    def append(self, type): pass", "another number of arguments"),
        ("class JsonlSessionStore(Plain):\n    def append(self, type, data, *, now): pass", "another number"),
        ("class JsonlSessionStore(Plain): pass\nclass CorruptLogError: pass", "no exception class"),
    ],
)
def test_what_is_not_in_the_source_is_not_there(store, said):
    """A class that has not what is called is refused before anything of it runs."""
    found = read(store)
    assert found.problem is not None
    assert said in found.problem.en


def test_the_front_door_decides():
    """A right class in another file does not stand for the one that the package shows."""
    init = f"{PUBLIC}class JsonlSessionStore:\n    pass\n"
    assert read("class JsonlSessionStore(Plain): pass", init).problem is not None


@pytest.mark.parametrize("source", ["def broken(:", "\0", "x = " + "-" * 100_000 + "1", "a" + "(a)" * 20_000])
def test_what_python_does_not_read_is_left_to_the_child(source):
    """Broken or endless source is no fault of the grader, and no finding of this reader."""
    assert read(source).problem is None


def test_a_source_has_a_largest_size():
    """Reading costs memory: what is larger than any lesson asks for is refused unread."""
    found = read("#" * MAX_SOURCE_BYTES)
    assert found.problem is not None
    assert "larger than 256 KiB" in found.problem.en
