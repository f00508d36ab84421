"""What decides: exit codes and the diff, never words. P10 to P14."""
# ruff: noqa: D400 - a docstring is the learner's title

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from grader.suites.check import Text
from grader.suites.lesson_04.drawn import task, word
from grader.suites.lesson_04.judge import (
    BEFORE,
    COMPLETED,
    INTERRUPTED,
    SOURCE,
    Rule,
    changes,
    contract_of,
    given_task,
    moved,
    records_of,
)
from grader.suites.lesson_04.suite import check

if TYPE_CHECKING:
    from grader.spine import Garden, Ran, SpineLab

SAYS_DONE = """echo '{"status": "changed", "summary": "all tests pass"}'"""


async def rejects(
    rule: Rule, garden: Garden, ran: Ran, task_id: str, *, reason: str, cause: str
) -> dict[str, Any]:
    """Require this rejection in the answer, in the result and in the state; the task stays where it is; give the attempt."""
    answer = rule.answers(ran, "rejected", reason, cause, 1)
    rule.state(garden, task_id, "rejected", "finished")
    rule.stands_in(garden.tree(), task_id, "processing")
    result = rule.record(garden, f".loop/results/{task_id}.json")
    rule.same(result, answer, Text("结果就是打印的裁决", "the result is the decision as printed"))
    return rule.record(garden, records_of(task_id)[-1])


@check(
    "04-p10",
    rules=("P10", "P16"),
    dimension="evidence",
    core=True,
    hint=Text(
        "裁决只看退出码和 diff。Agent 的话原样存进尝试文件的 agent，证据存进 evidence，谁也不替谁说话。",
        "Only exit codes and the diff decide. The agent's words go into `agent` of the attempt, evidence into `evidence`; "
        "neither speaks for the other.",
    ),
)
async def what_the_agent_says_is_no_evidence(lab: SpineLab) -> None:
    """Agent 说“都通过了”，命令却失败、进程却失败、什么都没改：一律 rejected

    An agent that says "all tests pass" is rejected when a command fails, its process fails, or nothing changed
    """
    edit, code, said = f"echo '// {word(lab.draw)}' >> {SOURCE}\n", lab.draw.randrange(3, 100), word(lab.draw)

    rule, evidence = await _words_against(
        lab, "验证命令失败", "a command fails", edit, f"echo {said}; exit {code}"
    )
    found = [[command["exit_code"], command["passed"], command["output"]] for command in evidence["commands"]]
    kept = Text("证据里有每条命令的退出码和输出", "the evidence has exit code and output of each command")
    rule.same(found, [[0, True, ""], [code, False, f"{said}\n"]], kept)

    failing = f"{edit}{SAYS_DONE}\nexit {code}\n"
    rule, evidence = await _words_against(lab, "它的进程失败", "its own process fails", failing)
    kept = Text("证据里有进程的退出码", "the evidence has the exit code of its process")
    rule.same(evidence["agent_process"]["exit_code"], code, kept)

    rule, evidence = await _words_against(lab, "什么都没改", "nothing was changed", "")
    rule.same(evidence["changes"]["files"], [], Text("证据里没有改动", "the evidence has no change"))
    await _state_replaced(lab)


_CAUSES = {
    "a command fails": ("verification_failed", "second"),
    "its own process fails": ("agent_failed", "exit_code"),
    "nothing was changed": ("no_change", "empty_diff"),
}


async def _words_against(lab: SpineLab, zh: str, en: str, deed: str, second: str = "") -> tuple[Rule, Any]:
    """Require a rejection although the agent says that all is done, its words kept apart; give the evidence."""
    rule = Rule("P10", f"Agent 说都通过了，而{zh}", f'The agent says "all tests pass", and {en}')
    one, (reason, cause) = task(lab.draw), _CAUSES[en]
    garden = await given_task(lab, one)
    await garden.write({"../orders/agent": deed + SAYS_DONE, "../orders/second": second})
    ran = await garden.run(agent=True)
    attempt = await rejects(rule, garden, ran, one["id"], reason=reason, cause=cause)
    words = {"kind": "command", "status": "changed", "summary": "all tests pass", "cause": None}
    rule.same(attempt["agent"], words, Text("Agent 的话原样记下", "the agent's words are kept as they were"))
    before = garden.tree()
    rule.blocks(await garden.run(agent=True), "needs_person", "rejected")
    rule.unchanged(before, garden.tree())
    return rule, attempt["evidence"]


async def _state_replaced(lab: SpineLab) -> None:
    """Let an agent write itself a finished state: it is left as it is, and nothing is decided over it."""
    rule = Rule(
        "P10", "Agent 自己把状态写成 completed", "The agent writes `completed` into the state by itself"
    )
    one = task(lab.draw)
    garden = await given_task(lab, one)
    state = f".loop/tasks/{one['id']}/state.json"
    forged = f"sed -i 's/active/completed/; s/agent_running/finished/' {state}\n"
    await garden.write({"../orders/agent": f"{forged}echo '// x' >> {SOURCE}\n{SAYS_DONE}"})
    rule.blocks(await garden.run(agent=True), "state_changed", "state_replaced")
    rule.same(garden.starts("first"), 0, Text("没有进入验证", "nothing was verified"))


@check(
    "04-p11",
    rules=("P11",),
    dimension="evidence",
    hint=Text(
        "把已跟踪和未跟踪的改动都拿来和契约比：路径、文件数、行数；受保护的路径永远不许改。运行器自己不暂存、不提交、不还原。",
        "Compare tracked and untracked changes with the contract: paths, files, lines; protected paths never. The runner "
        "itself never stages, commits or reverts.",
    ),
)
async def a_crossing_of_the_boundary_is_rejected(lab: SpineLab) -> None:
    """越界就 rejected：删除、改名、权限、二进制、太多行、自己提交，都算

    A crossing is rejected: deletion, rename, mode, binary, too many lines, an own commit all count
    """
    name = word(lab.draw)
    cases = (
        ("改了受保护的测试，在外面放新文件", "edits a protected test and leaves a file outside", f"echo >> test/search.test.mjs; echo > a-{name}.txt", ["outside_allowed_paths", "protected_path"]),
        ("删除受保护的文件，改动另一个的权限", "deletes a protected file and changes the mode of another", "rm package.json; chmod +x .gitignore", ["protected_path"]),
        ("把测试改名", "renames a test", f"mv test/search.test.mjs src/{name}.mjs", ["protected_path", "too_many_lines"]),
        ("写入二进制，放一个符号链接", "writes binary and leaves a link", f"printf 'a\\000b' > src/a{name}.mjs; ln -s /etc/hosts src/b{name}.mjs", ["binary_file", "not_a_regular_file"]),
        ("自己提交", "commits by itself", "git add -A src; git commit -qm x", ["head_moved"]),
    )  # fmt: skip
    for zh, en, deed, causes in cases:
        rule = Rule("P11", f"Agent {zh}，并说做完了", f"The agent {en}, and says that it is done")
        one = task(lab.draw)
        garden = await given_task(lab, one)
        await garden.write({"../orders/agent": f"echo '// {name}' >> {SOURCE}\n{deed}\n{SAYS_DONE}"})
        before = garden.tree()
        ran = await garden.run(agent=True)
        attempt = await rejects(rule, garden, ran, one["id"], reason="boundary", cause=causes[0])
        found = {error["cause"] for error in attempt["evidence"]["boundary_errors"]}
        rule.require(
            set(causes) <= found,
            Text("每处越界都列出", "every crossing is listed"),
            Text("缺了", "one is not"),
        )
        rule.same(garden.starts("first"), 0, Text("越界之后不再验证", "nothing is verified after a crossing"))
        _left_as_it_is(rule, garden, before, one["id"], own_commit="head_moved" in causes)


def _left_as_it_is(rule: Rule, garden: Garden, before: Any, task_id: str, *, own_commit: bool) -> None:
    """Require that the runner neither staged nor reverted: what the agent wrote stands, the repository is untouched."""
    changed = changes(before, garden.tree())
    rule.require(
        SOURCE in changed,
        Text("Agent 的改动留在原处", "what the agent wrote stays"),
        Text("不在了", "it is gone"),
    )
    touched = [name for name in changed if name.startswith(".git/")]
    rule.require(
        own_commit or not touched,
        Text("仓库没有被动过", "the repository is untouched"),
        Text("动了", "it is not"),
    )
    due = {*records_of(task_id), *moved(task_id, "inbox", "processing")}
    rule.require(
        due <= set(changed), Text("记录齐全", "all records are there"), Text("缺了", "one is missing")
    )


@check(
    "04-p12",
    rules=("P12",),
    dimension="evidence",
    hint=Text(
        "每条命令都跑，都有时限，输出只留末尾；超时就结束整棵进程树，否则它还握着锁。",
        "Every command runs, each with its limit, and only the end of its output is kept; at the limit its whole process "
        "tree ends, or it would still hold the lock.",
    ),
)
async def every_command_has_its_limits(lab: SpineLab) -> None:
    """验证命令：输出有上限，退出码保留，超时连同子进程一起结束

    Commands have a capped output, keep their exit code, and end with their whole tree at the limit
    """
    await _flood_of_output(lab)
    await _past_the_limit(lab)


async def _flood_of_output(lab: SpineLab) -> None:
    rule = Rule(
        "P12",
        "第一条命令输出很多并失败，第二条照样运行",
        "The first command prints a flood and fails; the second runs all the same",
    )
    one, last, code = task(lab.draw), word(lab.draw), lab.draw.randrange(3, 100)
    garden = await given_task(lab, one)
    flood = f"head -c 300000 /dev/zero | tr '\\0' x; echo {last}; exit {code}"
    await garden.write({"../orders/first": flood, "../orders/second": f"echo {last}"})
    ran = await garden.run()
    attempt = await rejects(rule, garden, ran, one["id"], reason="verification_failed", cause="first")
    commands = attempt["evidence"]["commands"]
    rule.same(len(commands), 2, Text("两条命令都在证据里", "the evidence has both commands"))
    (first, second), most = commands, contract_of(garden)["output_bytes"]
    rule.same(
        [first["exit_code"], len(first["output"]), first["dropped_bytes"]],
        [code, most, 300_000 + len(last) + 1 - most],
        Text(
            "输出有上限，记下丢弃的字节和退出码",
            "output is capped; the bytes dropped and the exit code are kept",
        ),
    )
    ends = [first["output"].endswith(f"{last}\n"), second["output"] == f"{last}\n"]
    rule.same(ends, [True, True], Text("留下的是输出的末尾", "what is kept is the end"))


async def _past_the_limit(lab: SpineLab) -> None:
    rule = Rule("P12", "命令超过时限，还留下子进程", "A command runs past its limit, and has a child besides")
    one = task(lab.draw)
    garden = await given_task(lab, one)
    slow = {"name": "slow", "argv": ["sh", "-c", "sleep 600 & sleep 600"], "min_tests": 0}
    await garden.write(
        {"loop.contract.json": contract_of(garden) | {"command_seconds": 1, "verification": [slow]}}
    )
    await garden.do(("git", "commit", "-qam", "a limit"))
    ran = await garden.run()
    attempt = await rejects(rule, garden, ran, one["id"], reason="verification_failed", cause="slow")
    found = [[command["timed_out"], command["passed"]] for command in attempt["evidence"]["commands"]]
    rule.same(found, [[True, False]], Text("超时记下来，不算通过", "it is told as timed out, not passed"))
    # Not runner_active: whatever the command started has let go of the lock, so it is gone.
    rule.blocks(await garden.run(), "needs_person", "rejected")


@check(
    "04-p13",
    rules=("P13",),
    dimension="evidence",
    hint=Text(
        "0 完成或空闲 · 1 拒绝 · 2 输入不对 · 3 要人看 · 75 中断；标准输出只有一个 JSON 对象。",
        "0 completed or idle, 1 rejected, 2 bad input, 3 a person must look, 75 interrupted; one JSON object on stdout.",
    ),
)
async def exit_codes_mean_what_they_say(lab: SpineLab) -> None:
    """退出码与回答一致；再中断一次，回答相同，什么都不写

    Exit codes agree with the answer; interrupting again says the same and writes nothing
    """
    rule = Rule("P13", "中断，再中断一次", "Interrupt, then interrupt once more")
    one = task(lab.draw)
    garden = await given_task(lab, one)
    first = rule.answers(await garden.interrupt(), *INTERRUPTED)
    before = garden.tree()
    again = rule.answers(await garden.interrupt(), *INTERRUPTED)
    rule.same(again, first, Text("两次回答相同", "both answers are the same"))
    rule.unchanged(before, garden.tree())

    rule = Rule("P13", "契约残缺，状态也损坏", "The contract is malformed, and the state is damaged")
    whole, state = contract_of(garden), records_of(one["id"])[3]
    raw = garden.raw(state)
    await garden.write({state: b"\0", "loop.contract.json": whole | {"max_files": 0}})
    rule.answers(await garden.run(), "refused", "bad_contract", "bad_value", 2)
    await garden.write({"loop.contract.json": json.dumps(whole)})
    await garden.do(("git", "checkout", "-q", "loop.contract.json"))
    rule.blocks(await garden.run(), "unsafe_resume", "state_invalid")
    await garden.write({state: raw})

    rule = Rule("P13", "恢复到完成，再运行一次", "Resume to the end, then run once more")
    rule.answers(await garden.run(), *COMPLETED)
    rule.answers(await garden.run(), "idle", "inbox_empty", None, 0)
    rule.answers(await garden.run("--no-such-option"), "refused", "bad_usage", "arguments", 2)


@check(
    "04-p14",
    rules=("P14",),
    dimension="evidence",
    hint=Text(
        "Agent 只是适配器：runner 给它任务、契约和锁的描述符，拿回一份报告；换一个 Agent，其余都不变。",
        "An agent is an adapter: the runner gives it task, contract and the lock's descriptor, and gets a report back; "
        "with another agent everything else stays the same.",
    ),
)
async def agents_are_adapters(lab: SpineLab) -> None:
    """模拟 Agent 在未知的基础上停下；任何命令行都能当 Agent，它的提示、输出和退出码都留下

    The simulated agent stops on an unknown base; any command line can be the agent, and its output and exit code are kept
    """
    await _unknown_base(lab)
    await _any_command_line(lab)


async def _unknown_base(lab: SpineLab) -> None:
    rule = Rule("P14", "normalizeText 没有第 3 课的形式", "normalizeText lacks the form of lesson 3")
    one = task(lab.draw)
    garden = await given_task(lab, one)
    await garden.write({SOURCE: garden.raw(SOURCE).replace(BEFORE, b"")})
    await garden.do(("git", "commit", "-qam", "another form"))
    before = garden.tree()
    await rejects(
        rule, garden, await garden.run(), one["id"], reason="agent_stopped", cause="baseline_missing"
    )
    queues = moved(one["id"], "inbox", "processing")
    rule.changed_only(before, garden.tree(), [*records_of(one["id"]), *queues])


async def _any_command_line(lab: SpineLab) -> None:
    rule = Rule("P14", "用一个命令行当 Agent", "Use a command line as the agent")
    one, said = task(lab.draw), word(lab.draw)
    garden = await given_task(lab, one)
    order = f"cat > ../seen/prompt; echo '// {said}' >> {SOURCE}; echo {said}"
    await garden.write({"../orders/agent": order})
    rule.answers(await garden.run(agent=True), *COMPLETED)
    due = Text("Agent 从标准输入得到任务的目标", "the agent gets the task's goal on its standard input")
    prompt = rule.content(garden, "../seen/prompt", due).decode("utf-8", "replace")
    rule.require(one["goal"] in prompt, due, Text("没有", "it does not"))
    attempt = rule.record(garden, records_of(one["id"])[-1])
    process = attempt["evidence"]["agent_process"]
    rule.same(
        [attempt["agent"]["kind"], process["exit_code"], process["output"]],
        ["command", 0, f"{said}\n"],
        Text(
            "尝试文件里有 Agent 进程的退出码和输出",
            "the attempt keeps exit code and output of the agent's process",
        ),
    )
    started = rule.events(garden, one["id"])[2]
    rule.same(
        [started["type"], started["agent"]],
        ["agent_started", "command"],
        Text("事件说出是哪种 Agent", "the event names the agent"),
    )
