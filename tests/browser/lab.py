"""A real JupyterLab on a copy of the kit, and a page that drives it through Debian's Chromium."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

from axe_playwright_python.sync_playwright import Axe

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

KIT = Path(__file__).resolve().parents[2]
SCREENSHOTS = KIT / "artifacts" / "browser"
PARTS = ("assets", "grader", "labkit", "notebooks", "solution", "starter", "pyproject.toml")
BROWSER_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
NAMES = {
    "en": {
        "cut": "Cut at byte",
        "yours": "Append with your store",
        "naive": "Append with the naive store",
        "restore": "Restore",
    },
    "zh": {
        "cut": "在第几个字节处中断",
        "yours": "用你的 store 追加",
        "naive": "用朴素的 store 追加",
        "restore": "恢复原样",
    },
}
"""What the controls of the torn-write widget are called, for eyes and screen readers alike."""
LOCALES = {"zh": "zh_CN", "en": "en"}
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}


class LabServer:
    """JupyterLab with nothing of the user's: a copy of the kit, fresh settings, a port and a token of its own.

    It ends when told to, and by itself when nobody has used it for five minutes.
    """

    def __init__(self, home: Path) -> None:
        self.kit = home / "kit"
        self.settings = home / "settings"
        self.state = home / "state"
        self.token = secrets.token_hex(16)
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        for part in PARTS:
            _copy(KIT / part, self.kit / part)
        self._log = (home / "jupyterlab.log").open("wb")
        self._process = subprocess.Popen(
            self._command(), cwd=self.kit, env=self._environment(home), stdout=self._log, stderr=self._log
        )
        self._wait_until_up(home)

    def write_notebook(self, name: str, *cells: str) -> str:
        """Make a notebook of code cells; return its path as the server knows it."""
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}}
        blank: dict[str, object] = {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {},
            "outputs": [],
        }
        notebook["cells"] = [{**blank, "id": f"cell-{at}", "source": cell} for at, cell in enumerate(cells)]
        path = self.kit / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(notebook), "utf-8")
        return name

    def set_language(self, language: str) -> None:
        """Choose the language of JupyterLab itself for pages opened from now on."""
        self._set("@jupyterlab/translation-extension", "plugin", {"locale": LOCALES[language]})

    def ask(self, path: str, method: str = "GET") -> Any:
        """Call the server's own API."""
        request = urllib.request.Request(
            f"{self.url}/{path}", method=method, headers={"Authorization": f"token {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            body = answer.read()
        return json.loads(body) if body else None

    def stop(self) -> int:
        """Ask the server to end, and return its exit code."""
        try:
            self.ask("api/shutdown", "POST")
            return self._process.wait(20)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            return self._process.wait()
        finally:
            self._log.close()

    def _command(self) -> list[str]:
        return [
            *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1"),
            *(f"--port={self.port}", "--ServerApp.port_retries=0", f"--IdentityProvider.token={self.token}"),
            *(f"--ServerApp.root_dir={self.kit}", "--expose-app-in-browser"),
            *("--ServerApp.shutdown_no_activity_timeout=300", "--MappingKernelManager.cull_idle_timeout=240"),
            *("--MappingKernelManager.cull_connected=True", "--LabApp.news_url=None"),
            "--ServerApp.kernel_websocket_connection_class=labkit.kernel_socket.PromptKernelSocket",
        ]

    def _environment(self, home: Path) -> dict[str, str]:
        folders = {
            "JUPYTER_CONFIG_DIR": home / "config",
            "JUPYTER_DATA_DIR": home / "data",
            "JUPYTER_RUNTIME_DIR": home / "runtime",
            "JUPYTERLAB_SETTINGS_DIR": self.settings,
            "JUPYTERLAB_WORKSPACES_DIR": home / "workspaces",
            "IPYTHONDIR": home / "ipython",
            "LAB_STATE": self.state,
        }
        for folder in folders.values():
            folder.mkdir(parents=True, exist_ok=True)
        self._set("@jupyterlab/apputils-extension", "notification", {"fetchNews": "false"})
        # Every output is in the page, not only those in sight: the accessibility rules are to see all of them.
        self._set("@jupyterlab/notebook-extension", "tracker", {"windowingMode": "none"})
        ours = {name: str(folder) for name, folder in folders.items()}
        return {**os.environ, **ours, "PYTHONPATH": str(self.kit), "LAB_TARGET": "solution"}

    def _set(self, extension: str, plugin: str, values: dict[str, object]) -> None:
        file = self.settings / extension / f"{plugin}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values), "utf-8")

    def _wait_until_up(self, home: Path) -> None:
        for _ in range(600):
            try:
                self.ask("api/status")
            except OSError:
                if self._process.poll() is not None:
                    raise RuntimeError(f"JupyterLab ended at once; read {home / 'jupyterlab.log'}") from None
                time.sleep(0.1)
            else:
                return
        raise RuntimeError(f"JupyterLab did not answer within a minute; read {home / 'jupyterlab.log'}")


class NotebookPage:
    """One open notebook, and what a person does in it."""

    def __init__(self, page: Page, server: LabServer) -> None:
        self.page, self.server = page, server

    def open(self, path: str, language: str) -> None:
        """Open a notebook in JupyterLab and wait until its cells stand there."""
        self.server.set_language(language)
        self.page.goto(f"{self.server.url}/lab/tree/{path}?token={self.server.token}&reset")
        self.page.wait_for_selector("#jupyterlab-splash", state="detached", timeout=60_000)
        self.page.wait_for_selector(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-CodeCell", timeout=60_000)

    def run_all(self) -> None:
        """Run every cell and wait for the last; the kernel is asked first, since idle is shown before it is."""
        self.page.set_default_timeout(120_000)
        self.page.evaluate(
            """async () => {
                const app = window.jupyterapp;
                await app.restored;
                const widget = app.shell.currentWidget;
                await widget.context.ready;
                await widget.sessionContext.ready;
                await widget.sessionContext.session.kernel.info;
                await app.commands.execute('notebook:run-all-cells');
            }"""
        )
        self.page.set_default_timeout(30_000)

    def restart_kernel(self) -> None:
        """Restart the kernel, as the toolbar button does once it was confirmed."""
        self.page.evaluate(
            "async () => { const session = window.jupyterapp.shell.currentWidget.sessionContext.session;"
            " await session.kernel.restart(); await session.kernel.info; }"
        )

    def open_in_notebook_7(self, path: str) -> None:
        """Open a notebook in Notebook 7, and wait until its one kernel is idle and connected."""
        self.page.goto(f"{self.server.url}/notebooks/{path}?token={self.server.token}")
        self.page.wait_for_selector(".jp-CodeCell", timeout=60_000)
        for _ in range(300):
            with contextlib.suppress(OSError):  # the list may fail while a kernel is being started
                kernels = self.server.ask("api/kernels")
                if [(one["execution_state"], one["connections"]) for one in kernels] == [("idle", 1)]:
                    return
            self.page.wait_for_timeout(100)
        raise RuntimeError("the kernel of Notebook 7 did not become idle within 30 s")

    def drag(self, slider: Locator, fraction: float) -> int:
        """Drag a slider's handle from its end to a fraction of its length; return the value it then has."""
        slider.scroll_into_view_if_needed()
        box = slider.bounding_box()
        if box is None:
            raise RuntimeError("the slider is not on the page")
        middle = box["y"] + box["height"] / 2
        self.page.mouse.move(box["x"] + box["width"] - 4, middle)
        self.page.mouse.down()
        self.page.mouse.move(box["x"] + box["width"] * fraction, middle, steps=12)
        self.page.mouse.up()
        return int(slider.input_value())

    def press(self, label: str) -> None:
        """Press the button of this name."""
        self.page.get_by_role("button", name=label, exact=True).click()

    def theme(self, name: str) -> None:
        """Switch the whole JupyterLab to the light or the dark theme."""
        self.page.evaluate(
            "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", THEMES[name]
        )
        self.page.wait_for_function(
            "light => document.body.dataset.jpThemeLight === String(light)", arg=name == "light"
        )

    def errors(self) -> list[str]:
        """Return what the notebook shows on its error stream, exceptions included."""
        return self.page.locator("[data-mime-type='application/vnd.jupyter.stderr']").all_inner_texts()

    def violations(self) -> list[str]:
        """Return what the accessibility rules find inside the outputs, one line each."""
        found = Axe().run(self.page, context=".jp-OutputArea-output").response["violations"]
        return [f"{one['id']}: {node['html'][:160]}" for one in found for node in one["nodes"]]

    def screenshot(self, name: str) -> None:
        """Keep a picture of the notebook's outputs for whoever looks at the artefacts."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png")


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"))
    elif source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
