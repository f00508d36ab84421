"""The lab of lesson 04 as a check sees it: labs on disk, rounds run in them, questions to the student's functions.

What a round printed and what a function gave back is the student's word. What is on disk is looked at from here
(`grader.tree`); what a program of the round saw meanwhile, it left in the folder `seen`.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from grader import tree
from grader.channel import ChildLost, is_error
from grader.lab import StudentError, as_told, rebuild_error
from grader.proxy import value_of
from grader.suites.check import Text

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from grader.channel import Channel
    from grader.lab import Rule
    from grader.proxy import Children
    from grader.tree import Tree

    Tell = Callable[..., Awaitable[Any]]
    """Sends one operation of `grader/child/spine_host.py` and gives its answer: tell(op, seconds, **fields)."""

KEEP = 'mkdir "../seen/$1-$number.kept" && cp -R .loop tasks src "../seen/$1-$number.kept"\n'
"""An order for `look`: keep what stands on disk now."""

INTERRUPT = "--simulate-interruption-after-claim"


@dataclass(frozen=True, slots=True)
class Ran:
    """How a process ended, and what it printed. `answer` is the one JSON object on stdout, None when there was not one.

    `exit` is None when a signal ended it. `error` is what a round let out instead of answering, `value` what a question
    gave, `log` what the file layer saw.
    """

    exit: int | None
    signal: int | None
    out: str
    answer: dict[str, Any] | None
    error: Exception | None = None
    value: Any = None
    log: list[dict[str, Any]] = field(default_factory=list)

    @property
    def said(self) -> tuple[Any, Any, Any, int | None]:
        """Decision, reason, cause, exit code."""
        answer = self.answer or {}
        return answer.get("decision"), answer.get("reason"), answer.get("cause"), self.exit


class SpineLab:
    """Everything that one check of lesson 04 may touch. Each has a fresh, empty folder below `root`."""

    def __init__(
        self, tell: Tell, root: Path, name: str, draw: Random, seconds: tuple[float, float] = (10, 40)
    ) -> None:
        self.draw = draw
        self.root = root
        self.name = name
        self.tell = tell
        self.seconds = seconds
        self._labs = 0

    async def lay(self, kind: str = "bench") -> Garden:
        """Lay one more lab down: `bench`, `lesson` (see `grader.spine_template`), or `bare`, the code alone."""
        self._labs += 1
        place = f"{self.name}/{self._labs}"
        await self.tell("lay", self.seconds[0], kind=kind, place=place)
        return Garden(self, place)


class Garden:
    """One lab on disk. Names are relative to its folder; `../orders/NAME` is what `look NAME` is ordered to do."""

    def __init__(self, lab: SpineLab, place: str) -> None:
        self._lab = lab
        self.place = place

    # --- what is done in it ---

    async def do(self, *deeds: tuple[str, ...]) -> None:
        """Change the lab as its owner could, in this order; the deeds are those of `spine_host`."""
        await self._tell("deeds", deeds=[list(deed) for deed in deeds])

    async def write(self, files: Mapping[str, bytes | str | dict[str, Any]]) -> None:
        """Put these files in place of whatever has their names; a dict is written as JSON."""
        await self.do(*(("write", name, _bytes(content).hex()) for name, content in files.items()))

    async def run(
        self,
        *words: str,
        agent: bool = False,
        rules: Sequence[Rule] | None = None,
        env: Mapping[str, str] | None = None,
        real: bool = False,
        may_die: bool = False,
    ) -> Ran:
        """Run one round with the lab's own command; with `agent`, `look agent` is the agent.

        `rules` arm the file layer underneath. `real`ly: as a command of its own, not in a fork; it may take longer.

        Raises: NotImplementedError when it came to a body that is not written; ChildLost when a signal ended it that
        nobody sent.
        """
        words = ("tools/run_once.py", *words, *(("--", "../look", "agent") if agent else ()))
        return await self._ran(words, rules=rules, env=env or {}, real=real, may_die=may_die)

    async def interrupt(self) -> Ran:
        """Claim, and end at the checkpoint."""
        return await self.run(INTERRUPT)

    async def close(self, task_id: str, reason: str) -> Ran:
        """Close a task with the lab's own command."""
        return await self._ran(("tools/close_task.py", task_id, "--reason", reason))

    async def ask(self, scenario: str, given: Any = None, *, rules: Sequence[Rule] | None = None) -> Any:
        """Run trusted source beside the student's modules (`suites.lesson_04.scenarios`); give what it tells."""
        return (await self.asked(scenario, given, rules=rules)).value

    async def asked(
        self, scenario: str, given: Any = None, *, rules: Sequence[Rule] | None = None, may_die: bool = False
    ) -> Ran:
        """Do the same, and say how it ended. Raises: what the student's code let out, one of `STUDENT_ERRORS`."""
        reply = await self._tell("ask", source=scenario, given=given, rules=_plain(rules))
        ran = _ran(reply, may_die=may_die)
        if ran.error:
            raise ran.error
        return ran

    async def _ran(
        self,
        words: Sequence[str],
        *,
        rules: Sequence[Rule] | None = None,
        env: Mapping[str, str] | None = None,
        real: bool = False,
        may_die: bool = False,
    ) -> Ran:
        reply = await self._lab.tell(
            "run",
            self._lab.seconds[real],
            place=f"{self.place}/lab",
            words=list(words),
            rules=_plain(rules),
            env=dict(env or {}),
            real=real,
        )
        ran = _ran(reply, may_die=may_die)
        if isinstance(ran.error, NotImplementedError):
            raise ran.error
        if ran.said[:2] == ("blocked", "not_implemented"):
            raise rebuild_error(["NotImplementedError"], {}, str((ran.answer or {}).get("message")))
        return ran

    async def _tell(self, op: str, **fields: Any) -> Any:
        return await self._lab.tell(op, self._lab.seconds[0], place=f"{self.place}/lab", **fields)

    # --- what is seen of it ---

    def tree(self) -> Tree:
        """Look at the whole lab, its repository included."""
        return tree.look(self._lab.root, f"{self.place}/lab")

    def raw(self, name: str) -> bytes:
        """Read one file. Raises: FileNotFoundError, OddFileError."""
        return tree.read(self._lab.root, posixpath.normpath(f"{self.place}/lab/{name}"))

    def look(self, folder: str) -> Tree:
        """Look at a folder beside the lab: `seen`, or one below it."""
        return tree.look(self._lab.root, f"{self.place}/{folder}")

    def starts(self, name: str) -> int:
        """Count how often `look NAME` was started."""
        return sum(re.fullmatch(rf"{name}-\d+", path) is not None for path in self.look("seen"))


def _plain(rules: Sequence[Rule] | None) -> list[dict[str, object]] | None:
    return None if rules is None else [dict(rule) for rule in rules]


def _bytes(content: bytes | str | dict[str, Any]) -> bytes:
    if isinstance(content, dict):
        content = json.dumps(content, ensure_ascii=False, indent=2) + "\n"
    return content.encode() if isinstance(content, str) else content


def _ran(reply: Any, *, may_die: bool) -> Ran:
    """Read how a process ended; its own words are parsed here, and may be anything."""
    told = _parsed(reply["told"]) or {}
    error: Any = told.get("error")
    log: Any = told.get("log", [])
    if not isinstance(log, list):  # a process of the student's owns the descriptor that this came over
        raise StudentError("TypeError", "the round told of its operations in another form")
    if reply["signal"] is not None and not may_die:
        number = reply["signal"]
        raise ChildLost("crash", Text(f"运行被信号 {number} 结束", f"the run was ended by signal {number}"))
    return Ran(
        reply["exit"],
        reply["signal"],
        reply["out"],
        as_told(_parsed(reply["out"])),
        rebuilt(error) if is_error(error) else None,
        as_told(told.get("value")),
        [entry for entry in log if isinstance(entry, dict)],
    )


def rebuilt(described: Mapping[str, Any]) -> Exception:
    """Make the exception that a check sees; its note says where in the student's code it was raised."""
    raised = rebuild_error(described["types"], described["attrs"], described["text"])
    raised.add_note(described["where"])
    return raised


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


class PipedSpineLab(SpineLab):
    """The lab over the grader's pipe. `heard_freely`: as in `grader.proxy.PipedLab`."""

    heard_freely = False

    def __init__(
        self,
        children: Children,
        channel: Channel,
        folder: Path,
        draw: Random,
        *,
        faults: bool,  # noqa: ARG002 - every round can have them
    ) -> None:
        limits = children.box.limits
        super().__init__(
            self._ask, folder.parent, folder.name, draw, (limits.call_seconds, limits.check_seconds)
        )
        self._channel = channel

    async def _ask(self, op: str, seconds: float, **fields: Any) -> Any:
        self.heard_freely = True
        reply = await self._channel.ask(self._channel.new_id(), seconds, op=op, **fields)
        return value_of(self._channel, reply, object)

    def lost(self) -> ChildLost | None:
        """Say whether the child was lost meanwhile."""
        return self._channel.lost
