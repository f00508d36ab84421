"""Lesson 22: an append-only event log whose reader forgives only a torn tail."""

from .event_line import SessionEvent
from .session_store import CorruptLogError, JsonlSessionStore

__all__ = ["CorruptLogError", "JsonlSessionStore", "SessionEvent"]
