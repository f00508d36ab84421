"""The homework of lesson 22 as experiments: each function makes one claim about `durable_log` happen on real files."""

from labkit.experiments.homework.archiving import damage_a_checkpoint, seek_a_record
from labkit.experiments.homework.beside_writer import read_beside_a_writer
from labkit.experiments.homework.comparing import four_stores, growth
from labkit.experiments.homework.copying import copy_a_living_session
from labkit.experiments.homework.crash_lab import crashes, own_store, source_of, switched_off
from labkit.experiments.homework.crash_proof import cut_and_flip
from labkit.experiments.homework.durability import price_of_a_sync, survivors
from labkit.experiments.homework.inspecting import inspect_with_secrets
from labkit.experiments.homework.privacy import modes_under_umask, search_for_secrets
from labkit.experiments.homework.queueing import queue_depths
from labkit.experiments.homework.record_contract import big_content, clock_turned_back, other_versions
from labkit.experiments.homework.repairing import one_report, repair_logs
from labkit.experiments.homework.replaying import restart
from labkit.experiments.homework.retrying import retry_after_failure, two_decide_at_once
from labkit.experiments.homework.rivals import two_writers
from labkit.experiments.homework.rotating import crash_a_rotation, split_a_log
from labkit.experiments.homework.streaming import in_small_pieces, memory_of_reading
from labkit.experiments.homework.tables import where_files_are
from labkit.experiments.homework.tampering import alter_history, forge_history
from labkit.experiments.homework.troubles import cause_trouble
from labkit.experiments.homework.workspace_log import forge_an_approval
from labkit.experiments.homework.writers import one_writer, sessions_apart, strange_ids

__all__ = [
    "alter_history",
    "big_content",
    "cause_trouble",
    "clock_turned_back",
    "copy_a_living_session",
    "crash_a_rotation",
    "crashes",
    "cut_and_flip",
    "damage_a_checkpoint",
    "forge_an_approval",
    "forge_history",
    "four_stores",
    "growth",
    "in_small_pieces",
    "inspect_with_secrets",
    "memory_of_reading",
    "modes_under_umask",
    "one_report",
    "one_writer",
    "other_versions",
    "own_store",
    "price_of_a_sync",
    "queue_depths",
    "read_beside_a_writer",
    "repair_logs",
    "restart",
    "retry_after_failure",
    "search_for_secrets",
    "seek_a_record",
    "sessions_apart",
    "source_of",
    "split_a_log",
    "strange_ids",
    "survivors",
    "switched_off",
    "two_decide_at_once",
    "two_writers",
    "where_files_are",
]
