"""Killed anywhere, and out again: P15, P16."""
# ruff: noqa: D400 - a docstring is the learner's title

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from grader.suites.check import Text
from grader.suites.lesson_04.claim import MOVES
from grader.suites.lesson_04.drawn import task, word
from grader.suites.lesson_04.durable import MARK, marked
from grader.suites.lesson_04.evidence import SAYS_DONE, rejects
from grader.suites.lesson_04.judge import (
    COMPLETED,
    QUEUES,
    SOURCE,
    Rule,
    claimed,
    given_task,
    records_of,
)
from grader.suites.lesson_04.suite import check

if TYPE_CHECKING:
    from grader.spine import Garden, Ran, SpineLab

POINTS = 6
AFTER_A_KILL = ("claim_exists", "unsafe_resume", "finish_incomplete")


@check(
    "04-p15-points",
    rules=("P15", "P7"),
    dimension="durability",
    hint=Text(
        "想象在每一个文件操作之前断电：记录要么还没写，要么已经完整；宁可早说“可能”，不能晚说。",
        "Imagine a power cut before every single file operation: a record is not there yet, or whole; it says "
        '"maybe" too early rather than too late.',
    ),
)
async def killed_anywhere_the_next_run_knows(lab: SpineLab) -> None:
    """在随机抽取的文件操作处被杀：任务恰好一份，记录完整，Agent 至多一次，下一次运行说得清

    Killed at operations drawn at random: one task, whole records, one agent at most, and the next run knows
    """
    rule = Rule("P15", "完整做一轮，记下每个文件操作", "Do a whole round, and note every file operation")
    one = task(lab.draw)
    garden = await _ready(lab, one)
    ran = await garden.run(agent=True, rules=[MARK])
    rule.answers(ran, *COMPLETED)
    rule.same(garden.starts("agent"), 1, Text("Agent 启动一次", "the agent is started once"))
    count = len(marked(ran))
    rule.require(
        count >= POINTS,
        Text("一轮有许多文件操作", "a round has many file operations"),
        Text(*(f"{count}",) * 2),
    )
    for nth in sorted(lab.draw.sample(range(1, count + 1), POINTS)):
        rule = Rule(
            "P15",
            "在某个文件操作处杀死运行器，再运行一次",
            "Kill the runner at some file operation, then run again",
        )
        garden = await _ready(lab, one)
        strike = {"op": "change", "nth": nth, "do": lab.draw.choice(("none,kill", "half,kill"))}
        rule.died(await garden.run(agent=True, rules=[strike], may_die=True), "那一步", "that step")
        _whole(rule, garden, one["id"])
        before = garden.tree()
        ran = await garden.run(agent=True)
        _knows(rule, garden, one["id"], ran)
        if ran.exit == 3:
            rule.unchanged(before, garden.tree())
        _whole(rule, garden, one["id"])


async def _ready(lab: SpineLab, one: dict[str, Any]) -> Garden:
    garden = await given_task(lab, one)
    await garden.write({"../orders/agent": f"echo '// x' >> {SOURCE}\n{SAYS_DONE}"})
    return garden


def _whole(rule: Rule, garden: Garden, task_id: str) -> None:
    """Require what holds at every moment: the task once, whole records, at most one start of the agent."""
    tree = garden.tree()
    found = [queue for queue in QUEUES if f"tasks/{queue}/{task_id}.json" in tree]
    rule.require(
        len(found) == 1,
        Text("任务恰好在一个队列里", "the task stands in exactly one queue"),
        Text(*(f"{len(found)}",) * 2),
    )
    for name in records_of(task_id):
        if name in tree and not name.endswith(".jsonl"):
            rule.record(garden, name)
    starts = garden.starts("agent")
    rule.require(
        starts <= 1,
        Text("Agent 至多启动一次", "the agent is started at most once"),
        Text(f"{starts} 次", f"{starts} times"),
    )


def _knows(rule: Rule, garden: Garden, task_id: str, ran: Ran) -> None:
    """Require that the next run completes, finds nothing left to do, or is blocked with a cause that the disk bears out."""
    if ran.exit == 0:
        decision = ran.said[0]
        rule.require(
            decision in ("completed", "idle"),
            Text("completed 或 idle", "completed or idle"),
            Text("不是", "it is not"),
        )
        rule.stands_in(garden.tree(), task_id, "done")
        rule.state(garden, task_id, "completed", "finished")
        return
    decision, reason, cause, code = ran.said
    rule.require(
        (decision, code) == ("blocked", 3) and reason in AFTER_A_KILL,
        Text("完成，或 blocked 并说明原因", "it completes, or is blocked with its cause"),
        Text("都不是", "it does neither"),
    )
    state, tree = f".loop/tasks/{task_id}/state.json", garden.tree()
    phase = rule.record(garden, state)["phase"] if state in tree else None
    true = {
        "claim_exists": phase is None,
        "unsafe_resume": cause == f"phase_{phase}" or (cause == "events_disagree" and phase == "claimed"),
        "finish_incomplete": cause == "still_in_processing" and phase == "finished",
    }
    rule.require(
        true[reason],
        Text("原因与磁盘上的记录相符", "the cause is what the records on disk say"),
        Text("不符", "it is not"),
    )


@check(
    "04-p15-finish",
    rules=("P15", "P8"),
    dimension="durability",
    hint=Text(
        "收尾的顺序：尝试、结果、状态、移动。每次启动先比较状态和队列；不一致就停下，绝不重新裁决。",
        "Finish in this order: attempt, result, state, move. Every start first compares states with queues; where they "
        "disagree it stops, and never judges again.",
    ),
)
async def an_unfinished_finish_is_seen(lab: SpineLab) -> None:
    """收尾到一半被杀：下一次看得见，不重跑、不重判

    A finish that was cut short is seen by the next run, and nothing is run or judged again
    """
    moments = (
        ("results/*", "none,kill", "写结果之前", "before the result", "agent_finished", "unsafe_resume", "phase_agent_finished"),
        ("results/*", "full,kill", "写结果之后", "after the result", "agent_finished", "unsafe_resume", "phase_agent_finished"),
        ("tasks/done/*", "none,kill", "移动之前", "before the move", "finished", "finish_incomplete", "still_in_processing"),
    )  # fmt: skip
    for match, do, zh, en, phase, reason, cause in moments:
        rule = Rule("P15", f"在{zh}杀死运行器，再运行一次", f"Kill the runner right {en}, then run again")
        one = task(lab.draw)
        garden = await _ready(lab, one)
        strike = {"op": MOVES, "match": f".loop/{match}" if match[0] == "r" else match, "do": do}
        rule.died(await garden.run(agent=True, rules=[strike], may_die=True), zh, f"the moment {en}")
        rule.state(garden, one["id"], "completed" if phase == "finished" else "active", phase)
        rule.stands_in(garden.tree(), one["id"], "processing")
        there = [name in garden.tree() for name in (records_of(one["id"])[-1], records_of(one["id"])[1])]
        due = [True, en != "before the result"]
        rule.same(
            there,
            due,
            Text("先有尝试，再有结果，再有状态", "the attempt comes first, then the result, then the state"),
        )
        before = garden.tree()
        rule.blocks(await garden.run(agent=True), reason, cause)
        rule.unchanged(before, garden.tree())
    await _carried_by_hand(lab)


async def _carried_by_hand(lab: SpineLab) -> None:
    """Move a finished task about by hand: state and queue disagree, and idle would be a lie."""
    rule = Rule("P15", "完成之后把任务文件搬走", "Carry the file of a completed task away")
    one = task(lab.draw)
    garden = await given_task(lab, one)
    rule.answers(await garden.run(), *COMPLETED)
    done = f"tasks/done/{one['id']}.json"
    for place, reason, cause in (
        (f"tasks/processing/{one['id']}.json", "finish_incomplete", "still_in_processing"),
        (f"tasks/closed/{one['id']}.json", "finish_incomplete", "wrong_queue"),
        ("../gone", "finish_incomplete", "task_missing"),
    ):
        await garden.do(("move", done, place))
        before = garden.tree()
        rule.blocks(await garden.run(agent=True), reason, cause)
        rule.unchanged(before, garden.tree())
        await garden.do(("move", place, done))
    rule.answers(await garden.run(), "idle", "inbox_empty", None, 0)


@check(
    "04-p15-left",
    rules=("P15", "P3"),
    dimension="durability",
    hint=Text(
        "被杀的写入者会留下临时文件：读取和列举都当它不存在；能继续的那次运行把自己形式的清掉，别人的不碰。",
        "A killed writer leaves a temporary file: reading and listing pass it over; a run that may go on removes those of "
        "our own form, and leaves others alone.",
    ),
)
async def what_a_killed_writer_left_is_swept(lab: SpineLab) -> None:
    """被杀的写入者留下的临时文件：不当作记录，继续时清掉；别的文件不碰

    A temporary file of a killed writer is no record, and is swept when a run goes on; other files are left alone
    """
    rule = Rule(
        "P15",
        "在记录旁边放下写了一半的临时文件，再恢复",
        "Leave half-written temporary files beside the records, then resume",
    )
    one = task(lab.draw)
    garden = await claimed(lab, rule, one)
    folder = f".loop/tasks/{one['id']}"
    ours = [
        f"{place}/.{name}.{lab.draw.getrandbits(64):016x}.tmp"
        for place, name in (
            (folder, "state.json"),
            (".loop/claims", f"{word(lab.draw)}.json"),
            (".loop/results", "x.json"),
        )
    ]
    others = [f"{folder}/notes.tmp", f".loop/claims/.{word(lab.draw)}.tmp", f"{folder}/state.json.tmp"]
    await garden.write(dict.fromkeys((*ours, *others), b'{"task_id": "'))
    rule.answers(await garden.run(), *COMPLETED)
    tree = garden.tree()
    rule.require(
        not set(ours) & set(tree),
        Text("自己的临时文件已清掉", "our own are gone"),
        Text("还在", "one is not"),
    )
    rule.require(
        set(others) <= set(tree), Text("别的文件还在", "the others are there"), Text("不在了", "one is gone")
    )


@check(
    "04-p16",
    rules=("P16",),
    dimension="resume",
    hint=Text(
        "关闭也按同样的顺序：事件、结果、状态、移动；原来的结果留在 before 里。改好的任务用新的 ID 再来。",
        "Closing keeps the same order: event, result, state, move; the earlier result stays in `before`. A corrected task "
        "comes under a new id.",
    ),
)
async def a_person_can_close_a_task(lab: SpineLab) -> None:
    """人的出口：关闭留下记录，改好的任务用新 ID 再来

    A person's way out: closing leaves its records, and a corrected task comes in under a new id
    """
    rule = Rule("P16", "关闭一个被拒绝的任务，再交上新任务", "Close a rejected task, then hand in a new one")
    one, why, other = task(lab.draw), word(lab.draw), task(lab.draw)
    garden = await given_task(lab, one)
    await garden.write({"../orders/second": "exit 1"})
    await rejects(rule, garden, await garden.run(), one["id"], reason="verification_failed", cause="second")
    name = f".loop/results/{one['id']}.json"
    earlier = rule.record(garden, name)
    rule.answers(await garden.close(one["id"], why), "closed", "closed_by_person", None, 0)
    rule.state(garden, one["id"], "closed", "finished")
    rule.stands_in(garden.tree(), one["id"], "closed")
    result = rule.record(garden, name, ("decision", "reason", "task_id", "text", "decided_at", "before"))
    rule.same(
        [result["decision"], result["text"], result["before"]],
        ["closed", why, earlier],
        Text("结果说明为什么关闭，并留着原来的", "the result says why, and keeps the earlier one"),
    )
    last = rule.events(garden, one["id"])[-1]
    rule.same(
        [last["type"], last.get("text")],
        ["closed", why],
        Text("最后的事件是 closed", "the last event is closed"),
    )
    await garden.do(("git", "checkout", "-q", SOURCE), ("delete", "../orders/second"))
    await garden.write({f"tasks/inbox/{other['id']}.json": other})
    rule.answers(await garden.run(), *COMPLETED)
    rule.answers(await garden.run(), "idle", "inbox_empty", None, 0)
