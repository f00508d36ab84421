"""`statelab lab`, started for real: the right page, language and kernel; one Ctrl-C; nobody else's settings touched."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from labkit import lab, workspace

PAGE = "notebooks/zh/00-start-here.ipynb"


@dataclass(frozen=True)
class Server:
    """A running `statelab lab`, with a home folder that holds someone's own Jupyter settings."""

    process: subprocess.Popen[str]
    address: str
    token: str
    path: str
    home: Path

    def get(self, what: str) -> Any:
        request = urllib.request.Request(
            self.address + what, headers={"Authorization": f"token {self.token}"}
        )
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)


def wait_until_it_listens(port: int, process: subprocess.Popen[str]) -> None:
    """Come back once the server listens: it tells its address a moment before."""
    while process.poll() is None:
        try:
            socket.create_connection((lab.HOST, port)).close()
        except ConnectionRefusedError:
            continue
        return


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start it as a Chinese learner would, on a machine where Jupyter was set up otherwise; end it by Ctrl-C."""
    home = tmp_path_factory.mktemp("home")
    own = home / ".jupyter/jupyter_server_config.json"
    own.parent.mkdir()
    own.write_text('{"ServerApp": {"root_dir": "/nowhere", "password": "mine"}}')
    kernel = home / "kernels/kernels/python3/kernel.json"
    kernel.parent.mkdir(parents=True)
    kernel.write_text('{"argv": ["false"], "display_name": "not ours", "language": "python"}')
    settings = {"HOME": str(home), "LAB_STATE": str(home / "state"), "JUPYTER_PATH": str(home / "kernels")}
    process = subprocess.Popen(
        [Path(sys.executable).parent / "statelab", "lab", "--no-browser", "--lang", "zh"],
        env={**os.environ, **settings},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    told = []
    for line in process.stdout:
        told.append(line)
        found = re.search(r"(http://127\.0\.0\.1:(\d+)/)(\S+)\?token=(\w+)", line)
        if found:
            break
    else:
        pytest.fail("".join(told))
    wait_until_it_listens(int(found[2]), process)
    yield Server(process, found[1], found[4], found[3], home)
    process.send_signal(signal.SIGINT)
    process.communicate()


def test_it_opens_the_first_page_in_the_learners_language(server: Server) -> None:
    """The address leads to the Chinese page, and the interface is Chinese."""
    settings = server.get("lab/api/settings/@jupyterlab/translation-extension:plugin")

    assert server.path == f"lab/tree/{PAGE}"
    assert settings["schema"]["properties"]["locale"]["default"] == "zh_CN"


def test_hidden_files_are_shown(server: Server) -> None:
    """The server gives hidden files out, and the file browser shows them."""
    settings = server.get("lab/api/settings/@jupyterlab/filebrowser-extension:browser")
    hidden = server.get("api/contents/.gitignore?content=0&hidden=1")

    assert settings["schema"]["properties"]["showHiddenFiles"]["default"] is True
    assert hidden["name"] == ".gitignore"


def test_markdown_is_shown_rendered_and_no_news_are_asked_for(server: Server) -> None:
    """A hint opens as a page, not as source; no question about news stands before it."""
    viewers = server.get("lab/api/settings/@jupyterlab/docmanager-extension:plugin")
    news = server.get("lab/api/settings/@jupyterlab/apputils-extension:notification")

    assert viewers["schema"]["properties"]["defaultViewers"]["default"] == {"markdown": "Markdown Preview"}
    assert news["schema"]["properties"]["fetchNews"]["default"] == "false"


def test_the_kernel_is_the_kits(server: Server) -> None:
    """Another kernel called python3, put before ours by the user's own settings, does not stand in for it."""
    kernels = server.get("api/kernelspecs")

    assert kernels["default"] == "python3"
    assert kernels["kernelspecs"]["python3"]["spec"]["display_name"] != "not ours"


def test_one_ctrl_c_stops_it_and_leaves_nothing(server: Server) -> None:
    """Interrupted once, it ends in order, and only the kit's state folder was written to."""
    server.process.send_signal(signal.SIGINT)

    assert server.process.wait() == 0
    assert list((server.home / "state/jupyter/runtime").glob("jpserver-*")) == []
    assert not (server.home / ".local").exists()
    assert [path.name for path in (server.home / ".jupyter").iterdir()] == ["jupyter_server_config.json"]


def test_a_taken_port_is_said_and_the_next_one_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where someone listens already, the line names the port it goes to."""
    monkeypatch.setenv("LAB_STATE", str(tmp_path))
    with socket.socket() as other:
        other.bind((lab.HOST, 0))
        other.listen()
        port = other.getsockname()[1]
        told = CliRunner().invoke(lab.main, ["--check", "--lang", "zh", "--port", str(port)])

    assert told.exit_code == 0
    assert re.search(rf"^port {port}: taken; using (?!{port})\d+$", told.stderr, re.MULTILINE)
    assert re.search(rf"^{PAGE}: opens at port (?!{port})\d+, JupyterLab 4", told.stdout)


def test_no_port_at_all_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """When all ports tried are taken, the message says which, and what to do."""
    monkeypatch.setattr(lab, "PORTS_TRIED", 1)
    with socket.socket() as other:
        other.bind((lab.HOST, 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(click.ClickException, match=f"port {port}: taken, .*choose another with --port"):
            lab.free_port(port)


def test_a_missing_page_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the page was removed, nothing starts; the line says which one and how to make it again."""
    monkeypatch.setattr(workspace, "kit_root", lambda: tmp_path)
    told = CliRunner().invoke(lab.main, ["--check", "--lang", "en"])

    assert told.exit_code == 1
    assert told.stderr == (
        "notebooks/en/00-start-here.ipynb: missing; make it again with python -m labkit.notebook_build\n"
    )


@pytest.mark.parametrize("root", [True, False])
def test_root_is_allowed_only_to_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: bool) -> None:
    """JupyterLab's own guard against running as root is lifted for root alone."""
    monkeypatch.setattr(lab, "is_root", lambda: root)
    lab.write_settings(tmp_path, "en", Path("x.ipynb"), 8888, browser=False)
    server = json.loads((tmp_path / "config/jupyter_server_config.json").read_text("utf-8"))["ServerApp"]

    assert server["allow_root"] is root
