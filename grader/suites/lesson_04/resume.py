"""Going on where another process ended, and knowing when not to: P6, P7, a live interrupt and resume."""
# ruff: noqa: D400 - a docstring is the learner's title

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from grader.spine import KEEP
from grader.spine_template import TASK
from grader.suites.check import Text
from grader.suites.lesson_04.claim import ROUND
from grader.suites.lesson_04.drawn import ACCEPTANCE, event, shuffled, task, word
from grader.suites.lesson_04.judge import (
    AFTER,
    BEFORE,
    CLAIMED_EVENTS,
    COMPLETED,
    INFORMATION,
    INTERRUPTED,
    SOURCE,
    Rule,
    claimed,
    contract_of,
    given_task,
    head_of,
    moved,
    records_of,
)
from grader.suites.lesson_04.suite import check

if TYPE_CHECKING:
    from random import Random

    from grader.spine import Garden, SpineLab

RESUMED = [*CLAIMED_EVENTS, "resumed", *ROUND[2:]]
NOTHING_DONE = Text("Agent 没有启动，源文件没有变", "no agent was started, the source is as it was")


Deeds = list[tuple[str, ...]]


class Tampering(NamedTuple):
    """What is done to a claimed lab, the cause that is due, and how it is put back."""

    zh: str
    en: str
    cause: str
    deeds: Deeds
    undo: Deeds
    line: int | None = None


async def refuses(garden: Garden, rule_id: str, cases: list[Tampering]) -> None:
    """Require for each: `unsafe_resume` with its cause, nothing changed, no agent started."""
    for case in cases:
        rule = Rule(rule_id, f"领取之后{case.zh}，再运行", f"After the claim, {case.en}; run again")
        await garden.do(*case.deeds)
        before = garden.tree()
        answer = rule.blocks(await garden.run(agent=True), "unsafe_resume", case.cause)
        rule.unchanged(before, garden.tree())
        rule.require(garden.starts("agent") == 0, NOTHING_DONE, Text("Agent 启动了", "an agent was started"))
        if case.line is not None:
            rule.same(
                answer.get("line"), case.line, Text(f"指出第 {case.line} 行", f"it names line {case.line}")
            )
        await garden.do(*case.undo)


def replaced(name: str, raw: bytes, new: bytes | str | dict[str, Any]) -> tuple[Deeds, Deeds]:
    """Give the deeds that put other content into a file, and that put the old one back."""
    content = json.dumps(new, ensure_ascii=False).encode() if isinstance(new, dict) else new
    content = content.encode() if isinstance(content, str) else content
    return [("write", name, content.hex())], [("write", name, raw.hex())]


async def resumes(rule: Rule, garden: Garden, task_id: str) -> None:
    """Require that the lab, put back as it was, goes on and is completed: nothing else stood in the way."""
    rule.answers(await garden.run(), *COMPLETED)
    rule.event_types(garden, task_id, RESUMED)


@check(
    "04-live",
    rules=("P6", "P13", "P14"),
    dimension="resume",
    core=True,
    hint=Text(
        "照课文做一遍：先用 --simulate-interruption-after-claim，再不带参数运行；看 .loop 和 git diff，不看打印的话。",
        "Do as the lesson does: run with --simulate-interruption-after-claim, then without; look at .loop and git diff, "
        "not at what is printed.",
    ),
)
async def a_live_interrupt_and_resume(lab: SpineLab) -> None:
    """真实的中断与恢复：两个进程，一次领取，一次 Agent，Node 亲自验证

    A live interrupt and resume: two processes, one claim, one agent, verified by Node itself
    """
    rule = Rule("P6", "用课程自己的命令中断，再恢复", "Interrupt, then resume, with the lesson's own command")
    garden, one = await lab.lay("lesson"), task(lab.draw, id=word(lab.draw))
    await _draw_books(garden, lab.draw, one)
    before, source = garden.tree(), garden.raw(SOURCE)
    ran = await garden.run("--simulate-interruption-after-claim", real=True)
    answer = rule.answers(ran, *INTERRUPTED)
    checkpoint = f".loop/tasks/{one['id']}/state.json"
    due = {
        "decision": INTERRUPTED[0],
        "reason": INTERRUPTED[1],
        "task_id": one["id"],
        "checkpoint": checkpoint,
    }
    rule.same(answer, due, Text("回答恰好是那四个字段", "the answer has exactly the four fields"))
    rule.state(garden, one["id"], "active", "claimed")
    rule.event_types(garden, one["id"], CLAIMED_EVENTS)
    claim, _, facts, state, events, _ = records = records_of(one["id"])
    queues = moved(one["id"], "inbox", "processing")
    rule.changed_only(before, garden.tree(), [claim, facts, state, events, *queues])

    answer = rule.answers(await garden.run(real=True), *COMPLETED)
    rule.state(garden, one["id"], "completed", "finished")
    rule.event_types(garden, one["id"], RESUMED)
    rule.changed_only(before, garden.tree(), [*records, *moved(one["id"], "inbox", "done"), SOURCE])
    rule.require(
        garden.raw(SOURCE) == source.replace(BEFORE, AFTER),
        Text("源文件恰好改了那一处", "the source was changed in that one place"),
        Text("不是", "it was not"),
    )
    _judge_verification(rule, garden, one["id"], answer)


async def _draw_books(garden: Garden, draw: Random, one: dict[str, Any]) -> None:
    """Put other books on the shelf, another acceptance test and another task in place of the lesson's, and commit."""
    title, first, last = word(draw), word(draw).title(), word(draw).title()
    books = garden.raw("src/books.mjs").replace(
        b"];", f'  {{ title: "{title}", author: "{first} {last}" }},\n];'.encode()
    )
    await garden.write({
        "src/books.mjs": books,
        ACCEPTANCE: 'import assert from "node:assert/strict";\nimport test from "node:test";\n\n'
        'import { searchByAuthor } from "../src/search.mjs";\n\n'
        + "".join(
            f'test("{name}", () => {{\n'
            f'  assert.deepEqual(searchByAuthor("{query}").map((book) => book.title), ["{title}"]);\n}});\n'
            for name, query in (("a comma", f"{first}，{last}"), ("a stop", f"{first.upper()}. {last}"))
        ),
        f"tasks/inbox/{one['id']}.json": one,
    })  # fmt: skip
    await garden.do(
        ("delete", f"tasks/inbox/{TASK}.json"), ("git", "add", "-A"), ("git", "commit", "-qm", "x")
    )


def _judge_verification(rule: Rule, garden: Garden, task_id: str, answer: dict[str, Any]) -> None:
    """Require Node's own words in the evidence: how many tests ran, and that all three commands passed."""
    result = rule.record(garden, f".loop/results/{task_id}.json")
    rule.same(result, answer, Text("结果就是打印的裁决", "the result is the decision as printed"))
    attempt = rule.record(garden, f".loop/tasks/{task_id}/attempts/round-001.json")
    told = [
        (found["name"], found["exit_code"], found["passed"], found["tests"])
        for found in attempt["evidence"]["commands"]
    ]
    due = [("acceptance", 0, True, 2), ("tests", 0, True, 5), ("check", 0, True, None)]
    rule.same(
        told,
        due,
        Text(
            "证据里有三条命令的退出码和测试数",
            "the evidence has exit code and number of tests of three commands",
        ),
    )
    changed = [answer["round"], answer["resumed"], attempt["resumed"], answer["changes"]]
    rule.same(
        changed,
        [1, True, True, {"files": [SOURCE], "lines": 2}],
        Text("第 1 轮，恢复而来，两行改动", "round 1, resumed, two lines changed"),
    )


@check(
    "04-p06-records",
    rules=("P6", "P1"),
    dimension="resume",
    core=True,
    hint=Text(
        "claim、facts、state 三样都在、都合格、彼此一致，才谈得上恢复；损坏的状态绝不当作新任务。",
        "Resume only when claim, facts and state are all there, all sound, and agree; a damaged state is never a new task.",
    ),
)
async def a_checkpoint_with_a_flaw_is_not_resumed(lab: SpineLab) -> None:
    """检查点缺一样、坏一样、不一致：unsafe_resume，并说出是哪一样

    A checkpoint that lacks, breaks or contradicts a record is not resumed, and the cause says which
    """
    rule = Rule("P6", "把一切恢复原状再运行", "Put everything back, and run")
    one = task(lab.draw)
    garden = await claimed(lab, rule, one)
    claim, _, facts, state, _, _ = records_of(one["id"])
    rule.record(garden, facts)
    cases = []
    for kind, name in (("claim", claim), ("facts", facts), ("state", state)):
        raw = garden.raw(name)
        delete: Deeds = [("delete", name)]
        cases.append(
            Tampering(
                f"删掉 {kind}", f"delete the {kind}", f"{kind}_missing", delete, [("write", name, raw.hex())]
            )
        )
        for zh, en, new in _damaged(lab.draw, raw, crashed=kind == "state"):
            cases.append(
                Tampering(f"把 {kind} {zh}", f"{en} the {kind}", f"{kind}_invalid", *replaced(name, raw, new))
            )
    raw = garden.raw(facts)
    for other in ({"head": "0" * 40}, {"task": one | {"title": word(lab.draw)}}):
        new = json.loads(raw) | other
        cases.append(
            Tampering("改动 facts", "change the facts", "facts_disagree", *replaced(facts, raw, new))
        )
    await refuses(garden, "P6", cases)
    await resumes(rule, garden, one["id"])


def _damaged(draw: Random, raw: bytes, *, crashed: bool) -> list[tuple[str, str, Any]]:
    """List ways in which a record can be no record: two that are drawn, after those that crashes are known to leave."""
    value = json.loads(raw)
    known = [
        ("全部变成 NUL", "fill with NUL", b"\0" * len(raw)),
        ("截成空文件", "empty", b""),
    ]
    ways = [
        ("截掉一半", "cut in half", raw[: len(raw) // 2]),
        ("写成有重复键", "put a key twice into", raw.replace(b"{", b'{"task_id": "x", ', 1)),
        ("写成列表", "make a list of", b"[" + raw + b"]"),
        ("加上一个字段", "add a field to", value | {word(draw): 1}),
        ("去掉一个字段", "take a field from", dict(list(value.items())[:-1])),
    ]
    return [*(known if crashed else []), *draw.sample(ways, 2)]


@check(
    "04-p06-ground",
    rules=("P6",),
    dimension="resume",
    core=True,
    hint=Text(
        "恢复前比较：任务摘要、契约摘要、文件名、HEAD、工作树、队列。每一项都有自己的 cause；只改排版不算改动。",
        "Before resuming compare task digest, contract digest, file name, HEAD, tree and queues, each with its own "
        "cause; another layout is no change.",
    ),
)
async def changed_ground_is_not_resumed(lab: SpineLab) -> None:
    """任务、契约、HEAD、工作树、队列变了：unsafe_resume，并说出是哪一样；只换排版则照常恢复

    A changed task, contract, HEAD, tree or queue is not resumed, and the cause says which; another layout is no change
    """
    rule = Rule("P6", "任务文件只换键序和排版", "Give the task file another key order and layout")
    one = task(lab.draw)
    garden = await claimed(lab, rule, one)
    place, contract = f"tasks/processing/{one['id']}.json", "loop.contract.json"
    raw, stray = garden.raw(place), f"src/{word(lab.draw)}.mjs"
    other = f"tasks/processing/{word(lab.draw)}.json"
    wider = contract_of(garden) | {"max_lines": lab.draw.randrange(900, 1000)}
    back = ("git", "reset", "-q", "--soft", head_of(garden))
    cases = [
        Tampering("改动任务", "edit the task", "task_changed", *replaced(place, raw, one | {"title": word(lab.draw)})),
        Tampering("改动契约", "edit the contract", "contract_changed", *replaced(contract, garden.raw(contract), wider)),
        Tampering("移动 HEAD", "move HEAD", "head_moved", [("git", "commit", "-q", "--allow-empty", "-m", "x")], [back]),
        Tampering("改动源文件", "edit the source", "dirty_tree", *replaced(SOURCE, garden.raw(SOURCE), word(lab.draw))),
        Tampering("放一个新文件", "leave a new file", "dirty_tree", [("write", stray, "2f2f")], [("delete", stray)]),
        Tampering("改任务文件名", "rename its file", "file_name_changed", [("move", place, other)], [("move", other, place)]),
        Tampering("再放一个任务", "put a second task there", "several_processing", [("write", other, raw.hex())], [("delete", other)]),
        *(
            Tampering(f"在 {queue} 也放一份", f"put a copy into {queue}", "task_duplicated", [("write", copy, raw.hex())], [("delete", copy)])
            for queue in ("inbox", "done")
            for copy in [f"tasks/{queue}/{one['id']}.json"]
        ),
    ]  # fmt: skip
    await refuses(garden, "P6", cases)
    await _without_repository(garden)
    await garden.write({place: json.dumps(shuffled(lab.draw, one), indent=7)})
    await resumes(rule, garden, one["id"])


async def _without_repository(garden: Garden) -> None:
    """Take the lab's own repository away: one further up is not taken for it."""
    rule = Rule(
        "P6",
        "领取之后拿走实验自己的 .git，再运行",
        "After the claim, take the lab's own .git away; run again",
    )
    await garden.do(("move", ".git", "../git"))
    before = garden.tree()
    rule.blocks(await garden.run(agent=True), "environment", "repository_missing")
    rule.unchanged(before, garden.tree())
    await garden.do(("move", "../git", ".git"))


@check(
    "04-p06-events",
    rules=("P6", "P4"),
    dimension="resume",
    core=True,
    hint=Text(
        "日志要读得懂、编号连续，并且正好讲到“已领取”；比状态多一步也不行。撕裂的尾部是例外：它没有完成，可以补好。",
        "The log must be readable, numbered without a gap, and tell exactly of a claimed task, not one step more. A torn "
        "tail is the exception: it never happened, and is repaired.",
    ),
)
async def a_log_that_disagrees_is_not_resumed(lab: SpineLab) -> None:
    """事件日志缺失、损坏、与状态不符：unsafe_resume；撕裂的尾部则补好再继续

    A log that is missing, corrupt or at odds with the state is not resumed; a torn tail is repaired
    """
    rule = Rule("P6", "给日志加上撕裂的尾部再运行", "Give the log a torn tail, and run")
    one = task(lab.draw)
    garden = await claimed(lab, rule, one)
    name, attempt = f".loop/tasks/{one['id']}/events.jsonl", records_of(one["id"])[-1]
    rule.event_types(garden, one["id"], CLAIMED_EVENTS)
    raw = garden.raw(name)
    lines = raw.splitlines(keepends=True)
    later = event(4, "agent_started", round=1, agent="simulated")
    cases = [
        Tampering("删掉日志", "delete the log", "events_missing", [("delete", name)], [("write", name, raw.hex())]),
        Tampering("弄坏第 2 行", "break line 2", "events_corrupt", *replaced(name, raw, lines[0] + b'{"x\n' + lines[2]), 2),
        Tampering("让编号重复", "number a line twice", "events_corrupt", *replaced(name, raw, raw + lines[1]), 4),
        Tampering("让日志多一步", "let the log be a step ahead", "events_disagree", *replaced(name, raw, raw + later)),
        Tampering("让日志少一步", "let the log lack a step", "events_disagree", *replaced(name, raw, lines[0])),
        Tampering("放一次尝试", "leave an attempt", "attempts_disagree", [("write", attempt, "7b7d")], [("delete", attempt)]),
    ]  # fmt: skip
    await refuses(garden, "P6", cases)
    torn = event(4, "resumed", text="撕裂🧪")[: -lab.draw.randrange(2, 30)]
    await garden.do(("write", name, (raw + torn).hex()))
    await resumes(rule, garden, one["id"])
    rule.torn_is_kept(garden, name, len(raw), torn)


@check(
    "04-p06-moment",
    rules=("P6",),
    dimension="resume",
    core=True,
    hint=Text(
        "启动 Agent 的那一刻再检查一遍：从检查到启动之间，别人可能提交、编辑或移动了什么。",
        "Check again at the moment the agent starts: in between, somebody may have committed, edited or moved something.",
    ),
)
async def the_ground_is_checked_when_the_agent_starts(lab: SpineLab) -> None:
    """检查之后、启动之前 HEAD 移动了：Agent 不会在另一个提交上开始

    When HEAD moves between the check and the start, no agent begins on another commit
    """
    rule = Rule(
        "P6", "运行器看过 Git 之后，马上移动 HEAD", "Move HEAD right after the runner has looked at Git"
    )
    one = task(lab.draw)
    garden = await given_task(lab, one)
    await garden.write({"../bin/git": _GIT_THEN_COMMIT})
    path = "../bin:" + "/usr/local/bin:/usr/bin:/bin"
    await garden.do(("mode", "../bin/git", "755"))
    before, old = garden.tree(), head_of(garden)
    ran = await garden.run(agent=True, env={"PATH": path})
    moved_on = Text("HEAD 在第一次查看之后移动", "HEAD moves after the first look")
    rule.require(head_of(garden) != old, moved_on, Text("运行器没有看 Git", "the runner never looks at Git"))
    claim = rule.record(garden, f".loop/claims/{one['id']}.json")
    if claim["head"] == head_of(garden):  # it looked again before it claimed: then all is well
        return
    rule.require(garden.starts("agent") == 0, NOTHING_DONE, Text("Agent 启动了", "an agent was started"))
    rule.blocks(ran, "unsafe_resume", "head_moved")
    rule.same(before[SOURCE], garden.tree()[SOURCE], NOTHING_DONE)


_GIT_THEN_COMMIT = """\
#!/bin/sh
PATH=${PATH#*:}
if mkdir ../orders/looked 2>/dev/null; then
  git "$@"
  code=$?
  git commit -q --allow-empty -m "meanwhile" > /dev/null 2>&1
  exit $code
fi
exec git "$@"
"""


@check(
    "04-p07-phases",
    rules=("P7",),
    dimension="resume",
    core=True,
    hint=Text(
        "只有 active + claimed 可以继续。agent_running 表示 Agent 可能已经做过事：不能再做一遍，只能请人看。",
        "Only active with claimed goes on. agent_running means that the agent may have acted: it is never replayed, a "
        "person has to look.",
    ),
)
async def a_phase_that_may_have_begun_is_never_replayed(lab: SpineLab) -> None:
    """claiming、agent_running、agent_finished：绝不重放，有没有结果文件都一样

    claiming, agent_running and agent_finished are never replayed, with or without a result
    """
    rule = Rule("P7", "把状态恢复为 claimed 再运行", "Put the state back to claimed, and run")
    one = task(lab.draw)
    garden = await claimed(lab, rule, one)
    _, result, _, state, events, _ = records_of(one["id"])
    rule.event_types(garden, one["id"], CLAIMED_EVENTS)
    raw, log = garden.raw(state), garden.raw(events)
    started = log + event(4, "agent_started", round=1, agent="simulated")
    finished = started + event(5, "agent_finished", status="changed")
    completed = {"decision": "completed", "reason": "verified", "task_id": one["id"]}
    cases = [
        ("claiming", log[: log.index(b"\n") + 1], None),
        ("agent_running", started, None),
        ("agent_running", started, completed),
        ("agent_finished", finished, None),
    ]
    tampered = []
    for phase, lines, done in cases:
        other = json.loads(raw) | {"phase": phase}
        deeds: Deeds = [("write", state, json.dumps(other).encode().hex()), ("write", events, lines.hex())]
        undo: Deeds = [("write", state, raw.hex()), ("write", events, log.hex())]
        if done:
            deeds.append(("write", result, json.dumps(done).encode().hex()))
            undo.append(("delete", result))
        tampered.append(
            Tampering(f"把状态写成 {phase}", f"write {phase} into the state", f"phase_{phase}", deeds, undo)
        )
    await refuses(garden, "P7", tampered)
    await resumes(rule, garden, one["id"])


@check(
    "04-p07-killed",
    rules=("P7", "P2"),
    dimension="resume",
    core=True,
    hint=Text(
        "先把 agent_running 写到磁盘，再启动 Agent；这样不论运行器何时死去，下一次都看得见 Agent 可能已经开始。",
        "Write agent_running to disk before the agent is launched: however the runner dies, the next one sees that an "
        "agent may have begun.",
    ),
)
async def a_killed_runner_never_runs_the_agent_twice(lab: SpineLab) -> None:
    """运行器在 Agent 工作时被杀：Agent 至多运行一次；它还活着时，谁也进不来

    When the runner is killed while the agent works, the agent runs at most once; while it lives, nobody else enters
    """
    rule = Rule("P7", "Agent 杀死自己的运行器，然后继续活着", "The agent kills its runner and lives on")
    one = task(lab.draw)
    garden = await given_task(lab, one)
    await garden.do(("gate", "../orders/gate"))
    await garden.write({"../orders/agent": f"{KEEP}kill -9 $PPID\nread line < ../orders/gate\n"})
    rule.died(await garden.run(agent=True, may_die=True), "启动 Agent", "starting the agent")
    rule.state(garden, one["id"], "active", "agent_running", "../seen/agent-1.kept/.loop")
    rule.event_types(garden, one["id"], [*ROUND[:3]], "../seen/agent-1.kept/.loop")
    rule.blocks(await garden.run(agent=True), "runner_active", "lock_held")
    await garden.do(("open",), ("await_unlocked", INFORMATION))
    await _not_again(rule, garden, "phase_agent_running")

    rule = Rule("P7", "第一条验证命令杀死运行器", "The first verification command kills the runner")
    one = task(lab.draw)
    garden = await given_task(lab, one)
    await garden.write({"../orders/first": f"{KEEP}kill -9 $PPID\n"})
    rule.died(await garden.run(agent=True, may_die=True), "验证", "verifying")
    rule.state(garden, one["id"], "active", "agent_finished", "../seen/first-1.kept/.loop")
    await garden.do(("await_unlocked", INFORMATION))
    await _not_again(rule, garden, "phase_agent_finished")


async def _not_again(rule: Rule, garden: Garden, cause: str) -> None:
    before = garden.tree()
    rule.blocks(await garden.run(agent=True), "unsafe_resume", cause)
    rule.unchanged(before, garden.tree())
    rule.same(garden.starts("agent"), 1, Text("Agent 只启动过一次", "the agent was started once"))
