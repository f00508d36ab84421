"""`durable_log` at the level `os`, handed to the operating system: survives the death of the process."""

from __future__ import annotations

from functools import partial

from labkit.faults.crash.promises import LOG
from labkit.faults.crash.scenarios import durable_log

PROMISES = LOG
work = partial(durable_log.work, level="os")
recover = partial(durable_log.recover, level="os")
