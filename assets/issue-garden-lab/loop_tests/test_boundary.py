"""边界 (the boundary)."""

from __future__ import annotations

from lab_case import LabCase

from issue_garden.agents import AgentReport
from issue_garden.contract import load_contract
from issue_garden.git_view import look
from issue_garden.judging import gather_evidence
from issue_garden.task import load_task


class BoundaryTest(LabCase):
    def causes_after(self, changes: dict[str, str]) -> list[str]:
        """Write files as an agent would, and return what the boundary says."""
        self.put_task("issue-001")
        task, contract, before = (
            load_task(self.lab, "inbox", "issue-001.json"),
            load_contract(self.lab),
            look(self.lab),
        )
        for name, text in changes.items():
            (self.lab / name).write_text(text, "utf-8")
        report = AgentReport("test", "stopped", "written")
        return [
            error.cause for error in gather_evidence(self.lab, contract, task, before, report).boundary_errors
        ]

    def test_a_change_outside_the_allowed_paths_is_flagged(self) -> None:
        """允许路径之外的改动会被标出，未跟踪的也算 (a change outside the allowed paths is flagged, untracked included)"""
        causes = self.causes_after({
            "src/search.mjs": "export const one = 1;\n",
            "test/search.test.mjs": "\n",
            "left-behind.txt": "new\n",
        })  # fmt: skip

        self.assertEqual(causes, ["outside_allowed_paths", "protected_path", "too_many_files"])

    def test_too_many_lines_or_files_are_flagged(self) -> None:
        """超出行数或文件数会被标出 (too many lines or files are flagged)"""
        causes = self.causes_after({f"src/new-{n}.mjs": "\n" * 20 for n in range(3)})

        self.assertEqual(causes, ["too_many_files", "too_many_lines"])
