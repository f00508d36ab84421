"""`statelab lab`: JupyterLab on the first page, in the learner's language, with settings of the kit's own (N1).

Everything Jupyter reads and writes for a person (configuration, kernels, interface settings, running servers) is put
into the kit's state folder, so that neither side changes the other: not the learner's own Jupyter, and not this one.
"""

from __future__ import annotations

import errno
import importlib.metadata
import importlib.util
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import click

from labkit import words, workspace

FIRST_PAGE = "00-start-here.ipynb"
HOST = "127.0.0.1"
PORTS_TRIED = 50

# JupyterLab's own setting names. A learner's later choice in its menus wins over these.
INTERFACE = {
    "@jupyterlab/filebrowser-extension:browser": {
        "showHiddenFiles": True
    },  # .loop/ is something to look into
    "@jupyterlab/docmanager-extension:plugin": {"defaultViewers": {"markdown": "Markdown Preview"}},
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
}
MENUS = {"zh": "zh_CN", "en": "en"}


@click.command(epilog="Example: statelab lab --lang zh --port 8890")
@click.option(
    "--lang", type=click.Choice(words.LANGUAGES), help="Language (default: LAB_LANG, else the system's)."
)
@click.option(
    "--port", type=click.IntRange(1, 65535), default=8888, show_default=True, help="First port to try."
)
@click.option("--no-browser", is_flag=True, help="Open no browser; print the address.")
@click.option("--check", is_flag=True, help="Start nothing; tell whether everything is there. Exit 1 if not.")
def main(*, lang: str | None, port: int, no_browser: bool, check: bool) -> None:
    """Open JupyterLab on the first page of the labs. Ctrl-C stops it and every notebook in it."""
    if lang:
        words.use(lang)
    language = words.language()
    page = Path("notebooks") / language / FIRST_PAGE
    missing = what_is_missing(page)
    for message in missing:
        click.secho(message, fg="red", err=True)
    if missing:
        sys.exit(1)
    free = free_port(port)
    if free != port:
        click.echo(f"port {port}: taken; using {free}", err=True)
    if check:
        click.echo(
            f"{page.as_posix()}: opens at port {free}, JupyterLab {importlib.metadata.version('jupyterlab')}"
        )
        return
    home = workspace.state_folder() / "jupyter"
    write_settings(home, language, page, free, browser=not no_browser)
    click.echo("State Lab: JupyterLab is starting; Ctrl-C stops it", err=True)
    start(home, language)


def what_is_missing(page: Path) -> list[str]:
    """Say, one line each, what keeps JupyterLab from showing the first page; `page` is relative to the kit."""
    missing = [
        f"{module}: not installed in {sys.prefix}; run make setup"
        for module in ("jupyterlab", "ipykernel", "ipywidgets", "anywidget", "jupyterlab_language_pack_zh_CN")
        if importlib.util.find_spec(module) is None
    ]
    if not (workspace.kit_root() / page).is_file():
        missing.append(f"{page}: missing; make it again with python -m labkit.notebook_build")
    return missing


def free_port(first: int) -> int:
    """Give the first port from `first` on that nobody listens on. Raises: ClickException when there is none."""
    for port in range(first, min(first + PORTS_TRIED, 65536)):
        with socket.socket() as probe:
            # As the server will: a port that only waits for old connections to fade can be used.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, os.name != "nt")
            try:
                probe.bind((HOST, port))
            except OSError as error:
                if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                    raise
            else:
                return port
    raise click.ClickException(
        f"port {first}: taken, and the next {PORTS_TRIED - 1} too; choose another with --port"
    )


def write_settings(home: Path, language: str, page: Path, port: int, *, browser: bool) -> None:
    """Write what the server and the interface are to do into `home`, below the kit's state folder."""
    server = {
        "ServerApp": {
            "ip": HOST,
            "port": port,
            "root_dir": str(workspace.kit_root()),
            "open_browser": browser,
            "answer_yes": True,  # the first Ctrl-C stops it
            "allow_root": is_root(),
            "log_level": "WARN",
            "kernel_websocket_connection_class": "labkit.kernel_socket.PromptKernelSocket",
        },
        "ContentsManager": {"allow_hidden": True},
    }
    interface = INTERFACE | {"@jupyterlab/translation-extension:plugin": {"locale": MENUS[language]}}
    _write_json(home / "config/jupyter_server_config.json", server)
    _write_json(
        home / "config/jupyter_lab_config.json", {"LabApp": {"default_url": f"/lab/tree/{page.as_posix()}"}}
    )
    _write_json(home / "config/labconfig/default_setting_overrides.json", interface)


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")


def is_root() -> bool:
    """Tell whether this process may do everything, which JupyterLab only accepts when told."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def start(home: Path, language: str) -> None:
    """Become the JupyterLab server; returns when it has stopped."""
    for name in ("JUPYTER_PATH", "JUPYTER_CONFIG_PATH"):
        os.environ.pop(name, None)  # another kernel called python3 must not stand in for ours
    os.environ.update(
        {
            "JUPYTER_CONFIG_DIR": str(home / "config"),
            "JUPYTER_DATA_DIR": str(home / "data"),
            "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
            "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
            "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
            "LAB_LANG": language,
            # A terminal opened in JupyterLab knows `statelab` and the right `python`.
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        }
    )
    # Without a terminal Jupyter leaves Ctrl-C to Python, which ends it with its kernels still running.
    signal.signal(signal.SIGINT, lambda *_: signal.raise_signal(signal.SIGTERM))
    from jupyterlab.labapp import LabApp  # noqa: PLC0415 - reads the environment and costs a second

    LabApp.launch_instance([])
