"""What both tools share at their edge: wrong usage is answered in JSON like everything else (P13). Given."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import NoReturn

from issue_garden.answers import Answer, answer_of, print_answer, refused


class JsonParser(argparse.ArgumentParser):
    """Refuses wrong usage as an answer on stdout; ``--help`` is for people and stays text."""

    def error(self, message: str) -> NoReturn:
        """Refuse, with the usage in the sentence."""
        usage = " ".join(self.format_usage().split())
        raise refused("bad_usage", "arguments", f"{message}; {usage}")


def end_with(run: Callable[[], Answer]) -> NoReturn:
    """Run, print the answer, and end the process with its exit code."""
    try:
        sys.exit(print_answer(answer_of(run)))
    except KeyboardInterrupt:
        print("停在中途；再运行一次，看它停在哪里 (stopped midway; run again to see where)", file=sys.stderr)
        sys.exit(130)
