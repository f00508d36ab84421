"""The suite object that the modules beside this one register their checks with."""

from grader.suites.check import Suite
from labkit.workspace import HOMEWORK

suite = Suite(HOMEWORK)
check = suite.check
