"""An agent that does one thing for each word, in their order: python ../worker.py edit mail cut.

half       writes half of its change to src/search.mjs
edit       writes the whole change
new        leaves a new file, src/punctuation.mjs
mail       sends a mail: one line in ../outside/mails.txt, where no record of the lab looks
mail-once  the same with an idempotency key: the mail service knows the key of each mail that it has sent
cut        ends its runner the hard way, as a power cut would, and then itself
"""

import os
import signal
import sys
from pathlib import Path

SOURCE = Path("src", "search.mjs")
MAILS = Path("..", "outside", "mails.txt")


def edited() -> bytes:
    """Return the source with the change that the task asks for."""
    return SOURCE.read_bytes().replace(rb".replace(/\s+/gu", rb".replace(/[\s\p{P}]+/gu")


def send(key: str) -> None:
    """Send a mail, as the service does it: a key that it has seen before makes it do nothing."""
    MAILS.parent.mkdir(exist_ok=True)
    sent = MAILS.read_text("utf-8").splitlines() if MAILS.exists() else []
    if key == "no key" or not any(line.startswith(f"{key}:") for line in sent):
        with MAILS.open("a", encoding="utf-8") as ledger:
            ledger.write(f"{key}: one mail\n")


for word in sys.argv[1:]:
    if word == "half":
        SOURCE.write_bytes(edited()[: len(edited()) // 2])
    elif word == "edit":
        SOURCE.write_bytes(edited())
    elif word == "new":
        Path("src", "punctuation.mjs").write_text("export const marks = /\\p{P}/gu;\n", encoding="utf-8")
    elif word == "mail":
        send("no key")
    elif word == "mail-once":
        send("issue-002")
    elif word == "cut":
        os.kill(os.getppid(), getattr(signal, "SIGKILL", signal.SIGTERM))
        sys.exit()
print('{"status": "changed", "summary": "done"}')
