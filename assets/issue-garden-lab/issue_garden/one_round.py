"""Lesson 3's runner: one task, one round, and no memory. What it knows is gone when its process ends."""

from __future__ import annotations

from pathlib import Path

from issue_garden.agents import Agent
from issue_garden.answers import Answer, blocked
from issue_garden.contract import load_contract
from issue_garden.git_view import look, outside_queue
from issue_garden.judging import decide, gather_evidence, message_for, report_of
from issue_garden.task import list_queue, load_task, move_task
from issue_garden.verification import require_tools


def run_one_round(lab: Path, agent: Agent) -> Answer:
    """Take the first task of the inbox to a decision. A task that is found in ``processing`` cannot be explained."""
    contract = load_contract(lab)
    require_tools(contract)
    if left := list_queue(lab, "processing"):
        reason = "里有任务，却没有它的记录：Agent 可能没开始，可能改了一半，也可能已做完"
        reason_en = (
            "holds a task without any record: its agent may not have begun, be half done, or have finished"
        )
        raise blocked("unexplained_task", "no_memory", f"tasks/processing/{left[0]}: {reason} ({reason_en})")
    names = list_queue(lab, "inbox")
    if not names:
        return Answer("idle", "inbox_empty")
    task = load_task(lab, "inbox", names[0])
    before = look(lab)
    if dirty := outside_queue(before):
        reason = (
            "有未提交的改动；先提交或撤销 (has changes that are not committed; commit or undo them first)"
        )
        raise blocked("unsafe_start", "dirty_tree", f"{dirty[0]}: {reason}", paths=dirty)
    move_task(lab, names[0], "inbox", "processing")
    before = look(lab)
    evidence = gather_evidence(lab, contract, task, before, agent.run(lab, task, contract, ()))
    decision, reason, cause = decide(evidence)
    if decision == "completed":
        move_task(lab, names[0], "processing", "done")
    details = report_of(decision, reason, cause, evidence, task)
    return Answer(decision, reason, cause, message_for(decision, reason, cause, evidence), details)
