"""Once an agent has started: what a state cannot tell, and what repeating it does to the world outside."""

from __future__ import annotations

import hmac
import os
import secrets

from labkit.experiments.lesson_04.garden import TASK, Garden
from labkit.experiments.lesson_04.scenes import Scene, Scenes, Script, scene, scenes

MAILS = "outside/mails.txt"
_HAPPENED_BEFORE_THE_AGENT = ("claim_started", "claim_completed", "controlled_interruption")


async def killed_agents() -> Scenes:
    """Kill runner and agent in the middle of an edit, after a new file, after a mail, and when all was done (C04-27)."""

    def script(*words: str) -> Script:
        def play(garden: Garden) -> None:
            garden.run(*garden.agent("worker", *words, "cut"))
            _wait_for_the_agent(garden)
            garden.note("phase", garden.record("state")["phase"])
            garden.type("git diff --stat -- src", keep=("|",))
            garden.type("git status --short -- src")
            garden.note(MAILS, _mails(garden))

        return play

    return await scenes(
        "killed-agents", {word: script(word) for word in ("half", "new", "mail", "edit")}, "claimed"
    )


async def replayed_mail() -> Scene:
    """Cut a round after its mail went out, force the state back to claimed, and run again (C04-28)."""
    return await scene("replayed-mail", _replay("mail"), "claimed", "events")


async def replayed_mail_with_key() -> Scenes:
    """Do the same again, without and with an idempotency key that the mail service knows (C04-29)."""
    scripts = {"without-key": _replay("mail"), "with-key": _replay("mail-once")}
    return await scenes("replayed-with-key", scripts, "claimed")


def _replay(mail: str) -> Script:
    def play(garden: Garden) -> None:
        garden.run(*garden.agent("worker", mail, "cut"))
        _wait_for_the_agent(garden)
        garden.run()
        _forge_claimed(garden)
        garden.note("phase", garden.record("state")["phase"])
        garden.run(*garden.agent("worker", mail, "edit"))
        garden.note("events", garden.types())
        garden.note(MAILS, _mails(garden))

    return play


def _forge_claimed(garden: Garden) -> None:
    """Do what must not be done: say in state and log that no agent has begun."""
    garden.edit(garden.path("state"), phase="claimed")
    lines = garden.path("events").read_bytes().split(b"\n")
    kept = [
        line for line, kind in zip(lines, garden.types(), strict=False) if kind in _HAPPENED_BEFORE_THE_AGENT
    ]
    garden.path("events").write_bytes(b"".join(line + b"\n" for line in kept))


def _mails(garden: Garden) -> list[str]:
    path = garden.beside / MAILS
    return path.read_text("utf-8").splitlines() if path.exists() else []


def _wait_for_the_agent(garden: Garden) -> None:
    """Wait until nobody holds the runner's lock: an agent inherits it, and may outlive its killed runner for a moment."""
    if os.name == "nt":
        return
    import fcntl  # noqa: PLC0415 — not on Windows

    with (garden.loop / "runner.lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)


async def edited_history() -> Scene:
    """Rewrite one event of a finished task, read it again, and compare it with a signed copy kept outside (C04-33)."""

    def script(garden: Garden) -> None:
        key, log = secrets.token_bytes(32), garden.path("events")
        witness = garden.beside / "witness"
        witness.mkdir()
        (witness / log.name).write_bytes(log.read_bytes())
        (witness / "signature").write_bytes(hmac.digest(key, log.read_bytes(), "sha256"))
        log.write_bytes(log.read_bytes().replace(b'"decision":"completed"', b'"decision":"rejected"'))

        garden.note("read_events", garden.quietly("python", "-c", _READ, str(log)).out.split())
        garden.run()
        signature = (witness / "signature").read_bytes()
        for name, path in (("loop", log), ("witness", witness / log.name)):
            garden.note(
                f"signature-{name}",
                hmac.compare_digest(signature, hmac.digest(key, path.read_bytes(), "sha256")),
            )

    return await scene("edited-history", script, "finished", "events")


_READ = (
    "import sys; from pathlib import Path; from issue_garden.state_store import read_events; "
    "print(*read_events(Path(sys.argv[1])).types)"
)


async def redo() -> Scene:
    """Put code and queue back with Git and run; then set ``.loop`` aside and run (C04-31)."""

    def script(garden: Garden) -> None:
        garden.type("git restore src tasks")
        garden.type("git clean --quiet --force tasks")
        garden.run()
        old = garden.beside / "issue-garden-loop-previous"
        garden.loop.rename(old)
        garden.note("mv .loop ../issue-garden-loop-previous", sorted(path.name for path in old.iterdir()))
        garden.run()
        garden.note("claim_started", garden.types().count("claim_started"))
        garden.note("../issue-garden-loop-previous", (old / "results" / f"{TASK}.json").exists())

    return await scene("redo", script, "finished")
