"""A store that appends right behind whatever bytes stand last (`labkit.naive.GluingStore`): one torn tail, and it is over."""

from __future__ import annotations

from functools import partial

from labkit.faults.crash.promises import LOG
from labkit.faults.crash.scenarios import lesson_22_log
from labkit.naive import GluingStore as Store

PROMISES = LOG
work = partial(lesson_22_log.work, store=Store)
recover = partial(lesson_22_log.recover, store=Store)
