"""The notebooks as a learner meets them: same in both languages, true to their claims, and whole when they are run."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from labkit.words import catalogue

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
NAMES = sorted(path.stem for path in (NOTEBOOKS / "source").glob("*.md"))
KIT = ("assets", "grader", "labkit", "notebooks", "solution", "starter", "pyproject.toml")
MOST_CODE_LINES = 12
HOMEWORK = [
    29,
    30,
    31,
    32,
    51,
    54,
    55,
    33,
    34,
    35,
    36,
    41,
    37,
    38,
    39,
    40,
    42,
    43,
    44,
    45,
    46,
    47,
    48,
    56,
    49,
    50,
    52,
    53,
]
"""Claims of lesson 22 that its homework shows, in teaching order."""


def cells(name: str, language: str, kind: str) -> dict[str, str]:
    """Cell id -> source, for one kind of cell in one notebook."""
    notebook = json.loads((NOTEBOOKS / language / f"{name}.ipynb").read_bytes())
    return {one["id"]: "".join(one["source"]) for one in notebook["cells"] if one["cell_type"] == kind}


def code(name: str) -> dict[str, str]:
    return cells(name, "zh", "code")


def parse(source: str) -> ast.Module:
    return compile(source, "cell", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def calls(source: str, function: str) -> list[ast.Call]:
    """Every call of a function or method of that name in a cell."""
    found = [node for node in ast.walk(parse(source)) if isinstance(node, ast.Call)]
    return [node for node in found if getattr(node.func, "id", getattr(node.func, "attr", "")) == function]


CLAIMS: list[dict[str, str]] = yaml.safe_load((NOTEBOOKS / "claims.yaml").read_text("utf-8"))


# --- Both languages, one notebook ---


@pytest.mark.parametrize("name", NAMES)
def test_code_is_the_same_in_both_languages(name):
    """Code cells have the same ids, order and sources in Chinese and English; prose stands at the same places."""
    assert list(cells(name, "zh", "code").items()) == list(cells(name, "en", "code").items())
    zh, en = (cells(name, language, "markdown") for language in ("zh", "en"))
    assert [key.removesuffix("-zh") for key in zh] == [key.removesuffix("-en") for key in en]


@pytest.mark.parametrize("name", NAMES)
def test_each_language_is_written_in_its_own(name):
    """No English paragraph was left in the Chinese notebook, and no Chinese sentence in the English one."""
    chinese = re.compile(r"[\u4e00-\u9fff]")

    assert all(chinese.search(text) for text in cells(name, "zh", "markdown").values())
    links_aside = (
        re.sub(r"\[[^\]]*\]\([^)]*\)|中文：", "", text) for text in cells(name, "en", "markdown").values()
    )
    assert not [text for text in links_aside if chinese.search(text)]


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere(name, language):
    """Every relative link of the prose names a file of the kit."""
    prose = "\n".join(cells(name, language, "markdown").values())
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", prose) if not link.startswith("http")]

    assert links
    assert [link for link in links if not (NOTEBOOKS / language / link).exists()] == []


@pytest.mark.parametrize("name", NAMES)
def test_cells_hold_no_logic(name):
    """A cell calls, asserts and shows. Whatever needs a loop, a branch or a function lives in labkit."""
    logic = (
        ast.For,
        ast.While,
        ast.If,
        ast.FunctionDef,
        ast.AsyncFunctionDef,
        ast.ClassDef,
        ast.With,
        ast.Try,
    )
    wrong = [
        cell_id
        for cell_id, source in code(name).items()
        if len(source.splitlines()) > MOST_CODE_LINES
        or any(isinstance(node, logic) for node in ast.walk(parse(source)))
    ]

    assert wrong == []


@pytest.mark.parametrize("name", NAMES)
def test_predictions_are_asked_and_answered(name):
    """Each question stands in the catalogue, is compared with one of its own options, and every option has its words."""
    asked: dict[str, list[str]] = {}
    for source in code(name).values():
        for call in calls(source, "predict"):
            key, options = (ast.literal_eval(argument) for argument in call.args)
            variable = parse(source).body[0].targets[0].id
            asked[variable] = options
            assert key in catalogue()
            named = {option for option in options if f"{key}.{option}" in catalogue()}
            assert all(option in named or re.fullmatch(r"\d+|[a-z_]+", option) for option in options)
    compared = {
        call.func.value.id: str(ast.literal_eval(call.args[0]))
        for source in code(name).values()
        for call in calls(source, "compare")
    }

    assert compared.keys() == asked.keys()
    assert all(compared[variable] in options for variable, options in asked.items())


# --- Claims ---


def test_every_claim_is_listed_once():
    """Lesson 22 makes 28 claims, its homework those of HOMEWORK, lesson 04 makes 34; each has its row, in order."""
    lessons = {"22": [*range(1, 29), *HOMEWORK], "04": range(1, 35)}
    assert [claim["id"] for claim in CLAIMS] == [
        f"C{lesson}-{number:02}" for lesson, numbers in lessons.items() for number in numbers
    ]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim["id"])
def test_claim_is_shown_and_asserted(claim):
    """A claim is told in both languages, and its cell asserts what it shows and is run by every runner."""
    assert re.search(r"[\u4e00-\u9fff]", claim["zh"])
    assert not re.search(r"[\u4e00-\u9fff]", claim["en"])
    source = code(claim["notebook"])[claim["cell"]]
    assert any(isinstance(node, ast.Assert) for node in parse(source).body)


def test_claims_are_shown_in_their_order():
    """The cells that show the claims follow each other as the claims do, each claim in a cell of its own."""
    for name in {claim["notebook"] for claim in CLAIMS}:
        order = list(code(name))
        places = [order.index(claim["cell"]) for claim in CLAIMS if claim["notebook"] == name]
        assert places == sorted(set(places))


@pytest.mark.parametrize("name", NAMES)
def test_no_cell_is_kept_from_the_runners(name):
    """No tag lets a cell fail or be skipped when the notebooks are run as tests."""
    for language in ("zh", "en"):
        notebook = json.loads((NOTEBOOKS / language / f"{name}.ipynb").read_bytes())
        tags = {tag for cell in notebook["cells"] for tag in cell["metadata"].get("tags", [])}
        assert tags <= {f"lang-{language}"}


# --- Run ---


@pytest.fixture(scope="module")
def kit(tmp_path_factory) -> Path:
    """A copy of the kit with its starter untouched, so that a run meets nobody's work and leaves none."""
    copy = tmp_path_factory.mktemp("kit")
    for part in KIT:
        source, target = ROOT / part, copy / part
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, target)
    subprocess.run(
        [sys.executable, "-m", "labkit.generate", "--force"],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy)},
        check=True,
        capture_output=True,
    )
    return copy


@pytest.fixture(scope="module", params=[("zh", "starter"), ("en", "solution")], ids="-".join)
def ran(request, kit) -> tuple[str, str, dict[str, Any]]:
    """Language, target, and every notebook of that language, executed from top to bottom on that target."""
    import nbformat  # noqa: PLC0415  (seconds: only the tests that run notebooks need it)
    from nbclient import NotebookClient  # noqa: PLC0415

    language, target = request.param
    settings = {**os.environ, "PYTHONPATH": str(kit), "LAB_LANG": language, "LAB_TARGET": target}
    executed = {}
    for name in NAMES:
        path = kit / "notebooks" / language / f"{name}.ipynb"
        notebook = nbformat.read(path, as_version=4)
        client = NotebookClient(notebook, timeout=120, allow_errors=True, store_widget_state=False)
        client.execute(env=settings, cwd=str(path.parent))
        executed[name] = notebook
    return language, target, executed


def outputs(notebook: Any) -> list[tuple[str, Any]]:
    return [(cell.id, output) for cell in notebook.cells for output in cell.get("outputs", [])]


def test_nothing_fails(ran):
    """Every cell of every notebook runs, and no output is an error, callbacks of widgets included."""
    _, _, executed = ran
    errors = [
        (name, cell, output.ename, output.evalue)
        for name, notebook in executed.items()
        for cell, output in outputs(notebook)
        if output.output_type == "error"
    ]
    silent = [
        cell.id
        for notebook in executed.values()
        for cell in notebook.cells
        if cell.cell_type == "code" and cell.execution_count is None
    ]

    assert errors == []
    assert silent == []


MISSING = {
    "22-task-state": ("实现 JSONL 撕裂恢复", {"see-23", "see-24"}),
    "04-state-spine": ("实现恢复检查", {"see-04"}),
}
"""By notebook: what its starter says, and the cells that show the starter whatever the target is."""


@pytest.mark.parametrize("name", MISSING)
def test_starter_is_told_as_text_what_is_missing(ran, name):
    """On the untouched starter the learner's column names the missing step; on the solution nothing is missing."""
    _, target, executed = ran
    message, always = MISSING[name]

    assert (message in shown(executed[name], always)) == (target == "starter")


@pytest.mark.parametrize("name", MISSING)
def test_outputs_speak_the_notebooks_language(ran, name):
    """What the kit itself says in an output is said in the language of the notebook."""
    language, _, executed = ran
    html = shown(executed[name])

    assert ("参考实现" in html, "Reference" in html) == (language == "zh", language == "en")


def shown(notebook: Any, without: Iterable[str] = ()) -> str:
    """Return the HTML of all outputs but those of some cells."""
    html = (
        output.get("data", {}).get("text/html", "")
        for cell, output in outputs(notebook)
        if cell not in without
    )
    return "".join(html)
