"""Lesson 04: the ten control-plane tests, and extended ones for every rule P1 to P16 of the spine.

The modules register their checks when they are imported, in the order in which a report shows them.
"""

from grader.suites.lesson_04 import required  # isort: skip - the required ten come first
from grader.suites.lesson_04 import claim, resume, durable, evidence, crash  # isort: skip
from grader.suites.lesson_04.suite import suite

__all__ = ["claim", "crash", "durable", "evidence", "required", "resume", "suite"]
