"""Where things are, and what to read."""

from __future__ import annotations

from html import escape
from pathlib import Path

from IPython.display import HTML, Code

from labkit import workspace
from labkit.experiments.bench import shown_path
from labkit.experiments.lesson_04 import prepared
from labkit.experiments.lesson_04.garden import LAB, NOTEBOOK
from labkit.words import t

_AGENTS = Path(__file__).with_name("agents")


def where_you_are() -> HTML:
    """Say which code stands beside the reference, and where the experiments leave their files."""
    code, folder = map(shown_path, (workspace.lesson_source("04"), workspace.scratch(NOTEBOOK)))
    return HTML(f"<p>{escape(t('scene.where', code=code, folder=folder))}</p>")  # type: ignore[no-untyped-call]


def playground() -> Path:
    """Return the lab to play with, made if it is not there: with the reference's spine, apart from the learner's own."""
    place = workspace.scratch(NOTEBOOK) / "control-room"
    return place / LAB if (place / LAB).exists() else prepared.copy_of("ready", place, quick=False)


def agent_script(name: str) -> Code:
    """Return one of the small agents, to be read in the notebook."""
    return Code((_AGENTS / f"{name}.py").read_text("utf-8"), language="python")  # type: ignore[no-untyped-call]
