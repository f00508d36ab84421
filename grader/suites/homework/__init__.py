"""The homework of lesson 22: checks for every rule H1 to H10, counted apart from the lesson's own.

The modules register their checks when they are imported, in the order in which a report shows them.
"""

from grader.suites.homework import durability, containment, integrity, recovery  # isort: skip - the exercises' order
from grader.suites.homework.suite import suite

__all__ = ["containment", "durability", "integrity", "recovery", "suite"]
