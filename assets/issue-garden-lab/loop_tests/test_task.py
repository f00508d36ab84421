"""任务与待办箱 (tasks and the inbox)."""

from __future__ import annotations

from lab_case import LabCase

from issue_garden.agents import SimulatedAgent
from issue_garden.answers import StoppedError
from issue_garden.one_round import run_one_round
from issue_garden.task import id_problem, list_queue, load_task


class TaskTest(LabCase):
    def test_ids_and_file_names_have_limits(self) -> None:
        """任务 ID 与文件名有限制 (task ids and file names have limits)"""
        for bad in ("", "../x", "a/b", "a.b", "é", "a\n", "a" * 81, "con", "LPT1"):
            with self.subTest(bad):
                self.assertIsNotNone(id_problem(bad))
        for good in ("a", "issue-002", "A_1", "a" * 80):
            with self.subTest(good):
                self.assertIsNone(id_problem(good))
        self.put_task("issue-7", file_name="issue-8.json")
        with self.assertRaises(StoppedError) as stopped:
            load_task(self.lab, "inbox", "issue-8.json")
        self.assertEqual(stopped.exception.answer.cause, "bad_id")

    def test_the_inbox_has_an_order_and_an_end(self) -> None:
        """待办箱有顺序，空了就闲着 (the inbox has an order, and an empty one means idle)"""
        self.assertEqual(run_one_round(self.lab, SimulatedAgent()).decision, "idle")
        for task_id in ("issue-010", "issue-002", "issue-001"):
            self.put_task(task_id)
        (self.lab / "tasks" / "inbox" / ".issue-000.json").write_text("{}", "utf-8")
        (self.lab / "tasks" / "inbox" / "notes.json").mkdir()

        self.assertEqual(
            list_queue(self.lab, "inbox"), ["issue-001.json", "issue-002.json", "issue-010.json"]
        )
