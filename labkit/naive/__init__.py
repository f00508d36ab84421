"""Stores that are wrong on purpose, for the notebooks to break. Each has one mistake, named in its docstring.

They read and write with ordinary file calls. What holds a race or fails a disk is put underneath
(``labkit.actions.disturbed``), never inside.
"""

from labkit.naive.acting import replay_and_act
from labkit.naive.habits import BlankSkippingStore, EchoingStore, PreparingStore
from labkit.naive.queues import CachingStore, HoleStore, LateStore, PoisonedStore
from labkit.naive.races import CoroutineStore, LuckyStore, OwnQueueStore, UnsafeStore, WriteLockedStore
from labkit.naive.readers import GluingStore, HopefulStore, NewlineStore, RisingStore, SkippingStore
from labkit.naive.splitting import split_by_size

__all__ = [
    "BlankSkippingStore",
    "CachingStore",
    "CoroutineStore",
    "EchoingStore",
    "GluingStore",
    "HoleStore",
    "HopefulStore",
    "LateStore",
    "LuckyStore",
    "NewlineStore",
    "OwnQueueStore",
    "PoisonedStore",
    "PreparingStore",
    "RisingStore",
    "SkippingStore",
    "UnsafeStore",
    "WriteLockedStore",
    "replay_and_act",
    "split_by_size",
]
