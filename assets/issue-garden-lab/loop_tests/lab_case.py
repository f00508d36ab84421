"""A small lab in a temporary folder, with a repository of its own: what the control plane's tests stand on."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

LAB = Path(__file__).resolve().parents[1]


class LabCase(unittest.TestCase):
    """Gives each test its own ``self.lab`` with the real contract, a queue and a little source, committed."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.lab = Path(folder.name).resolve() / "lab"
        for name in (
            "src/search.mjs",
            "test/search.test.mjs",
        ):  # not the real ones: those change as one learns
            (self.lab / name).parent.mkdir(parents=True)
            (self.lab / name).write_text("export {};\n", "utf-8")
        for name in ("loop.contract.json", ".gitignore", ".gitattributes"):
            shutil.copy(LAB / name, self.lab / name)
        for queue in ("inbox", "processing", "done", "closed"):
            (self.lab / "tasks" / queue).mkdir(parents=True)
            (self.lab / "tasks" / queue / ".gitkeep").touch()
        self.git("init", "-q", "--template=")
        self.commit()

    def git(self, *arguments: str) -> None:
        """Run Git in the small lab, as somebody whose own settings do not matter."""
        settings = ("-c", "user.name=lab", "-c", "user.email=lab@localhost", "-c", "commit.gpgsign=false")
        hooks = ("-c", "core.hooksPath=/dev/null")
        subprocess.run(["git", *settings, *hooks, *arguments], cwd=self.lab, check=True, capture_output=True)

    def commit(self) -> None:
        """Commit everything there is."""
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "a state to start from")

    def contract_with(self, **fields: Any) -> None:
        """Rewrite the contract with some fields changed; None leaves a field out."""
        path = self.lab / "loop.contract.json"
        value = json.loads(path.read_text("utf-8")) | fields
        kept = {name: content for name, content in value.items() if content is not None}
        path.write_text(json.dumps(kept), "utf-8")

    def put_task(self, task_id: str, *, file_name: str = "", **fields: Any) -> Path:
        """Put a task into the inbox."""
        path = self.lab / "tasks" / "inbox" / (file_name or f"{task_id}.json")
        task = {"id": task_id, "title": "t", "goal": "g", "acceptance": "acceptance/fullwidth-space.test.mjs"}
        path.write_text(json.dumps(task | fields), "utf-8")
        return path
