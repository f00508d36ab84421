"""One real JupyterLab and one real Chromium for all browser tests.

Both end with this folder, not with the session: while Playwright lives, no other test can start an event loop.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import sync_playwright

from tests.browser.lab import BROWSER_ARGUMENTS, LabServer, NotebookPage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import BrowserContext

WIDGET_CODE = ("blob:", "/anywidget/", "/@jupyter-widgets/")
"""Where our scripts run and who calls them; what JupyterLab and Notebook have to say of their own is theirs."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything in this folder, so that `-m "not browser"` leaves it out."""
    for item in items:
        if item.path.parent.name == "browser":
            item.add_marker("browser")


@pytest.fixture(scope="package")
def chromium() -> str:
    """The browser's path. Where there is none the tests are skipped, but never under CI=true."""
    path = shutil.which("chromium")
    if path is None:
        reason = "no chromium on this machine; install the packages chromium and fonts-noto-cjk"
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    return path


@pytest.fixture(scope="package")
def context(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    """One browser with a fresh profile."""
    with sync_playwright() as playwright:
        made = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"),
            executable_path=chromium,
            headless=True,
            viewport={"width": 1280, "height": 1000},
            args=list(BROWSER_ARGUMENTS),
        )
        made.set_default_timeout(30_000)
        yield made
        made.close()


@pytest.fixture(scope="package")
def server(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    """One JupyterLab on a copy of the kit, with LAB_TARGET=solution."""
    started = LabServer(tmp_path_factory.mktemp("lab"))
    yield started

    assert started.stop() == 0


@pytest.fixture
def notebook(context: BrowserContext, server: LabServer) -> Iterator[NotebookPage]:
    """A new tab. An error in one of our scripts fails the test; the kernel ends with it."""
    complaints: list[str] = []
    page = context.new_page()
    page.on("pageerror", lambda error: complaints.append(f"{error}\n{error.stack}"))
    page.on(
        "console", lambda said: said.type == "error" and complaints.append(f"{said.text} {said.location}")
    )
    yield NotebookPage(page, server)
    page.close()
    for kernel in server.ask("api/sessions"):
        server.ask(f"api/sessions/{kernel['id']}", "DELETE")

    assert [one for one in complaints if any(place in one for place in WIDGET_CODE)] == []
