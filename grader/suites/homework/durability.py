"""Exercise 1: what an acknowledgement promises, at each level, also when the disk fails. H1 to H5."""
# ruff: noqa: D400 - a docstring is the learner's title

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

from grader.suites.check import Text
from grader.suites.expect import Trial, show_value
from grader.suites.homework.drawn import some_lines, word
from grader.suites.homework.scenarios import source_of, take_steps
from grader.suites.homework.suite import check

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from grader.lab import Lab, Rule

LEVELS = ("os", "fsync", "group")
WRITES = ["write", "writev", "pwrite", "pwritev"]
SYNCS = ["fsync", "fdatasync"]
BLUNDERS = ("AssertionError", "AttributeError", "IndexError", "KeyError", "NameError", "UnboundLocalError")
"""Errors that nobody raises in order to say that a log is closed."""


@check(
    "22-homework-lines",
    rules=("H1",),
    dimension="durability",
    required=True,
    hint=Text(
        "用 os.open 打开：O_APPEND 接在末尾，O_CREAT 连同权限 0o600 一步到位。",
        "Open with os.open: O_APPEND goes on at the end, and O_CREAT takes the mode 0o600 in the same step.",
    ),
)
async def lines_reach_the_disk(lab: Lab) -> None:
    """三种级别都一样：各行按调用次序完整落盘，重开后接着写，文件只属于自己

    At every level the lines reach the disk whole and in order, a log opened anew goes on, and the file is private
    """
    for level in LEVELS:
        trial = Trial(
            "H1",
            f"用级别 {level} 追加 5 行并关闭，再打开追加 3 行",
            f"At level {level} append 5 lines and close; open it again and append 3 more",
        )
        name, lines = f"{word(lab.draw)}.log", some_lines(lab.draw, 8)
        for some in (lines[:5], lines[5:]):
            told = await trial.gives(lab.scenario(source_of(take_steps), _steps(name, level, 4, some)))
            numbers = [number for step in told for number in _acknowledged(trial, step)]
            trial.require(
                numbers == list(range(1, len(some) + 1)),
                Text("每行恰好确认一次，次序不变", "each line is acknowledged once, in order"),
                Text(f"确认了 {len(numbers)} 次", f"{len(numbers)} acknowledgements"),
            )
            await lab.restart()
        _disk_is(trial, lab, name, "".join(lines).encode())
        mode = lab.mode(name)
        trial.require(mode == 0o600, Text("权限 0600", "mode 0600"), Text(f"{mode:04o}", f"{mode:04o}"))


@check(
    "22-homework-acknowledged",
    rules=("H2",),
    dimension="durability",
    required=True,
    faults=True,
    hint=Text(
        "确认就是承诺：os 等 write 交出去，fsync 等这一行同步完，group 等整组共用的那次同步。没等到就不要返回编号。",
        "An acknowledgement is a promise: `os` waits for the write, `fsync` for the sync of this line, `group` for the "
        "sync that its group shares. Return no number before that.",
    ),
)
async def a_line_is_acknowledged_when_its_promise_holds(lab: Lab) -> None:
    """编号在承诺成立的那一刻返回：os 写完，fsync 同步完，group 整组同步完

    A number is returned when its promise holds: written at os, synced at fsync, synced with its group at group
    """
    for level in LEVELS:
        group = lab.draw.randrange(2, 5)
        trial = _trial("H2", level, group)
        name, lines = f"{word(lab.draw)}.log", some_lines(lab.draw, 2 * group + 1)
        told, seen = await _watched(lab, trial, _steps(name, level, group, lines))
        found = [_acknowledged(trial, step) for step in told]
        for step, (numbers, expected) in enumerate(zip(found, _due(level, group, len(lines)), strict=True)):
            said = Text(
                f"第 {step} 步确认了 {numbers}，应当是 {expected}",
                f"step {step} acknowledged {numbers}; due were {expected}",
            )
            trial.require(
                numbers == expected, Text("按级别的约定确认", "acknowledged as the level says"), said
            )
        safe = list(_safe_lines(seen, name, level, lines))
        for numbers, lines_safe in zip(found, safe, strict=False):
            trial.require(
                all(number <= lines_safe for number in numbers),
                Text("确认之前，承诺已经成立", "the promise holds before the line is acknowledged"),
                Text(
                    f"确认到第 {max(numbers, default=0)} 行时只保住了 {lines_safe} 行",
                    f"line {max(numbers, default=0)} was acknowledged while {lines_safe} were safe",
                ),
            )
        trial.require(
            len(safe) == len(told),
            Text("每一步都有记录", "every step is on record"),
            Text("有缺", "some are missing"),
        )
        _disk_is(trial, lab, name, "".join(lines).encode())


@check(
    "22-homework-price",
    rules=("H3",),
    dimension="durability",
    core=True,
    faults=True,
    hint=Text(
        "group 的意义就在省：一组只同步一次。os 自己不同步，fsync 一行一次。",
        "Saving is the point of `group`: one sync a group. `os` never syncs by itself, `fsync` once a line.",
    ),
)
async def each_level_costs_what_it_says(lab: Lab) -> None:
    """同步次数与级别相符：os 不同步，fsync 每行一次，group 每组一次

    The syncs are as many as the level says: none at os, one a line at fsync, one a group at group
    """
    for level, most in (("os", 0), ("fsync", 9), ("group", 3)):
        trial = _trial("H3", level, 3)
        name, lines = f"{word(lab.draw)}.log", some_lines(lab.draw, 9)
        steps = _steps(name, level, 3, lines)
        del steps["steps"][-2]  # a sync that is asked for is not the level's own
        _, seen = await _watched(lab, trial, steps)
        count = sum(entry["op"] in SYNCS and entry["path"] == name for entry in seen)
        trial.require(
            count == most,
            Text(f"9 行同步 {most} 次", f"{most} syncs for 9 lines"),
            Text(f"{count} 次", f"{count}"),
        )


@check(
    "22-homework-name",
    rules=("H4",),
    dimension="durability",
    required=True,
    faults=True,
    hint=Text(
        "同步文件，保住的是字节；文件名记在目录里。建好文件后、确认第一行之前，再同步一次目录。",
        "Syncing a file saves its bytes; its name stands in the folder. Sync the folder after the file was made and "
        "before the first line is acknowledged.",
    ),
)
async def the_name_of_a_new_file_is_synced(lab: Lab) -> None:
    """新文件的名字也要落盘：确认第一行之前同步所在目录

    The name of a new file is made durable, too: its folder is synced before the first line is acknowledged
    """
    for level in ("fsync", "group"):
        trial = _trial("H4", level, 1)
        name = f"{word(lab.draw)}.log"
        _, seen = await _watched(lab, trial, _steps(name, level, 1, some_lines(lab.draw, 1)))
        made, answered = _first(seen, name, ["open"]), _first(seen, f"{name}.step-2", ["mkdir"])
        synced = [entry for entry in seen[made:answered] if entry["op"] in SYNCS and entry["path"] == "."]
        trial.require(
            bool(synced),
            Text(
                "建好之后、确认之前同步目录",
                "the folder is synced after the file was made, before the answer",
            ),
            Text("目录没有同步", "the folder was not synced"),
        )


@check(
    "22-homework-name-failed",
    rules=("H4", "H5"),
    dimension="durability",
    core=True,
    faults=True,
    hint=Text(
        "目录同步失败，名字就没有保证：关掉描述符，把错误交给调用者。",
        "When the folder cannot be synced, the name is not safe: close the descriptor and let the caller have the error.",
    ),
)
async def a_name_that_cannot_be_synced_opens_no_log(lab: Lab) -> None:
    """目录同步失败：打开就报错，一行也不确认

    When the folder cannot be synced, opening fails and no line is acknowledged
    """
    name = f"{word(lab.draw)}.log"
    trial = Trial("H4", "让目录的同步失败，再打开", "Let the sync of the folder fail, then open")
    rules: list[Rule] = [{"op": SYNCS, "match": ".", "do": "EIO", "times": None}]
    told, seen = await _watched(lab, trial, _steps(name, "fsync", 1, some_lines(lab.draw, 1)), rules)
    numbers = [number for step in told if "acknowledged" in step for number in step["acknowledged"]]
    failed = any("OSError" in step.get("error", ()) for step in told)
    trial.require(
        any(entry["op"] in SYNCS and entry["path"] == "." for entry in seen),
        Text("同步目录", "the folder is synced"),
        Text("没有同步", "it was not"),
    )
    trial.require(
        failed and not numbers,
        Text("OSError，不确认", "OSError, and no acknowledgement"),
        Text(f"确认了 {len(numbers)} 行", f"{len(numbers)} lines were acknowledged"),
    )
    still_open = _count(seen, name, "open") - _count(seen, name, "close")
    trial.require(
        still_open <= 0,
        Text("打开的描述符都已关闭", "every descriptor that was opened is closed"),
        Text(f"还开着 {still_open} 个", f"{still_open} left open"),
    )


@check(
    "22-homework-failed-sync",
    rules=("H5",),
    dimension="durability",
    required=True,
    faults=True,
    hint=Text(
        "fsync 失败后，内核可能已经丢掉那些字节，却把它们标成干净：再同步一次会“成功”。所以关掉日志，重新打开，看盘上有什么。",
        "After a failed fsync the kernel may have dropped the bytes and called them clean: the next sync then "
        '"succeeds". So close the log, open it anew, and look at what is on disk.',
    ),
)
async def a_failed_sync_closes_the_log(lab: Lab) -> None:
    """同步失败：不确认，关闭日志，绝不在同一个文件上再试一次当作成功

    A failed sync acknowledges nothing and closes the log; it is never tried again and taken for success
    """
    for level, group, fails in (("fsync", 1, 2), ("group", 2, 1), ("group", 3, 1)):
        asked = group == 3  # the two lines before it wait for a sync that is asked for
        trial = Trial(
            "H5",
            f"级别 {level}{'（两行在等）' if asked else ''}：让第 {fails} 次同步以 EIO 失败，再追加、同步、关闭",
            f"At level {level}{', two lines waiting,' if asked else ''} let sync {fails} fail with EIO; "
            "then append, sync and close",
        )
        name, lines = f"{word(lab.draw)}.log", some_lines(lab.draw, 4)
        steps = _steps(name, level, group, lines)
        if asked:
            steps["steps"].insert(3, ["sync"])
        rules: list[Rule] = [{"op": SYNCS, "match": name, "nth": fails, "do": "EIO"}]
        told, seen = await _watched(lab, trial, steps, rules)
        _fails_then_stays_closed(trial, told, failing=3 if asked else 2)
        _is_left_alone(trial, seen, name)


@check(
    "22-homework-short",
    rules=("H1",),
    dimension="durability",
    core=True,
    faults=True,
    hint=Text(
        "os.write 返回写下的字节数，可能比要求的少：从断处接着写，直到写完。",
        "os.write returns how many bytes it took, perhaps fewer than asked: go on from there until all are written.",
    ),
)
async def a_short_count_is_continued(lab: Lab) -> None:
    """磁盘只收下一行的一部分：接着写完，再确认

    When write takes fewer bytes than asked, the rest follows before the line is acknowledged
    """
    for part in (f"short:{lab.draw.randrange(1, 9)}", "half"):
        trial = Trial("H1", "让 write 只收下一部分", "Let write take only a part of the line")
        name, lines = f"{word(lab.draw)}.log", some_lines(lab.draw, 3)
        rules: list[Rule] = [{"op": WRITES, "match": name, "nth": 2, "do": part}]
        told, _ = await _watched(lab, trial, _steps(name, "fsync", 1, lines), rules)
        found = [number for step in told for number in _acknowledged(trial, step)]
        trial.require(
            found == [1, 2, 3], Text("三行都确认", "all three are acknowledged"), show_value(len(found))
        )
        _disk_is(trial, lab, name, "".join(lines).encode())


@check(
    "22-homework-full",
    rules=("H5",),
    dimension="durability",
    core=True,
    faults=True,
    hint=Text(
        "写到一半失败，盘上留着半行。关掉日志，别让下一行接在它后面。",
        "A write that fails half-way leaves half a line. Close the log, so that no line is glued onto it.",
    ),
)
async def a_failed_write_closes_the_log(lab: Lab) -> None:
    """磁盘写满：那一行报错、不确认，后面的行不会接在残片上

    On a full disk that line fails and is not acknowledged, and no later line is glued onto what is left of it
    """
    for level in LEVELS:
        name, lines = f"{word(lab.draw)}.log", some_lines(lab.draw, 4)
        trial = Trial(
            "H5",
            f"级别 {level}：第 2 行写下几个字节后磁盘满，再追加、同步、关闭",
            f"At level {level} the disk is full after some bytes of line 2; then append, sync and close",
        )
        rules: list[Rule] = [{"op": WRITES, "match": name, "nth": 2, "do": "short:5,ENOSPC"}]
        told, _ = await _watched(lab, trial, _steps(name, level, 1, lines), rules)
        _fails_then_stays_closed(trial, told, failing=2)
        raw, first, second = trial.bytes_on_disk(lab, name), lines[0].encode(), lines[1].encode()
        trial.require(
            raw.startswith(first) and second.startswith(raw[len(first) :]),
            Text("盘上只有第 1 行和第 2 行的开头", "line 1 and the beginning of line 2, and nothing else"),
            Text("残片后面还有别的", "something stands behind what is left of it"),
        )


# --- Steps, and what they show ---


def _steps(name: str, level: str, group: int, lines: Sequence[str]) -> dict[str, Any]:
    steps = [["open"], *(["append", line] for line in lines), ["sync"], ["close"]]
    return {"name": name, "level": level, "group": group, "steps": steps}


def _trial(rule: str, level: str, group: int) -> Trial:
    sized = f"（每组 {group} 行）" if level == "group" else ""
    of = f" (groups of {group})" if level == "group" else ""
    return Trial(
        rule,
        f"用级别 {level}{sized}打开（第 0 步），逐行追加，再同步、关闭",
        f"Open at level {level}{of} (step 0), append line by line, sync and close",
    )


async def _watched(
    lab: Lab, trial: Trial, given: dict[str, Any], rules: Sequence[Rule] = ()
) -> tuple[Any, list[dict[str, Any]]]:
    """Take the steps; give what they told, and every operation that the file layer saw meanwhile."""
    await lab.arm(rules)
    told = await trial.gives(lab.scenario(source_of(take_steps), {**given, "marks": True}))
    return told, await lab.disarm()


def _acknowledged(trial: Trial, step: Any) -> list[int]:
    """Give the numbers that a step acknowledged; that it raised is a failure of the rule."""
    if "error" in step:
        name = step["error"][0]
        raise trial.failure(Text("不出错", "no error"), Text(f"抛出 {name}", f"{name} was raised"))
    return list(step["acknowledged"])


def _due(level: str, group: int, count: int) -> list[list[int]]:
    """Say what each step has to acknowledge: opening, the appends, a sync, closing."""
    if level != "group":
        return [[], *([number] for number in range(1, count + 1)), [], []]
    full = [
        list(range(number - group + 1, number + 1)) if number % group == 0 else []
        for number in range(1, count + 1)
    ]
    return [[], *full, list(range(count - count % group + 1, count + 1)), []]


def _safe_lines(seen: Sequence[dict[str, Any]], name: str, level: str, lines: Sequence[str]) -> Iterator[int]:
    """Give how many lines the level's promise held for at the end of each step."""
    ends = list(accumulate(len(line.encode()) for line in lines))
    written = synced = 0
    for entry in seen:
        if entry["op"] == "mkdir" and entry["path"].startswith(f"{name}.step-"):
            yield sum(end <= (written if level == "os" else synced) for end in ends)
        elif entry["path"] == name and entry["op"] in WRITES:
            written += entry["size"]
        elif entry["path"] == name and entry["op"] in SYNCS:
            synced = written


def _fails_then_stays_closed(trial: Trial, told: Any, failing: int) -> None:
    """Require that append `failing` raises OSError, and that nothing after it is acknowledged or goes through."""
    for step in told[:failing]:
        _acknowledged(trial, step)
    raised = told[failing].get("error", ())
    trial.require(
        "OSError" in raised,
        Text("失败的那一步抛出 OSError", "OSError from the step that failed"),
        Text(raised[0], raised[0]) if raised else Text("没有报错", "nothing was raised"),
    )
    *refused, closing = told[failing + 1 :]
    for step in refused:
        raised = step.get("error", ())
        trial.require(
            bool(raised) and not set(BLUNDERS) & set(raised),
            Text("之后的追加和同步都被拒绝", "appending and syncing are refused afterwards"),
            Text(raised[0], raised[0]) if raised else Text("照常进行", "they went on"),
        )
    late = closing.get("acknowledged", ())
    trial.require(
        not late,
        Text("关闭时什么也不确认", "closing acknowledges nothing"),
        Text(f"确认了 {len(late)} 行", f"{len(late)} lines were acknowledged"),
    )


def _is_left_alone(trial: Trial, seen: Sequence[dict[str, Any]], name: str) -> None:
    """Require that nothing was written or synced any more once a sync had failed."""
    failed = _first(seen, name, SYNCS, did="EIO")
    after = [
        entry["op"]
        for entry in seen[failed + 1 :]
        if entry["path"] == name and entry["op"] in (*WRITES, *SYNCS)
    ]
    trial.require(
        not after,
        Text("失败之后不再写、不再同步", "no write and no sync after the failure"),
        Text(after[0], after[0]) if after else Text("", ""),
    )


def _first(seen: Sequence[dict[str, Any]], path: str, ops: Sequence[str], did: str = "full") -> int:
    """Give the place of the first of these operations on a path; behind the last where there is none."""
    fits = (entry["path"] == path and entry["op"] in ops and entry["did"] == did for entry in seen)
    return next((at for at, found in enumerate(fits) if found), len(seen))


def _count(seen: Sequence[dict[str, Any]], path: str, op: str) -> int:
    return sum(entry["path"] == path and entry["op"] == op for entry in seen)


def _disk_is(trial: Trial, lab: Lab, name: str, expected: bytes) -> None:
    found = trial.bytes_on_disk(lab, name)
    trial.require(
        found == expected,
        Text(f"磁盘上恰是这 {len(expected)} 字节", f"exactly these {len(expected)} bytes on disk"),
        Text(f"{len(found)} 字节，或次序不同", f"{len(found)} bytes, or another order"),
    )
