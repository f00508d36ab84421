"""The store of lesson 22, as the solution has it: survives the death of its process; syncs nothing but a repair."""

from __future__ import annotations

from functools import partial

from labkit.faults.crash.promises import LOG
from labkit.faults.crash.scenarios import lesson_22_log
from solution.lesson_22 import JsonlSessionStore as Store

PROMISES = LOG
work = partial(lesson_22_log.work, store=Store)
recover = partial(lesson_22_log.recover, store=Store)
