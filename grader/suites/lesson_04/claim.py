"""Taking a task, and never taking it twice: P1, P2, P8, P9."""
# ruff: noqa: D400 - a docstring is the learner's title

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from grader.rungs import python_command
from grader.spine import KEEP
from grader.suites.check import Text
from grader.suites.lesson_04 import scenarios
from grader.suites.lesson_04.drawn import task, value, word
from grader.suites.lesson_04.judge import (
    AFTER,
    BEFORE,
    COMPLETED,
    INFORMATION,
    SOURCE,
    Rule,
    claimed,
    contract_of,
    digest,
    given_task,
    head_of,
    moved,
    records_of,
)
from grader.suites.lesson_04.scenarios import source_of
from grader.suites.lesson_04.suite import check

if TYPE_CHECKING:
    from grader.spine import Garden, SpineLab

MOVES = ["rename", "replace", "link"]
WRITES = ["write", "writev", "pwrite", "pwritev"]
ROUND = [
    *("claim_started", "claim_completed", "agent_started"),
    *("agent_finished", "evidence_recorded", "decided"),
]
GROUND = ("task_digest", "contract_digest", "head")


@check(
    "04-p01",
    rules=("P1",),
    dimension="evidence",
    hint=Text(
        "docs/formats-spine.md 列出每个文件的每个字段；记录里的摘要和 HEAD 要与领取时读到的内容一致。",
        "docs/formats-spine.md lists every field of every file; digests and HEAD are those of what was read at the claim.",
    ),
)
async def a_round_leaves_all_its_records(lab: SpineLab) -> None:
    """一轮做完，该有的记录都在，字段恰好是格式规定的

    A finished round leaves every record, each with exactly the fields of its format
    """
    rule = Rule("P1", "让模拟 Agent 完整做一轮", "Do one whole round with the simulated agent")
    one = task(lab.draw)
    garden = await given_task(lab, one)
    before, source = garden.tree(), garden.raw(SOURCE)
    answer = rule.answers(await garden.run(), *COMPLETED)
    after = garden.tree()
    rule.changed_only(before, after, [*records_of(one["id"]), *moved(one["id"], "inbox", "done"), SOURCE])
    rule.require(
        garden.raw(SOURCE) == source.replace(BEFORE, AFTER),
        Text("源文件恰好改了那一处", "the source was changed in that one place"),
        Text("不是", "it was not"),
    )
    wrong = [name for name in records_of(one["id"]) if name in after and after[name].mode != 0o600]
    rule.require(
        not wrong, Text("记录的权限是 0600", "records have mode 0600"), Text("不是", "one has another")
    )
    _judge_claim(rule, garden, one)
    rule.state(garden, one["id"], "completed", "finished")
    rule.event_types(garden, one["id"], ROUND)
    starts = [garden.starts("first"), garden.starts("second")]
    rule.same(starts, [1, 1], Text("每条验证命令运行一次", "each verification command is run once"))
    _judge_attempt(rule, garden, one, answer)


def _judge_claim(rule: Rule, garden: Garden, one: dict[str, Any]) -> None:
    """Require that claim and facts say what was taken, and on which ground."""
    fields = ("task_id", "file_name", *GROUND, "claimed_at", "runner_pid")
    claim = rule.record(garden, f".loop/claims/{one['id']}.json", fields)
    facts = rule.record(
        garden, f".loop/tasks/{one['id']}/facts.json", ("task_id", "task", *GROUND, "recorded_at")
    )
    ground = [digest(one), digest(contract_of(garden)), head_of(garden)]
    what = Text(
        "摘要和 HEAD 与任务、契约、仓库相符", "digests and HEAD are those of task, contract and repository"
    )
    for found in (claim, facts):
        rule.same([found["task_id"], *(found[name] for name in GROUND)], [one["id"], *ground], what)
    rule.same(facts["task"], one, Text("facts 里有任务的全文", "the facts hold the whole task"))
    rule.same(
        claim["file_name"], f"{one['id']}.json", Text("claim 里有文件名", "the claim holds the file name")
    )


def _judge_attempt(rule: Rule, garden: Garden, one: dict[str, Any], answer: dict[str, Any]) -> None:
    """Require the agent's word and the evidence apart, and the printed answer as the result."""
    rule.same(
        rule.record(garden, f".loop/results/{one['id']}.json"),
        answer,
        Text("结果就是打印的裁决", "the result is the decision as printed"),
    )
    attempt = rule.record(
        garden,
        f".loop/tasks/{one['id']}/attempts/round-001.json",
        ("task_id", "round", "resumed", "started_at", "finished_at", "agent", "evidence"),
    )
    rule.same(
        [attempt["resumed"], sorted(attempt["agent"]), attempt["evidence"]["changes"]["files"]],
        [False, ["cause", "kind", "status", "summary"], [SOURCE]],
        Text(
            "尝试文件分开记录 Agent 的说法和证据", "the attempt keeps the agent's word and the evidence apart"
        ),
    )
    rule.same(
        [
            answer["round"],
            answer["resumed"],
            answer["agent"]["status"],
            answer["changes"],
            answer["boundary_errors"],
        ],
        [1, False, "changed", {"files": [SOURCE], "lines": 2}, []],
        Text("裁决里是第 1 轮、两行改动、没有越界", "the decision tells of round 1, two lines, no crossing"),
    )


@check(
    "04-p02-order",
    rules=("P2",),
    dimension="claim",
    core=True,
    hint=Text(
        "顺序是：facts、claim、事件、claiming、移动、事件、claimed。先移动再记录，崩溃后就没有东西能解释那个任务。",
        "The order: facts, claim, event, claiming, the move, event, claimed. Moved first, a crash leaves a task that "
        "nothing explains.",
    ),
)
async def the_claim_is_recorded_before_the_move(lab: SpineLab) -> None:
    """先有记录，后移动任务；移动之后才写 claimed

    The claim is recorded before the task moves, and claimed is written after it
    """
    moments = (
        ("tasks/processing/*", "none,kill", 1, "移动任务之前", "before the task moves", "inbox", 1),
        ("tasks/processing/*", "full,kill", 1, "移动任务之后", "after the task has moved", "processing", 1),
        ("state.json", "none,kill", 2, "写 claimed 之前", "before claimed is written", "processing", 2),
    )
    for match, do, nth, zh, en, queue, events in moments:
        rule = Rule("P2", f"在{zh}杀死运行器，再运行一次", f"Kill the runner right {en}, then run again")
        one = task(lab.draw)
        garden = await given_task(lab, one)
        strike = {"op": MOVES, "match": match, "nth": nth, "do": do}
        rule.died(await garden.run(rules=[strike], may_die=True), zh, f"the moment {en}")
        rule.stands_in(garden.tree(), one["id"], queue)
        _judge_claim(rule, garden, one)
        rule.state(garden, one["id"], "active", "claiming")
        rule.event_types(garden, one["id"], ROUND[:events])
        before = garden.tree()
        answer = rule.blocks(await garden.run(agent=True), "unsafe_resume", "phase_claiming")
        rule.unchanged(before, garden.tree())
        if events == 2:
            said = Text("回答里说出日志最后的事件", "the answer says what the last event is")
            rule.same(answer.get("last_event"), "claim_completed", said)


@check(
    "04-p02-claim",
    rules=("P2",),
    dimension="claim",
    core=True,
    hint=Text(
        "先写临时文件，再用 os.link 发布：link 遇到已有的名字会失败，内核只让一个赢，而且名字出现时内容已经完整。",
        "Write a temporary file, then publish it with os.link: it fails on a name that is there, the kernel lets one "
        "win, and the name appears with its content whole.",
    ),
)
async def a_claim_is_published_whole_and_once(lab: SpineLab) -> None:
    """发布 claim 是完整而独占的：再多人抢，也只有一个主人

    A claim is published whole and exclusively: of many that race, one owner
    """
    garden = await lab.lay("bare")
    await garden.do(("folder", "c"))
    rule = Rule(
        "P2", "两个线程同时走到发布的那一步", "Let two threads come to the step of publishing at once"
    )
    hold = {"op": "change", "match": "c/held.json", "do": "hold", "until": 2, "seconds": 1}
    values = [value(lab.draw) for _ in range(2)]
    given = {"call": "publish_json", "path": "c/held.json", "values": values}
    told = await rule.gives(garden.ask(source_of(scenarios.at_once), given, rules=[hold]))
    _one_winner(rule, garden, "c/held.json", ["gave" in ending for ending in told], values)

    rule = Rule("P2", "两个进程同时抢 20 个 claim", "Let two processes race for 20 claims")
    paths = [f"c/{word(lab.draw)}.json" for _ in range(20)]
    given = {"paths": paths, "values": values}
    winners = await rule.gives(garden.ask(source_of(scenarios.race_of_processes), given))
    for at, path in enumerate(paths):
        _one_winner(rule, garden, path, [at in won for won in winners], values)

    rule = Rule("P2", "对已有的 claim 再发布一次", "Publish once more over a claim that is there")
    again = await rule.gives(garden.ask(source_of(scenarios.publish), [[paths[0], value(lab.draw)]]))
    rule.raised(again[0], "FileExistsError")
    _one_winner(rule, garden, paths[0], [0 in won for won in winners], values)
    await _killed_while_publishing(lab, garden)


def _one_winner(rule: Rule, garden: Garden, path: str, won: list[bool], values: list[Any]) -> None:
    rule.require(
        won.count(True) == 1,
        Text("恰好一个成功", "exactly one succeeds"),
        Text(f"{won.count(True)} 个成功", f"{won.count(True)} do"),
    )
    content = rule.record(garden, path)
    rule.same(content, values[won.index(True)], Text("文件属于赢的那个", "the file is the winner's"))


async def _killed_while_publishing(lab: SpineLab, garden: Garden) -> None:
    """Require that a crash in the middle of writing leaves no claim, above all no empty one."""
    rule = Rule("P2", "在写 claim 写到一半时杀死进程", "Kill the process in the middle of writing a claim")
    await garden.do(("folder", "k"))
    strike = {"op": WRITES, "match": "k/*", "do": "half,kill"}
    given = [["k/claim.json", value(lab.draw)]]
    ran = await garden.asked(source_of(scenarios.publish), given, rules=[strike], may_die=True)
    rule.died(ran, "写文件", "writing the file")
    rule.require(
        "k/claim.json" not in garden.tree(),
        Text("没有写到一半的 claim", "no claim that is half written"),
        Text("名字已经在那里", "its name is there already"),
    )


@check(
    "04-p02-runner",
    rules=("P2", "P6"),
    dimension="claim",
    core=True,
    hint=Text(
        "整轮都持有 .loop/runner.lock；能不能进，只问内核，文件里写着什么、有多旧都不算数。",
        "Hold .loop/runner.lock for the whole round; ask the kernel alone: neither its content nor its age counts.",
    ),
)
async def one_runner_at_a_time(lab: SpineLab) -> None:
    """一次只有一个运行器：第二个得到 runner_active，什么都不动

    One runner at a time: a second one is told runner_active, and touches nothing
    """
    rule = Rule("P2", "Agent 工作时，再启动一个运行器", "Start another runner while the agent is at work")
    one = task(lab.draw)
    garden = await given_task(lab, one)
    await garden.write({
        INFORMATION: lab.draw.choice(('{"pid": 1, "since": "2001-01-01T00:00:00.000Z"}', "", "abc\0")),
        "../orders/agent": KEEP + f"{shlex.join(python_command())} tools/run_once.py > ../seen/second 2> ../seen/words\n"
        "echo $? > ../seen/code\n"
        "cp -R .loop tasks src ../seen\n"
        f"printf '// {word(lab.draw)}\\n' >> {SOURCE}\n",
    })  # fmt: skip
    rule.answers(await garden.run(agent=True), *COMPLETED)
    rule.same(garden.starts("agent"), 1, Text("Agent 启动一次", "the agent is started once"))
    due = Text("第二个运行器有回答", "the second runner answers")
    code, second = rule.content(garden, "../seen/code", due), rule.record(garden, "../seen/second")
    rule.same(
        [code.decode("utf-8", "replace").strip(), second.get("decision"), second.get("reason")],
        ["3", "blocked", "runner_active"],
        Text(
            "第二个得到 blocked / runner_active，退出码 3",
            "the second gets blocked / runner_active, exit code 3",
        ),
    )
    seen = {
        name: entry
        for name, entry in garden.look("seen").items()
        if name.startswith((".loop", "tasks", "src"))
    }
    rule.unchanged(garden.look("seen/agent-1.kept"), seen)


@check(
    "04-p08",
    rules=("P8",),
    dimension="claim",
    hint=Text(
        "领取之前先看：claim、facts、state、result 里有没有这个 ID，done 和 closed 里有没有它；有一样就停。",
        "Before claiming, look whether claim, facts, state or result know this id, or done or closed hold it; any stops it.",
    ),
)
async def an_id_is_never_used_twice(lab: SpineLab) -> None:
    """ID 不重用：只删 claim、把任务搬回待办箱，都会被发现

    Ids are never reused: deleting only the claim, or carrying the task back to the inbox, is caught
    """
    rule = Rule(
        "P8",
        "领取之后把任务搬回待办箱，逐样拿走记录",
        "Carry a claimed task back, and take its records away one by one",
    )
    one = task(lab.draw)
    garden = await claimed(lab, rule, one)
    paths = _record_paths(one["id"])
    raw = {path: b"{}" if kind == "result" else garden.raw(path) for kind, path in paths.items()}
    await garden.do(("move", f"tasks/processing/{one['id']}.json", f"tasks/inbox/{one['id']}.json"))
    for known in (
        ["claim", "facts", "state"],
        ["facts", "state"],
        ["state"],
        ["facts"],
        ["claim"],
        ["result"],
    ):
        await garden.do(*(("delete", path) for path in garden.tree() if path in raw))
        await garden.write({paths[kind]: raw[paths[kind]] for kind in known})
        await _already_known(rule, garden, known[0])
    await garden.do(("delete", paths["result"]))
    for queue in ("done", "closed"):
        await garden.write({f"tasks/{queue}/{one['id']}.json": one})
        await _already_known(rule, garden, queue)
        await garden.do(("delete", f"tasks/{queue}/{one['id']}.json"))
    other_case = f".loop/claims/{one['id'].upper()}.json"
    await garden.write({other_case: raw[paths["claim"]]})
    await _already_known(rule, garden, "claim")
    await garden.do(("delete", other_case), ("delete", f".loop/tasks/{one['id']}/events.jsonl"))
    rule.answers(await garden.run(), *COMPLETED)


def _record_paths(task_id: str) -> dict[str, str]:
    claim, result, facts, state, *_ = records_of(task_id)
    return {"claim": claim, "facts": facts, "state": state, "result": result}


async def _already_known(rule: Rule, garden: Garden, cause: str) -> None:
    before = garden.tree()
    rule.blocks(await garden.run(), "claim_exists", cause)
    rule.unchanged(before, garden.tree())


@check(
    "04-p09",
    rules=("P9", "P13"),
    dimension="claim",
    hint=Text(
        "文件名、id 和内容都先检查完，再动任何东西；不合格就拒绝，任务留在原处。",
        "Check file name, id and content before touching anything; what does not pass is refused and stays where it is.",
    ),
)
async def a_task_that_is_none_is_refused(lab: SpineLab) -> None:
    """不合格的任务文件：退出码 2，说明原因，任务留在原处

    A task file that is none is refused with exit code 2 and its cause, and stays where it is
    """
    rule = Rule(
        "P9",
        "完成一个 80 个字符的 ID，再依次放进不合格的任务文件",
        "Complete an id of 80 characters, then hand in files that are no tasks",
    )
    longest = task(lab.draw, id=word(lab.draw).ljust(80, "Z"))
    garden = await given_task(lab, longest)
    rule.answers(await garden.run(), *COMPLETED)
    for name, content, cause in _no_tasks(lab):
        path = f"tasks/inbox/{name}.json"
        await (garden.do(("link", path, "../done")) if content is None else garden.write({path: content}))
        before = garden.tree()
        rule.answers(await garden.run(), "refused", "bad_task", cause, 2)
        rule.unchanged(before, garden.tree())
        await garden.do(("delete", path))


def _no_tasks(lab: SpineLab) -> list[tuple[str, Any, str]]:
    """List stem, content (None: a symbolic link) and the cause due."""
    one = task(lab.draw)
    stem = one["id"]
    raw = [f'"{name}": "{word(lab.draw)}"' for name in ("title", "title", "goal")]
    return [
        (f"{stem} b", one, "bad_id"),
        (f"{stem}\n", one, "bad_id"),
        (f"{stem}é", one, "bad_id"),
        (stem.ljust(81, "x"), one, "bad_id"),
        ("Con", task(lab.draw, id="Con"), "bad_id"),
        (word(lab.draw), one, "bad_id"),
        (stem, None, "symbolic_link"),
        (stem, task(lab.draw, id=stem, goal="g" * 70_000), "too_large"),
        (stem, f'{{"id": "{stem}", {", ".join(raw)}, "acceptance": "{one["acceptance"]}"}}', "bad_json"),
        (stem, one | {"acceptance": "../x.test.mjs"}, "bad_value"),
        (stem, one | {word(lab.draw): 1}, "unknown_field"),
    ]
