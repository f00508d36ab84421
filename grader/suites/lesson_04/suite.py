"""The suite object that the modules beside this one register their checks with."""

from functools import partial

from grader.suites.check import Suite

suite = Suite("04")
check = partial(suite.check, faults=True)  # a round can always be struck: each is a process of its own
