"""The store of lesson 22 that you are writing: `starter/`, or what LAB_TARGET names."""

from __future__ import annotations

from functools import partial

from labkit import workspace
from labkit.faults.crash.promises import LOG
from labkit.faults.crash.scenarios import lesson_22_log

PROMISES = LOG
Store = workspace.load_lesson("22").JsonlSessionStore
work = partial(lesson_22_log.work, store=Store)
recover = partial(lesson_22_log.recover, store=Store)
