"""裁决 (the decision)."""

from __future__ import annotations

from pathlib import Path

from lab_case import LabCase

from issue_garden.agents import AgentReport
from issue_garden.contract import Contract, load_contract
from issue_garden.one_round import run_one_round
from issue_garden.task import Task, load_task
from issue_garden.verification import verify


class ClaimingAgent:
    """Changes something harmless and says that all is done."""

    kind = "claiming"

    def run(self, lab: Path, task: Task, contract: Contract, inherit: tuple[int, ...]) -> AgentReport:
        with (lab / "src" / "search.mjs").open("a", encoding="utf-8") as source:
            source.write("// done\n")
        return AgentReport(self.kind, "changed", "all tests pass")


class DecisionTest(LabCase):
    def test_verification_keeps_exit_code_and_output(self) -> None:
        """验证保留退出码和输出 (verification keeps exit code and output)"""
        self.put_task("issue-001")
        argv = ["node", "-e", "console.log('seen'); process.exit(7)"]
        self.contract_with(verification=[{"name": "seven", "argv": argv, "min_tests": 0}])

        task = load_task(self.lab, "inbox", "issue-001.json")
        [result] = verify(self.lab, load_contract(self.lab), task)

        self.assertEqual((result.exit_code, result.output, result.passed), (7, "seen\n", False))

    def test_what_the_agent_says_does_not_decide(self) -> None:
        """Agent 的说法不算数：命令失败就不算完成 (what the agent says does not decide: a failing command means not completed)"""
        self.put_task("issue-001")
        self.contract_with(
            verification=[{"name": "no", "argv": ["node", "-e", "process.exit(1)"], "min_tests": 0}]
        )
        self.commit()

        answer = run_one_round(self.lab, ClaimingAgent())

        self.assertEqual(
            (answer.decision, answer.reason, answer.cause), ("rejected", "verification_failed", "no")
        )
