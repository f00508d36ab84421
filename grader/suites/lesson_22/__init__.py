"""Lesson 22: five required tests, and extended ones for every rule S1 to S18 of the store."""

from grader.suites.lesson_22 import required
from grader.suites.lesson_22.suite import suite

__all__ = ["required", "suite"]
