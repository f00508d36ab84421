"""`durable_log` at the level `fsync`, each append synced by itself: survives power loss."""

from __future__ import annotations

from functools import partial

from labkit.faults.crash.promises import LOG
from labkit.faults.crash.scenarios import durable_log

PROMISES = LOG
work = partial(durable_log.work, level="fsync")
recover = partial(durable_log.recover, level="fsync")
