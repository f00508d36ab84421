"""The lab's own ten control-plane tests, judged from outside: eight guards of lessons 2 and 3, two of this lesson.

Titles and order are those of `loop_tests/`, so that a learner knows them again. The eight stand on code that is given;
they are asked with the student's modules loaded, since importing those must not change what was there before.
"""
# ruff: noqa: D400 - a docstring is the learner's title

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from grader.suites.check import Text
from grader.suites.lesson_04 import scenarios
from grader.suites.lesson_04.drawn import shuffled, task, value, word
from grader.suites.lesson_04.judge import Rule, contract_of, digest, given_task
from grader.suites.lesson_04.scenarios import source_of
from grader.suites.lesson_04.suite import check

if TYPE_CHECKING:
    from random import Random

    from grader.spine import SpineLab

AS_GIVEN = Text("与第 2、3 课的代码给出的相同", "it is what the code of lessons 2 and 3 gives")
OTHERWISE = Text("不同", "it is not")


def loop_test(name: str) -> Text:
    """Give the hint that sends a learner to the lab's own test."""
    command = f"python -m unittest discover -s loop_tests -k {name} -v"
    return Text(f"在实验文件夹里单独运行它：{command}", f"Run it alone, in the lab folder: {command}")


@check(
    "04-01",
    rules=("P5",),
    dimension="evidence",
    required=True,
    guard=True,
    hint=loop_test("test_a_valid_contract_has_a_stable_digest"),
)
async def contract_has_a_stable_digest(lab: SpineLab) -> None:
    """合法契约能读入，摘要稳定

    a valid contract loads, with a stable digest
    """
    rule = Rule("P5", "两次读入随机写成的同一份契约", "Load one contract twice, drawn and laid out at random")
    garden = await lab.lay()
    contract = contract_of(garden) | {
        "max_lines": lab.draw.randrange(50, 900),
        "allowed_paths": [f"{word(lab.draw)}/"],
    }
    texts = [json.dumps(shuffled(lab.draw, contract), indent=indent) for indent in (None, 3)]
    told = await rule.gives(garden.ask(source_of(scenarios.load_contracts), texts))
    due = []
    for text in texts:
        loaded = [
            "sha256:" + hashlib.sha256(text.encode()).hexdigest(),
            contract["allowed_paths"],
            contract["max_lines"],
        ]
        due += [{"gave": loaded}] * 2
    rule.require(told == due, AS_GIVEN, OTHERWISE)


@check(
    "04-02",
    rules=("P13",),
    dimension="evidence",
    required=True,
    guard=True,
    hint=loop_test("test_a_malformed_contract_is_refused"),
)
async def malformed_contract_is_refused(lab: SpineLab) -> None:
    """残缺的契约被拒绝：未知字段、缺字段、非正预算

    unknown key, missing field, budget that is not positive
    """
    rule = Rule("P13", "读入三份残缺的契约", "Load three malformed contracts")
    garden = await lab.lay()
    whole = contract_of(garden)
    budget = lab.draw.choice(("max_files", "max_lines", "agent_seconds", "command_seconds"))
    broken = {
        "unknown_field": whole | {word(lab.draw): 3},
        "missing_field": {name: content for name, content in whole.items() if name != budget},
        "bad_value": whole | {budget: -lab.draw.randrange(1000)},
    }
    told = await rule.gives(
        garden.ask(
            source_of(scenarios.load_contracts), [json.dumps(contract) for contract in broken.values()]
        )
    )
    found = [(ending.get("cause"), ending.get("exit")) for ending in told[::2]]
    rule.require(found == [(cause, 2) for cause in broken], AS_GIVEN, OTHERWISE)


@check(
    "04-03",
    rules=("P9",),
    dimension="claim",
    required=True,
    guard=True,
    hint=loop_test("test_ids_and_file_names_have_limits"),
)
async def ids_and_file_names_have_limits(lab: SpineLab) -> None:
    """任务 ID 与文件名有限制

    task ids and file names have limits
    """
    rule = Rule(
        "P9", "检查一批合法与不合法的任务 ID", "Check task ids that are allowed and some that are not"
    )
    stem = word(lab.draw)
    good = ["a", stem, "A_1", stem.ljust(80, "x")]
    bad = [
        "",
        f"../{stem}",
        f"{stem}/b",
        f"{stem}.b",
        f"{stem}é",
        f"{stem}\n",
        stem.ljust(81, "x"),
        "con",
        "LPT1",
    ]
    garden = await lab.lay()
    await garden.write({f"tasks/inbox/{stem}.json": task(lab.draw)})
    told = await rule.gives(
        garden.ask(source_of(scenarios.judge_ids), {"ids": [*good, *bad], "file": f"{stem}.json"})
    )
    rule.require(told[0] == [True] * len(good) + [False] * len(bad), AS_GIVEN, OTHERWISE)
    rule.require(told[1].get("cause") == "bad_id", AS_GIVEN, OTHERWISE)


@check(
    "04-04",
    rules=("P13",),
    dimension="claim",
    required=True,
    guard=True,
    hint=loop_test("test_the_inbox_has_an_order_and_an_end"),
)
async def inbox_has_an_order_and_an_end(lab: SpineLab) -> None:
    """待办箱有顺序，空了就闲着

    the inbox has an order, and an empty one means idle
    """
    rule = Rule(
        "P13", "让一轮遇到空的待办箱，再放进几个任务", "Run a round on an empty inbox, then put tasks into it"
    )
    garden = await lab.lay()
    ran = await garden.run()
    rule.answers(ran, "idle", "inbox_empty", None, 0)
    tasks = [task(lab.draw) for _ in range(4)]
    files = {f"tasks/inbox/{found['id']}.json": found for found in tasks}
    await garden.write({**files, f"tasks/inbox/.{word(lab.draw)}.json": "{}", "tasks/inbox/notes.json/x": ""})
    told = await rule.gives(garden.ask(source_of(scenarios.list_inbox)))
    rule.require(told == sorted(f"{found['id']}.json" for found in tasks), AS_GIVEN, OTHERWISE)


def _agent_files(draw: Random) -> dict[str, str]:
    return {f"src/{word(draw)}.mjs": "\n" * 20 for _ in range(3)}


@check(
    "04-05",
    rules=("P11",),
    dimension="evidence",
    required=True,
    guard=True,
    hint=loop_test("test_a_change_outside_the_allowed_paths_is_flagged"),
)
async def outside_the_allowed_paths(lab: SpineLab) -> None:
    """允许路径之外的改动会被标出，未跟踪的也算

    a change outside the allowed paths is flagged, untracked included
    """
    rule = Rule(
        "P11", "像 Agent 那样改动允许的、受保护的和越界的文件", "Change allowed, protected and foreign files"
    )
    one = task(lab.draw)
    garden = await given_task(lab, one)
    stray = f"a-{word(lab.draw)}.txt"
    files = {f"src/{word(lab.draw)}.mjs": "// new\n", "test/search.test.mjs": "\n", stray: "new\n"}
    told = await rule.gives(
        garden.ask(source_of(scenarios.boundary_after), {"file": f"{one['id']}.json", "files": files})
    )
    due: list[Any] = [["outside_allowed_paths", stray], ["protected_path", "test/search.test.mjs"]]
    rule.require(told == [*due, ["too_many_files", None]], AS_GIVEN, OTHERWISE)


@check(
    "04-06",
    rules=("P11",),
    dimension="evidence",
    required=True,
    guard=True,
    hint=loop_test("test_too_many_lines_or_files_are_flagged"),
)
async def too_many_lines_or_files(lab: SpineLab) -> None:
    """超出行数或文件数会被标出

    too many lines or files are flagged
    """
    rule = Rule(
        "P11", "像 Agent 那样写三个各 20 行的新文件", "Write three new files of 20 lines, as an agent would"
    )
    one = task(lab.draw)
    garden = await given_task(lab, one)
    given = {"file": f"{one['id']}.json", "files": _agent_files(lab.draw)}
    told = await rule.gives(garden.ask(source_of(scenarios.boundary_after), given))
    rule.require(told == [["too_many_files", None], ["too_many_lines", None]], AS_GIVEN, OTHERWISE)


@check(
    "04-07",
    rules=("P12",),
    dimension="evidence",
    required=True,
    guard=True,
    hint=loop_test("test_verification_keeps_exit_code_and_output"),
)
async def verification_keeps_exit_code_and_output(lab: SpineLab) -> None:
    """验证保留退出码和输出

    verification keeps exit code and output
    """
    rule = Rule("P12", "用一条会失败的命令验证", "Verify with a command that fails")
    one, name, said, code = task(lab.draw), word(lab.draw), word(lab.draw), lab.draw.randrange(3, 100)
    garden = await given_task(lab, one)
    argv = ["sh", "-c", f"echo {said}; exit {code}"]
    contract = contract_of(garden) | {"verification": [{"name": name, "argv": argv, "min_tests": 0}]}
    await garden.write({"loop.contract.json": contract})
    told = await rule.gives(garden.ask(source_of(scenarios.verify_once), f"{one['id']}.json"))
    rule.require(told == [[name, code, f"{said}\n", False]], AS_GIVEN, OTHERWISE)


@check(
    "04-08",
    rules=("P10",),
    dimension="evidence",
    required=True,
    guard=True,
    hint=loop_test("test_what_the_agent_says_does_not_decide"),
)
async def what_the_agent_says_does_not_decide(lab: SpineLab) -> None:
    """Agent 的说法不算数：命令失败就不算完成

    what the agent says does not decide: a failing command means not completed
    """
    rule = Rule(
        "P10", "Agent 说做完了，验证命令却失败", "The agent says that it is done, and a command fails"
    )
    one = task(lab.draw)
    garden = await given_task(lab, one)
    await garden.write({"../orders/second": f"exit {lab.draw.randrange(1, 100)}"})
    told = await rule.gives(garden.ask(source_of(scenarios.claim_success), f"// {word(lab.draw)}\n"))
    rule.require(told == ["rejected", "verification_failed", "second"], AS_GIVEN, OTHERWISE)
    rule.stands_in(garden.tree(), one["id"], "processing")


@check(
    "04-09",
    rules=("P5",),
    dimension="claim",
    required=True,
    hint=Text(
        "先把值写成一种确定的文本：键排序、分隔符不带空格、UTF-8，再取 SHA-256。",
        "Write the value in one definite form first: keys sorted, separators without spaces, UTF-8; then SHA-256.",
    ),
)
async def key_order_does_not_change_the_digest(lab: SpineLab) -> None:
    """键的顺序不改变摘要

    key order does not change the digest
    """
    rule = Rule(
        "P5",
        "对键序、空白不同的同一个值取摘要，再改动一个值",
        "Digest one value in several layouts, then change a value",
    )
    one = value(lab.draw)
    other = one | {"count": one["count"] + 1}
    layouts = [json.dumps(one), json.dumps(shuffled(lab.draw, one), indent=2), json.dumps(other)]
    garden = await lab.lay("bare")
    first, second, third = await rule.gives(garden.ask(source_of(scenarios.digests), layouts))
    rule.require(
        first == second == digest(one),
        Text("同一个值，同一个摘要，按规范算出", "one value, one digest, computed as the rule says"),
        Text("不同", "it is not"),
    )
    rule.require(
        third == digest(other),
        Text("值变了，摘要也变", "another value has another digest"),
        Text("不是", "it has not"),
    )


@check(
    "04-10",
    rules=("P3",),
    dimension="durability",
    required=True,
    hint=Text(
        "先写进同一文件夹里自己的临时文件，刷盘，再用 os.replace 换上去；任何情况下都不留下临时文件。",
        "Write a temporary file of your own in the same folder, flush it, then os.replace; leave none behind, ever.",
    ),
)
async def updated_state_file_is_whole_and_alone(lab: SpineLab) -> None:
    """更新后的状态文件是完整 JSON，旁边没有临时文件

    an updated state file is whole JSON, with no temporary file beside it
    """
    rule = Rule(
        "P3",
        "写一个状态文件若干次，每次都查看文件夹",
        "Save a state file some times, and look at its folder each time",
    )
    garden = await lab.lay("bare")
    saved = {
        folder: [value(lab.draw) for _ in range(times)]
        for times, folder in enumerate(("s1", "s2", "s3"), start=1)
    }
    await garden.do(*(("folder", folder) for folder in saved))
    steps = [(f"{folder}/state.json", one) for folder, values in saved.items() for one in values]
    told = await rule.gives(garden.ask(source_of(scenarios.save), steps))
    rule.require(
        all("gave" in ending for ending in told),
        Text("写入成功", "saving succeeds"),
        Text("报错", "it fails"),
    )
    tree = garden.tree()
    for folder, values in saved.items():
        found = [name for name in tree if name.startswith(f"{folder}/")]
        rule.require(
            found == [f"{folder}/state.json"],
            Text("文件夹里只有状态文件", "the state file is alone in its folder"),
            Text(f"有 {len(found)} 个文件", f"{len(found)} files"),
        )
        rule.same(
            rule.record(garden, f"{folder}/state.json"),
            values[-1],
            Text("内容是最后写的值", "it holds the last value"),
        )
