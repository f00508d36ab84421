"""One submission in, one outcome out: every check over the pipe, in as few children as it takes."""

from __future__ import annotations

import asyncio
import errno
import secrets
from random import Random
from typing import TYPE_CHECKING, NoReturn

from grader import tree
from grader.bench import BENCHES
from grader.channel import ChildLost
from grader.intake import take
from grader.lab import StudentError, is_students
from grader.outcome import Finding, Outcome, conclude
from grader.proxy import Children, PipedLab
from grader.rungs import strongest_rung
from grader.sandbox import RunEnded, open_box
from grader.spine_template import SpineUnready
from grader.suites import load_suite
from grader.suites.check import CheckFailed, Text
from grader.suites.expect import show_error
from grader.tree import MissingFile
from grader.work_folder import OddFileError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from grader.intake import Handin, LeftOut
    from grader.interface import Interface
    from grader.outcome import LessonOutcome
    from grader.settings import Settings
    from grader.spine import PipedSpineLab
    from grader.suites.check import Check

    Tell = Callable[[Check, Finding], None]
    """Called with each finding as it comes."""


def grade_submission(
    name: str, path: Path, lessons: Sequence[str], settings: Settings, tell: Tell | None = None
) -> Outcome:
    """Grade one submission. Whatever its code does is a finding, and its processes and files are gone at the end."""
    graded: dict[str, LessonOutcome] = {}
    left_out: list[LeftOut] = []
    isolation = ""
    for lesson in lessons:
        handin = take(path, lesson)
        left_out += [entry for entry in handin.left_out if entry not in left_out]
        isolation, graded[lesson] = grade_handin(handin, load_suite(lesson).checks, settings, tell)
    return Outcome(name, isolation, graded, tuple(left_out))


def grade_handin(
    handin: Handin, checks: Sequence[Check], settings: Settings, tell: Tell | None = None, seed: str = ""
) -> tuple[str, LessonOutcome]:
    """Grade one lesson of one submission; give the rung it ran on, and the outcome.

    Inputs are drawn from `seed`, fresh unless one is given to look at a run again.
    """
    seed = seed or secrets.token_hex(8)
    rung = strongest_rung().name
    bench = BENCHES[handin.lesson]
    interface = bench.interface(handin.files)
    lost = _not_to_be_run(handin, interface)
    if lost:
        findings = [Finding(check.id, "fail", lost.reason, _explain(lost)) for check in checks]
    else:
        try:
            with open_box(settings.limits_of(handin.lesson), bench.programs()) as box:
                bench.lay_down(handin, box.code)
                children = Children(box, handin.package, bench.host, interface)
                findings = asyncio.run(Run(children, seed, tell, bench.lab).all(checks))
        except OSError as error:  # no room for a box: the grader's fault, and nobody's mark
            findings = [_grader_error(check, error) for check in checks]
    return rung, conclude(handin.lesson, seed, checks, findings, settings)


def _not_to_be_run(handin: Handin, interface: Interface) -> ChildLost | None:
    """Say why nothing of a submission is run: a file is missing, or its source lacks what is called."""
    if handin.problem:
        return ChildLost("missing-file", handin.problem)
    return ChildLost("import-error", interface.problem, _AS_GIVEN) if interface.problem else None


_AS_GIVEN = Text(
    "保留课程给出的类名、方法名和参数。",
    "Keep the names of classes and methods, and the arguments, that the lesson gives.",
)
_MEASURED_EACH_SECONDS = 0.2


class Run:
    """All checks of one lesson on one submission, one after the other."""

    def __init__(
        self,
        children: Children,
        seed: str,
        tell: Tell | None = None,
        lab: Callable[..., PipedLab | PipedSpineLab] = PipedLab,
    ) -> None:
        self.children = children
        self._lab = lab
        self._seed = seed
        self._tell = tell
        self._folders = 0

    async def all(self, checks: Sequence[Check]) -> list[Finding]:
        """Run the checks; a fault of the grader is tried once more, in a child of its own (G6).

        Those with the file layer come last: two kinds of children would take two boxes, or turns.
        """
        findings: dict[str, Finding] = {}
        watching = asyncio.ensure_future(self._watch()) if self.children.box.mount is None else None
        try:
            for check in sorted(checks, key=lambda check: check.faults):
                finding = await self.one(check)
                if finding.status == "error":
                    self.children.close()
                    finding = await self.one(check)
                findings[check.id] = finding
                if self._tell:
                    self._tell(check, finding)
        finally:
            self.children.close()
            if watching:
                watching.cancel()
        return [findings[check.id] for check in checks]

    async def one(self, check: Check) -> Finding:
        """Run one check in a fresh folder. A child that did something unexpected is not used again."""
        box = self.children.box
        box.check_running()
        try:
            finding = await self._tried(check)
        except ChildLost as lost:
            self.children.take_note(lost)
            finding = Finding(check.id, "fail", lost.reason, _explain(lost))
        box.check_running()  # a child that was ended from outside is no finding
        if finding.status == "fail" and box.has_no_room_here:
            finding = _grader_error(check, OSError(errno.ENOSPC, ""))
        if finding.status != "pass" and finding.reason != "not-implemented":
            self.children.end_spoilt(faults=check.faults)
        return finding

    async def _tried(self, check: Check) -> Finding:
        limits = self.children.box.limits
        draw = Random(f"{self._seed} {check.id}")  # noqa: S311 - inputs, not secrets
        try:
            channel = await self.children.get(faults=check.faults)
            folder = self._new_folder()
            lab = self._lab(self.children, channel, folder, draw, faults=check.faults)
        except OSError as error:
            return _grader_error(check, error)
        deadline = asyncio.timeout(min(limits.check_seconds, self.children.seconds_left))
        try:
            async with deadline:
                await check.run(lab)
        except (ChildLost, RunEnded):
            raise
        except Exception as error:  # noqa: BLE001 - sorted out by whose fault it is
            if deadline.expired():
                raise ChildLost(
                    "timeout", Text("整项测试没有按时结束", "the test as a whole did not end in time")
                ) from None
            return _sort_out(check, error, heard_freely=lab.heard_freely)
        if lost := lab.lost():
            raise lost
        return Finding(check.id, "pass")

    def _new_folder(self) -> Path:
        """Make an empty folder. It has a number, not a name: what is tested is not the student's to know."""
        self._folders += 1
        box, name = self.children.box, f"{self._folders:03}"
        with self.children.room():
            tree.make_folder(box.work, name, box.place.user)
        return box.work / name

    async def _watch(self) -> NoReturn:
        """Measure the work folder where nothing else limits it, and end a submission that wrote too much."""
        while True:
            await asyncio.sleep(_MEASURED_EACH_SECONDS)
            if await asyncio.to_thread(lambda: self.children.box.is_full):
                self.children.lose(self.children.full())


def _sort_out(check: Check, error: Exception, *, heard_freely: bool) -> Finding:
    """Say whose fault an exception is: not implemented, wrong, out of memory, or the grader's own.

    With `heard_freely` the check was told JSON of no fixed shape, which code that owns the line may answer as it likes:
    what then does not fit is that code's doing, for on the solution, which every class run grades first, it does.
    """
    chain = [error, *_contexts(error)]
    place = next((note for link in chain for note in getattr(link, "__notes__", ()) if note), "")
    if isinstance(error, NotImplementedError) and is_students(error):
        return Finding(check.id, "fail", "not-implemented", Text(str(error), str(error)), place)
    if any(isinstance(link, StudentError) and link.name == "MemoryError" for link in chain):
        return Finding(check.id, "fail", "memory", REASONS["memory"], place)
    if isinstance(error, CheckFailed):
        return Finding(check.id, "fail", "fail", error.message, place)
    if text := _not_as_due(error, heard_freely=heard_freely):
        message = Text(f"{_rules(check)}：{text.zh}", f"{_rules(check)}: {text.en}")
        return Finding(check.id, "fail", "fail", message, place)
    if is_students(error):
        found = show_error(error)
        message = Text(
            f"{_rules(check)}：应当不出错；实际：{found.zh}。",
            f"{_rules(check)}: expected no error; found: {found.en}.",
        )
        return Finding(check.id, "fail", "fail", message, place)
    return _grader_error(check, error)


_MISSHAPEN = (TypeError, LookupError, AttributeError, ValueError, ArithmeticError, RecursionError)
"""What judging an answer of another shape than is due may raise."""
_ODD_ANSWER = Text(
    "代码给出的回答不是应有的形状，无法判断",
    "what the code answered has another shape than is due, and cannot be judged",
)


def _not_as_due(error: Exception, *, heard_freely: bool) -> Text | None:
    if isinstance(error, MissingFile):
        return Text("应有的文件不在", "a file that is due is not there")
    if isinstance(error, OddFileError):
        return Text(str(error), str(error))
    return _ODD_ANSWER if heard_freely and isinstance(error, _MISSHAPEN) and not is_students(error) else None


def _contexts(error: BaseException) -> list[BaseException]:
    return [] if error.__context__ is None else [error.__context__, *_contexts(error.__context__)]


def _rules(check: Check) -> str:
    return "/".join(check.rules)


def _grader_error(check: Check, error: Exception) -> Finding:
    name = str(error) if isinstance(error, SpineUnready) else type(error).__name__
    return Finding(
        check.id,
        "error",
        "grader-error",
        Text(
            f"评分器自身出错（{name}），不扣分；请重跑一次。",
            f"The grader itself failed ({name}); no marks are lost. Run it again.",
        ),
    )


def _explain(lost: ChildLost) -> Text:
    """Say what was seen, and what to do next."""
    then = lost.then or REASONS[lost.reason]
    return Text(f"{lost.seen.zh}。{then.zh}", f"{lost.seen.en[:1].upper()}{lost.seen.en[1:]}. {then.en}")


REASONS = {
    "timeout": Text(
        "查找不会结束的循环，或永远不会完成的 Future。",
        "Look for a loop that does not end, or a future that nobody completes.",
    ),
    "memory": Text(
        "内存超过上限。不要把没有上限的内容留在内存里。",
        "Memory ran past its limit. Keep nothing in memory that has no bound.",
    ),
    "crash": Text(
        "代码不应结束进程或关闭不属于它的描述符。",
        "The code must not end the process, or close descriptors that are not its own.",
    ),
    "tamper": Text("提交的代码只该使用自己的文件。", "Submitted code is to touch its own files only."),
    "missing-file": Text("把它放进提交里，文件名保持不变。", "Hand it in, under the name it has."),
    "syntax-error": Text("先让这个文件能被 Python 读懂。", "Make Python accept this file first."),
    "import-error": Text(
        "先让 import 成功；只有课程指定的文件会被收取。",
        "Make the import work first; only the files that the kit names are taken.",
    ),
}
