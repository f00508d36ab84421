"""The suite object that the modules beside this one register their checks with."""

from grader.suites.check import Suite

suite = Suite("22")
check = suite.check
