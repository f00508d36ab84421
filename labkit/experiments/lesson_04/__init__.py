"""Lesson 04 as experiments: each function makes one claim happen in a real lab and returns what was seen."""

from labkit.experiments.bench import code
from labkit.experiments.lesson_04.crashing import crash_after_the_move, kill_savers
from labkit.experiments.lesson_04.interrupting import (
    interrupt,
    killed_at_the_checkpoint,
    not_there_yet,
    where_it_stands,
)
from labkit.experiments.lesson_04.old_runner import kill_old_runners, save_the_baseline, without_the_baseline
from labkit.experiments.lesson_04.power import cut_the_power
from labkit.experiments.lesson_04.records import (
    boasting_agent,
    digests,
    endless_agent,
    facts_before_and_after,
    lay_the_overlay,
    only_the_result,
    step_through_a_round,
    what_git_lists,
)
from labkit.experiments.lesson_04.refusing import (
    changed_ground,
    changed_task,
    eight_refusals,
    forced_phases,
    impossible_ids,
    missing_records,
    only_the_claim_deleted,
    put_back,
)
from labkit.experiments.lesson_04.replaying import (
    edited_history,
    killed_agents,
    redo,
    replayed_mail,
    replayed_mail_with_key,
)
from labkit.experiments.lesson_04.resuming import first_look, resume, second_look, third_look, two_boundaries
from labkit.experiments.lesson_04.sweeping import kill_everywhere
from labkit.experiments.lesson_04.visiting import agent_script, playground, where_you_are

__all__ = [
    "agent_script",
    "boasting_agent",
    "changed_ground",
    "changed_task",
    "code",
    "crash_after_the_move",
    "cut_the_power",
    "digests",
    "edited_history",
    "eight_refusals",
    "endless_agent",
    "facts_before_and_after",
    "first_look",
    "forced_phases",
    "impossible_ids",
    "interrupt",
    "kill_everywhere",
    "kill_old_runners",
    "kill_savers",
    "killed_agents",
    "killed_at_the_checkpoint",
    "lay_the_overlay",
    "missing_records",
    "not_there_yet",
    "only_the_claim_deleted",
    "only_the_result",
    "playground",
    "put_back",
    "redo",
    "replayed_mail",
    "replayed_mail_with_key",
    "resume",
    "save_the_baseline",
    "second_look",
    "step_through_a_round",
    "third_look",
    "two_boundaries",
    "what_git_lists",
    "where_it_stands",
    "where_you_are",
    "without_the_baseline",
]
