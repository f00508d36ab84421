"""The pytest side of `own_tests.py`: a plugin that is led from outside, `async def` tests, and the fixture `fault`.

Loaded by path once pytest can be imported. Everything here runs beside the learner's code and proves nothing by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import pytest
from _pytest.runner import runtestprotocol


class Led:
    """Collects, then runs what it is asked to, one test a question, and answers how it ended."""

    def __init__(self, channel: socket.socket, describer: Any) -> None:
        self._channel = channel
        self._describer = describer
        self._unloaded: BaseException | None = None
        self._raised: BaseException | None = None
        self._items: dict[str, pytest.Item] = {}

    def pytest_exception_interact(self, node: pytest.Item | pytest.Collector, call: Any) -> None:
        """Keep what stopped the collection; pytest wraps errors of the import itself."""
        if self._unloaded is None and isinstance(node, pytest.Collector):
            error = call.excinfo.value
            self._unloaded = error.__cause__ or error

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Say that the file is loaded, or why not; then take questions until the line closes."""
        if self._unloaded is not None:
            self._send({"id": 0, "err": self._describer.describe(self._unloaded, "load")})
            return True
        self._items = {item.nodeid.partition("::")[2]: item for item in session.items}
        with self._channel.makefile("rb") as lines:
            self._send({"id": 0, "ok": []})
            for line in lines:
                for operation in json.loads(line):
                    self._send({"id": operation.pop("id"), **self._answer(**operation)})
        return True

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport:
        """Report without pytest's drawing of the failure: nobody sees it.

        It would parse files, and Python forbids that inside a parse: a forgotten task of a wrong store, collected at
        that moment, has its own traceback drawn.
        """
        assert call.when != "collect"
        outcome: Literal["passed", "failed", "skipped"] = "passed"
        if call.excinfo:
            self._raised = call.excinfo.value
            outcome = "skipped" if isinstance(self._raised, pytest.skip.Exception) else "failed"
        return pytest.TestReport(item.nodeid, item.location, {}, outcome, None, call.when)

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        """Run an `async def` test on an event loop of its own."""
        if not inspect.iscoroutinefunction(pyfuncitem.obj):
            return None
        wanted = inspect.signature(pyfuncitem.obj).parameters
        asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted}))
        return True

    def _answer(self, op: str, test: str = "") -> dict[str, Any]:
        return self._run(self._items[test]) if op == "run" else {"ok": list(self._items)}

    def _run(self, item: pytest.Item) -> dict[str, Any]:
        """Run one test with its fixtures, which end with it; what it raised is the answer, else `pass` or `skip`."""
        self._raised = None
        reports = runtestprotocol(item, log=False, nextitem=None)
        if failed := next((report for report in reports if report.failed), None):
            error = self._raised or AssertionError(str(failed.longrepr))
            return {"err": self._describer.describe(error, "call")}
        expected = all(report.passed and not hasattr(report, "wasxfail") for report in reports)
        return {"ok": "pass" if expected else "skip"}

    def _send(self, reply: dict[str, Any]) -> None:
        self._channel.sendall(json.dumps(reply, allow_nan=False, separators=(",", ":")).encode() + b"\n")


class Faults:
    """Brings the fixture `fault`: `with fault("write", "ENOSPC"): ...` disturbs the disk below `tmp_path`."""

    def __init__(self, layer: ModuleType) -> None:
        self.layer = layer

    @pytest.fixture
    def fault(self, tmp_path: Path) -> Callable[..., contextlib.AbstractContextManager[None]]:
        """Give a context manager; its arguments are those of one rule of `labkit/faults/file_layer.py`."""

        @contextlib.contextmanager
        def armed(op: str, do: str, **limits: Any) -> Iterator[None]:
            self.layer.arm([{"op": op, "do": do, **limits}], tmp_path)
            try:
                yield
            finally:
                self.layer.disarm()

        return armed
