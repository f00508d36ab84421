"""A learner's own tests, tried on right stores and on every mutant: which test stops which.

A test counts once it passes on every right store: the solution, and one in another style, so that a test which asks for
one way of writing it is not taken for a test of a rule. It then stops a mutant by failing on it, or by not coming to its
end in time. Being skipped, ending the process or not being there stops nothing.

Test and store share a process, so what is said here is the learner's own word: good to learn by, no proof to others.
"""

from __future__ import annotations

import asyncio
import importlib.util
import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from grader.channel import ChildLost
from grader.child.own_tests import LIBRARIES, TESTS
from grader.grade import REASONS
from grader.intake import MAX_FILE_BYTES, take
from grader.proxy import Children
from grader.rungs import HOST
from grader.sandbox import open_box
from grader.settings import load_settings
from grader.suites import load_suite
from grader.suites.check import Text
from grader.suites.mutants import Sample
from grader.suites.mutants.lesson_22 import MUTANTS, VARIANTS
from grader.work_folder import OddFileError, read_plain_file
from labkit.workspace import target_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from grader.intake import Handin
    from grader.sandbox import Box
    from grader.settings import Limits

LESSON = "22"
PROGRAM = HOST.with_name("own_tests.py")
SOLUTION, OTHER_STYLE = "solution", next(sample for sample in VARIANTS if sample.id == "plain")
STOPPING = ("fail", "timeout")
_WHAT_PYTEST_NEEDS = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")

Verdict = Literal["not-loaded", "no-tests", "wrong-tests", "survivors", "all-killed"]
UNFIT: tuple[Verdict, ...] = ("not-loaded", "no-tests", "wrong-tests")
"""What keeps a file from being tried on the mutants."""


class OwnTestsError(Exception):
    """A file that cannot be tried: where, what, and what to do next."""


class OwnTests(NamedTuple):
    """A learner's file of tests, as it was when it was read."""

    name: str
    raw: bytes

    @classmethod
    def read(cls, path: Path) -> OwnTests:
        """Read the file. Raises: OwnTestsError."""
        if not re.fullmatch(r"[\w .+-]+\.py", path.name):
            raise OwnTestsError(f"{path}: is no plain name of a Python file; call it test_my_store.py")
        try:
            raw = read_plain_file(path.resolve())
        except (OddFileError, OSError, RuntimeError) as error:  # RuntimeError: links in a circle
            why = f"{path}: {error.strerror}" if isinstance(error, OSError) else error
            raise OwnTestsError(f"{why}; name the file that holds your tests") from None
        if len(raw) > MAX_FILE_BYTES:
            raise OwnTestsError(f"{path}: is larger than {MAX_FILE_BYTES} bytes; split it")
        return cls(path.name, raw)

    def lay_down(self, code: Path) -> None:
        """Write the file beside the store's package, with a way to pytest."""
        for folder in (code / TESTS, code / LIBRARIES):
            folder.mkdir()
            folder.chmod(0o755)  # for a child that is another user, whatever the umask
        for library in libraries():
            (code / LIBRARIES / library.name).symlink_to(library)
        file = code / TESTS / self.name
        file.write_bytes(self.raw)
        file.chmod(0o644)


class Ended(NamedTuple):
    """How one test ended on one store, in a word, and what there is to say about it.

    `pass`, `fail`, `skip`; `not-loaded`, `missing` (not in the file as this store loads it), `not-run` (no time left); or
    why the child was lost.
    """

    status: str
    said: Text = Text("", "")


@dataclass(frozen=True, slots=True)
class Trial:
    """The file on one store: how each test ended, in the file's order; or why it could not be loaded."""

    store: str
    ended: dict[str, Ended] = field(default_factory=dict)
    lost: ChildLost | None = None

    def of(self, test: str) -> Ended:
        """Give how one test ended."""
        if self.lost:
            return Ended("not-loaded", self.lost.seen)
        return self.ended.get(test, _MISSING)

    @property
    def stopped_by(self) -> list[str]:
        """The tests that this store does not get past."""
        return [name for name, ended in self.ended.items() if ended.status in STOPPING]


@dataclass(frozen=True, slots=True)
class Tried:
    """The file on the right stores, then on the mutants; on no mutant while it is not right itself."""

    file: str
    right: tuple[Trial, ...]
    mutants: tuple[tuple[Sample, Trial], ...] = ()

    @property
    def tests(self) -> list[str]:
        """The tests, in the file's order."""
        return list(self.right[0].ended)

    @property
    def wrong(self) -> list[tuple[str, str, Ended]]:
        """What did not pass on the first right store where anything did not: test, store, and how it ended."""
        for trial in self.right:
            if wrong := [
                (test, trial.store, trial.of(test)) for test in self.tests if trial.of(test).status != "pass"
            ]:
                return wrong
        return []

    @property
    def survivors(self) -> list[Sample]:
        """The mutants that every test lets through."""
        return [mutant for mutant, trial in self.mutants if not trial.stopped_by]

    def stops(self, test: str) -> list[str]:
        """Give the ids of the mutants that one test stops."""
        return [mutant.id for mutant, trial in self.mutants if test in trial.stopped_by]

    @property
    def verdict(self) -> Verdict:
        """Say how far the file came."""
        if self.right[0].lost:
            return "not-loaded"
        if not self.tests:
            return "no-tests"
        if self.wrong:
            return "wrong-tests"
        return "survivors" if self.survivors else "all-killed"

    @property
    def message(self) -> Text:
        """Say what that means, and what to do next."""
        if lost := self.right[0].lost:
            then = _LOAD_NEXT.get(lost.reason, _LOAD_NEXT["crash"])
            return Text(
                f"{self.file} 无法载入：{lost.seen.zh}。{then.zh}",
                f"{self.file} does not load: {lost.seen.en}. {then.en}",
            )
        if self.verdict == "wrong-tests":
            return _WRONG_ON_SOLUTION if self.wrong[0][1] == SOLUTION else _WRONG_ON_OTHER_STYLE
        return _MESSAGES[self.verdict]

    def plain(self) -> dict[str, Any]:
        """Give it all as JSON."""
        return {
            "lesson": LESSON,
            "file": self.file,
            "verdict": self.verdict,
            "message": self.message._asdict(),
            "tests": [{"name": test, "kills": self.stops(test)} for test in self.tests],
            "wrong": [
                {"test": test, "store": store, "status": ended.status, "said": ended.said._asdict()}
                for test, store, ended in self.wrong
            ],
            "mutants": [
                {
                    "id": mutant.id,
                    "idea": mutant.idea._asdict(),
                    **_meant_for(mutant),
                    "killed": bool(trial.stopped_by),
                    "killed_by": trial.stopped_by,
                    "tests": {test: trial.of(test).status for test in self.tests},
                }
                for mutant, trial in self.mutants
            ],
        }


def _meant_for(mutant: Sample) -> dict[str, Any]:
    """Give the rules that a mutant breaks, and the title of the suite's own check for it."""
    check = load_suite(LESSON).find(mutant.caught_by or "")
    return {"rules": list(check.rules), "meant": check.title._asdict()}


def try_tests(file: OwnTests, jobs: int, tell: Callable[[str], None], limits: Limits | None = None) -> Tried:
    """Try a file on every store, `jobs` at a time; `tell` hears each store's name as it is done.

    Raises: OSError when this machine cannot start the children.
    """
    limits = limits or load_settings().limits_of(LESSON)

    def trial(store: str, handin: Handin) -> Trial:
        tried = on_store(store, handin, file, limits)
        tell(store)
        return tried

    with ThreadPoolExecutor(jobs) as threads:
        right = tuple(threads.map(trial, (SOLUTION, OTHER_STYLE.id), _right_handins()))
        tried = Tried(file.name, right)
        if tried.verdict in UNFIT:
            return tried
        trials = threads.map(trial, [mutant.id for mutant in MUTANTS], map(handed_in, MUTANTS))
        return Tried(file.name, right, tuple(zip(MUTANTS, trials, strict=True)))


def stores() -> int:
    """Count the stores that a file is tried on."""
    return 2 + len(MUTANTS)


def _right_handins() -> Iterator[Handin]:
    yield take(target_folder("solution"), LESSON)
    yield handed_in(OTHER_STYLE)


def handed_in(sample: Sample, lesson: str = LESSON) -> Handin:
    """Give a sample as it would be handed in."""
    with tempfile.TemporaryDirectory() as folder:
        sample.lay_down(Path(folder))
        return take(Path(folder), lesson)


def on_store(store: str, handin: Handin, file: OwnTests, limits: Limits) -> Trial:
    """Try the file on one store, in a box of its own, and end everything that was started there."""
    with open_box(limits, (PROGRAM, PROGRAM.with_name("led_pytest.py"), *libraries())) as box:
        handin.lay_down(box.code)
        file.lay_down(box.code)
        return asyncio.run(_try_all(store, Children(box, handin.package, PROGRAM)))


async def _try_all(store: str, children: Children) -> Trial:
    try:
        channel = await children.get(faults=True)
        answer = await channel.ask(channel.new_id(), op="names")
        names = answer.get("ok")
        if not isinstance(names, list) or not all(type(name) is str for name in names):
            raise channel.forged()
        ended = {name: await _try_one(children, name) for name in names}
    except ChildLost as lost:
        return Trial(store, lost=lost)
    finally:
        children.close()
    forged = next((one for one in ended.values() if one.status == "tamper"), None)
    return Trial(store, dict.fromkeys(ended, forged) if forged else ended)


async def _try_one(children: Children, test: str) -> Ended:
    """Run one test. Its answer counts once the child has answered again: what ends or forges comes to nothing."""
    try:
        channel = await children.get(faults=True)
    except ChildLost:
        return _NOT_RUN
    if not children.seconds_left:
        return _NOT_RUN
    try:
        answer = await channel.ask(channel.new_id(), op="run", test=test)
        await channel.ask(channel.new_id(), op="names")
        if answer.get("ok", "pass") not in ("pass", "skip"):
            raise channel.forged()
    except ChildLost as lost:
        children.take_note(lost)
        children.end(faults=True)
        return _TIMEOUT if lost.reason == "timeout" else Ended(lost.reason, lost.seen)
    if "err" in answer:
        return Ended("fail", _in_words(answer["err"], children.box))
    return _SKIPPED if answer["ok"] == "skip" else Ended("pass")


def _in_words(error: dict[str, Any], box: Box) -> Text:
    """Say in one line what a test raised, and where in the learner's file."""
    place = f"{error['where']}: " if error["where"] else ""
    name = error["types"][0].rpartition(".")[2] if error["types"] else "error"
    words = next(iter(error["text"].strip().splitlines()), "")
    said = (f"{place}{name}: {words}" if words else f"{place}{name}").replace(f"{box.place.work.parent}/", "")
    return Text(said, said)


def libraries() -> Sequence[Path]:
    """Give the folders and files of pytest and what it needs, where this Python has them."""
    found = (importlib.util.find_spec(name) for name in _WHAT_PYTEST_NEEDS)
    return [Path((spec.submodule_search_locations or [spec.origin or ""])[0]) for spec in found if spec]


_SKIPPED = Ended("skip", Text("跳过了，或本来就等着它失败", "it was skipped, or was expected to fail"))
_TIMEOUT = Ended("timeout", Text("没有按时结束", "it did not end in time"))
_NOT_RUN = Ended("not-run", Text("时间用完了，没有轮到它", "no time was left for it"))
_MISSING = Ended(
    "missing", Text("换成这个 store，文件里就没有这项测试", "with this store the file has no such test")
)
_LOAD_NEXT = {
    "syntax-error": REASONS["syntax-error"],
    "import-error": Text(
        "它只看得到标准库、pytest 和 lesson_22：写 from lesson_22 import JsonlSessionStore。",
        "It sees the standard library, pytest and lesson_22: write from lesson_22 import JsonlSessionStore.",
    ),
    "crash": Text(
        "导入这个文件时不要做事：把它们放进测试函数里。",
        "Let the file do nothing while it is imported: put that into test functions.",
    ),
}
_WRONG_ON_SOLUTION = Text(
    "有测试在参考实现上没有通过。测试先要在正确的 store 上通过，才有资格指认错误的 store；改好它们再来。",
    "Some tests do not pass on the reference. A test has to pass on a right store before it may accuse a wrong one: "
    "mend these first.",
)
_WRONG_ON_OTHER_STYLE = Text(
    "有测试在参考实现上通过，在另一个同样正确、只是写法不同的 store 上却没有：它们认的是某种写法，不是规则。"
    "只用 append、read 和磁盘上的文件。",
    "Some tests pass on the reference, but not on another store that is just as right and written differently: they "
    "know one way of writing it, not a rule. Use append, read and the file on disk, and nothing else.",
)
_MESSAGES: dict[str, Text] = {
    "no-tests": Text(
        "文件里没有测试：写一个名字以 test_ 开头的函数。",
        "There is no test in the file: write a function whose name begins with test_.",
    ),
    "survivors": Text(
        "挑一个漏掉的 store，写一项测试：它通不过，正确的 store 通得过。",
        "Pick a store that got through, and write a test that it fails and a right store passes.",
    ),
    "all-killed": Text(
        "错误的 store 一个也没漏掉，而正确的都通过了：这套测试立得住。",
        "No wrong store gets through, and the right ones pass: these tests hold.",
    ),
}
