"""Lesson 22 as experiments: each function makes one claim happen on real files and returns what was seen."""

from labkit.experiments.bench import code, numbers_in, where_you_are
from labkit.experiments.lesson_22.crashing import crash_around_effect, kill_two_agents
from labkit.experiments.lesson_22.failing import (
    append_after_tear,
    edited_outside,
    number_before_write,
    one_disk_error,
    one_line_more,
)
from labkit.experiments.lesson_22.ordering import (
    Race,
    awaited_backwards,
    changed_while_queued,
    hundred_at_once,
    not_json,
    race_for_a_number,
    reader_changes_its_copy,
)
from labkit.experiments.lesson_22.proving import (
    both_directions,
    example_tests,
    mutants,
    rules,
    try_example_tests,
    try_my_tests,
)
from labkit.experiments.lesson_22.reading import (
    cut_array_and_log,
    cut_at_every_byte,
    newline_missing,
    no_history,
    not_json_line,
    secret_in_a_bad_line,
    titled,
    wrong_numbers,
    wrong_shapes,
)
from labkit.experiments.lesson_22.replaying import (
    impossible_event,
    lost_completion,
    restart_and_cut,
    shown_in_two_languages,
    step_by_step,
)

__all__ = [
    "Race",
    "append_after_tear",
    "awaited_backwards",
    "both_directions",
    "changed_while_queued",
    "code",
    "crash_around_effect",
    "cut_array_and_log",
    "cut_at_every_byte",
    "edited_outside",
    "example_tests",
    "hundred_at_once",
    "impossible_event",
    "kill_two_agents",
    "lost_completion",
    "mutants",
    "newline_missing",
    "no_history",
    "not_json",
    "not_json_line",
    "number_before_write",
    "numbers_in",
    "one_disk_error",
    "one_line_more",
    "race_for_a_number",
    "reader_changes_its_copy",
    "restart_and_cut",
    "rules",
    "secret_in_a_bad_line",
    "shown_in_two_languages",
    "step_by_step",
    "titled",
    "try_example_tests",
    "try_my_tests",
    "where_you_are",
    "wrong_numbers",
    "wrong_shapes",
]
