"""The instructor's notebook: a small class graded by the real command, its matrix, a forger taken apart.

Nothing here judges: `statelab grade` does, in a process of its own, and what is shown is what it left on disk.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from IPython.display import Code, Markdown

from labkit import actions, workspace
from labkit.experiments import cards
from labkit.experiments.bench import fresh_folder, shown_path
from labkit.words import language, t

NOTEBOOK = "instructor"
LESSON = "22"
CLASS = ("right", "burned-number", "race", "untouched-starter", "forger")
STORE = Path("lesson_22/session_store.py")
CLAIM = "\n\nclaim_success()\n"
"""The line of the forger's store that sends forged answers when it is loaded."""
_SIGNS = {"": "✓", "not-implemented": "○", "tamper": "!"}
_FAILED = "✗"
_STYLE = """<style>
.inst-scroll{overflow-x:auto}
.inst-matrix .turned{writing-mode:vertical-rl;transform:rotate(180deg);vertical-align:top;font-weight:normal}
.inst-matrix th,.inst-matrix td{padding:2px 4px;white-space:nowrap}
</style>"""


@dataclass(frozen=True, slots=True)
class Folder:
    """What lies in a folder: names, each with how many files are below it."""

    place: Path
    names: tuple[str, ...]

    def _repr_html_(self) -> str:
        shown = {
            name: t(
                "inst.files", n=len([path for path in (self.place / name).rglob("[!.]*") if path.is_file()])
            )
            if (self.place / name).is_dir()
            else t("inst.bytes", n=(self.place / name).stat().st_size)
            for name in self.names
        }
        return f"<p><code>{escape(shown_path(self.place))}</code></p>{cards.named_list(shown)}"


@dataclass(frozen=True, slots=True)
class Graded:
    """What one run left: the folder of its reports, and the rows of `outcomes.json`, by submission."""

    out: Path
    rows: dict[str, dict[str, Any]]

    @property
    def verdicts(self) -> dict[str, str]:
        """Submission -> complete, ok, or its gravest reason."""
        return {
            name: "complete" if self._lesson(name)["complete"] else row["verdict"]
            for name, row in self.rows.items()
        }

    def points(self, name: str) -> float:
        """Give what a submission earned. Raises: KeyError."""
        return float(self._lesson(name)["points"]["earned"])

    def missed_by(self, test: str) -> list[str]:
        """Give the submissions that did not pass one test: a column of the matrix."""
        return [name for name in self.rows if test in self.missed(name)]

    def missed(self, name: str) -> dict[str, str]:
        """Give the tests that a submission did not pass, each with its reason: a row of the matrix. Raises: KeyError."""
        return {test["id"]: test["reason"] for test in self._lesson(name)["tests"] if test["reason"]}

    def feedback(self, name: str) -> Markdown:
        """Show what a student gets back, as far as it is in the reader's language. Raises: OSError."""
        text = (self.out / "feedback" / f"{name}.md").read_text("utf-8")
        return Markdown(text.partition("\n---\n")[0])  # type: ignore[no-untyped-call]

    @property
    def files(self) -> Folder:
        """What was written for the class."""
        return Folder(
            self.out, tuple(sorted(path.name for path in self.out.iterdir() if path.name[0] != "."))
        )

    def _lesson(self, name: str) -> dict[str, Any]:
        lesson: dict[str, Any] = self.rows[name]["lessons"][LESSON]
        return lesson

    def _repr_html_(self) -> str:
        tests = next(iter(self.rows.values()))["lessons"][LESSON]["tests"]
        head = "".join(
            f'<th scope="col">{t(f"inst.{key}")}</th>' for key in ("submission", "verdict", "points")
        )
        head += "".join(f'<th scope="col" class="turned">{_short(test["id"])}</th>' for test in tests)
        body = "".join(f"<tr>{self._row(name)}</tr>" for name in self.rows)
        table = f"<table class='seen-table inst-matrix'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        region = f'<div class="inst-scroll" tabindex="0" role="group" aria-label="{t("inst.matrix")}">{table}</div>'
        return f"{cards.STYLE}{_STYLE}{region}<p>{t('inst.key')}</p>"

    def _row(self, name: str) -> str:
        cells = [
            _word(self.verdicts[name]),
            f"{self.points(name):g}",
            *map(_sign, self._lesson(name)["tests"]),
        ]
        return f'<th scope="row">{escape(name)}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in cells)


def _short(test: str) -> str:
    return test.removeprefix(f"{LESSON}-")


def _sign(test: dict[str, Any]) -> str:
    return _SIGNS.get(test["reason"], _FAILED)


def _word(verdict: str) -> str:
    return t(f"inst.{verdict}")


def collect() -> Folder:
    """Lay down a small class, as if five students had handed in: one folder each."""
    place = fresh_folder("class", NOTEBOOK)
    for name in CLASS:
        shutil.copytree(_sample(name), place / name, ignore=shutil.ignore_patterns("__pycache__"))
    return Folder(place, CLASS)


async def grade() -> Graded:
    """Grade the class by the command that you will type for your own."""
    return await _grade(workspace.scratch(NOTEBOOK) / "class", "reports")


def forger_code() -> Code:
    """Show the forger's store."""
    return Code((_sample("forger") / STORE).read_text("utf-8"), language="python")  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class Apart:
    """The forger as handed in, and with its forged answers taken out: what each claims, and what it ran into."""

    graded: Graded

    def caught_by(self, name: str) -> str:
        """Give the reason for which the first required test was not passed. Raises: KeyError."""
        return next(iter(self.graded.missed(name).values()))

    def message(self, name: str) -> str:
        """Give what that test says, in the reader's language. Raises: KeyError."""
        tests = self.graded.rows[name]["lessons"][LESSON]["tests"]
        return str(next(test["message"] for test in tests if test["message"])[language()])

    def _repr_html_(self) -> str:
        body = [
            [
                t(f"inst.{name}"),
                t(f"inst.{name}-claims"),
                t(f"inst.{name}-evidence"),
                _word(self.caught_by(name)),
                self.message(name),
            ]
            for name in self.graded.rows
        ]
        return cards.table(
            [t(f"inst.{key}") for key in ("variant", "claims", "evidence", "verdict", "message")], body
        )


async def take_apart() -> Apart:
    """Grade the forger twice: as it was handed in, and without the line that sends forged answers."""
    place = fresh_folder("apart", NOTEBOOK)
    for name in ("forging", "lying"):
        shutil.copytree(_sample("forger"), place / name, ignore=shutil.ignore_patterns("__pycache__"))
    store = place / "lying" / STORE
    store.write_text(store.read_text("utf-8").replace(CLAIM, "\n"), "utf-8")
    return Apart(await _grade(place, "apart-reports"))


async def my_forgery() -> Graded:
    """Grade a forgery of your own; the first time, lay the forger down for you to work on."""
    place = workspace.scratch(NOTEBOOK) / "my-forgery"
    if not (place / "mine").exists():
        shutil.copytree(_sample("forger"), place / "mine", ignore=shutil.ignore_patterns("__pycache__"))
    return await _grade(place, "my-forgery-reports")


def _sample(name: str) -> Path:
    return workspace.kit_root() / "assets" / "sample-class" / name


async def _grade(place: Path, reports: str) -> Graded:
    """Run `statelab grade` on a folder and read what it wrote. Raises: RuntimeError when it wrote nothing."""
    out = fresh_folder(reports, NOTEBOOK)
    done = await asyncio.to_thread(
        subprocess.run,
        actions.grade_command(LESSON, place, out, language()),
        cwd=workspace.kit_root(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    try:
        found = json.loads((out / "outcomes.json").read_bytes())
    except OSError:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or [
            f"exit code {done.returncode}"
        ]
        raise RuntimeError(f"statelab grade: no outcomes ({said[0]}); run it in a terminal") from None
    return Graded(out, {row["submission"]: row for row in found["submissions"]})
