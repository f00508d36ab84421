"""Lesson 22: five required tests, and extended ones for every rule S1 to S18 of the store.

The modules register their checks when they are imported, in the order in which a report shows them.
"""

from grader.suites.lesson_22 import required  # isort: skip - the required five come first
from grader.suites.lesson_22 import order, values, failure, tail, damage, outside  # isort: skip
from grader.suites.lesson_22.suite import suite

__all__ = ["damage", "failure", "order", "outside", "required", "suite", "tail", "values"]
