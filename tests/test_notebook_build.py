"""The builder and the stripper of notebooks: one source, two languages, nothing a run left behind."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from labkit import notebook_build, notebook_strip

PAIR = "<!-- zh hello -->\n你好，日志。\n\n<!-- en hello -->\nHello, log.\n\n"
CODE = "<!-- code count -->\n```python\nlines = 1\nassert lines == 1\n```\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A notebooks folder holding one sound source, not built yet."""
    (tmp_path / "source").mkdir()
    write(tmp_path, PAIR + CODE)
    assert notebook_build.accept(tmp_path, ("hello",)) == []
    return tmp_path


def write(folder: Path, text: str) -> None:
    (folder / "source" / "one.md").write_text(text, "utf-8")


def source(folder: Path) -> str:
    return (folder / "source" / "one.md").read_text("utf-8")


def built(folder: Path, language: str) -> Path:
    return folder / language / "one.ipynb"


def build(folder: Path) -> list[str]:
    return notebook_build.build(folder, check=False)


def check(folder: Path) -> list[str]:
    return notebook_build.build(folder, check=True)


def only(problems: list[str]) -> str:
    """The one problem, which must have the house's form `where: what; what to do`."""
    assert len(problems) == 1, problems
    assert re.fullmatch(r"\S+?(:\d+)?: .+; .+", problems[0]), problems[0]
    return problems[0]


def test_both_languages_share_code_and_differ_in_prose(folder):
    """Built notebooks hold the same code cells under the same ids, each with its own prose."""
    assert build(folder) == []

    zh, en = (notebook_strip.load(built(folder, language))["cells"] for language in ("zh", "en"))
    assert zh[1] == en[1] == {
        "cell_type": "code", "id": "count", "metadata": {}, "outputs": [], "execution_count": None,
        "source": ["lines = 1\n", "assert lines == 1"],
    }  # fmt: skip
    assert (zh[0]["id"], zh[0]["source"]) == ("hello-zh", ["你好，日志。"])
    assert (en[0]["id"], en[0]["source"]) == ("hello-en", ["Hello, log."])


def test_built_notebooks_are_valid(folder):
    """What the builder writes is nbformat 4.5 by the schema of nbformat itself."""
    import nbformat  # noqa: PLC0415  (three seconds: only this test needs it)

    build(folder)

    nbformat.validate(nbformat.read(built(folder, "zh"), as_version=4))


def test_fresh_build_passes_check(folder):
    """After a build the check finds nothing, and a second build changes no byte."""
    build(folder)
    before = built(folder, "en").read_bytes()

    assert check(folder) == []
    assert build(folder) == []
    assert built(folder, "en").read_bytes() == before


def test_changed_chinese_makes_the_english_stale(folder):
    """Editing the Chinese text asks for the English to be read again, until it is accepted."""
    write(folder, source(folder).replace("你好，日志。", "你好，事件日志。"))

    assert "older than its Chinese" in only(build(folder))

    notebook_build.accept(folder, ("hello",))
    assert build(folder) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("<!-- zh a -->\n甲\n" + CODE, "one.md:1: cell a has no English"),
        ("<!-- en a of 00000000 -->\nA\n" + CODE, "one.md:1: cell a has no Chinese"),
        (CODE + CODE, "one.md:6: id count is used twice"),
        ("<!-- code -->\n```python\n1\n```\n", "one.md:1: unnamed or badly named cell"),
        ("<!-- code Count -->\n```python\n1\n```\n", "one.md:1: unnamed or badly named cell"),
        ("<!-- code count-zh -->\n```python\n1\n```\n", "one.md:1: unnamed or badly named cell"),
        ("words\n" + CODE, "one.md:1: text before the first cell"),
        ("<!-- code count -->\nlines = 1\n", "one.md:1: cell count is not exactly one ```python fence"),
        (
            "<!-- code count -->\n```python\n1\n```\n\n```python\n2\n```\n",
            "is not exactly one ```python fence",
        ),
        ("<!-- zh a -->\n\n<!-- en a -->\nA\n", "one.md:1: cell a is empty"),
    ],
)
def test_broken_source_is_refused_with_its_line(folder, text, says):
    """A source out of form is named by file and line, and builds nothing."""
    write(folder, text)

    assert says in only(build(folder))
    assert not built(folder, "zh").exists()


def test_two_pairs_of_one_name_are_refused(folder):
    """A repeated prose id is found although each half pairs up with its neighbour."""
    write(folder, source(folder) + source(folder).split("<!-- code")[0])

    assert all("used twice" in problem for problem in build(folder))
    assert build(folder)


def test_source_that_is_not_utf8_is_refused(folder):
    """A source saved in another encoding gives a message, not a traceback."""
    (folder / "source" / "one.md").write_bytes("<!-- zh a -->\n你".encode("gbk"))

    assert "not UTF-8" in only(build(folder))


def test_missing_built_notebook_is_found(folder):
    """The check names a notebook that was never built."""
    build(folder)
    built(folder, "zh").unlink()

    assert "missing" in only(check(folder))


def test_outputs_are_found_and_stripped(folder):
    """A run's outputs fail the check by name of the cell; `statelab clean` brings the committed bytes back."""
    build(folder)
    path = built(folder, "zh")
    committed = path.read_bytes()
    run(path)

    assert "first in cell count" in only(check(folder))

    done = CliRunner().invoke(notebook_strip.main, [str(path)])
    assert (done.exit_code, path.read_bytes()) == (0, committed)


def run(path: Path) -> None:
    """Leave in a notebook what JupyterLab leaves after a run and a save."""
    notebook = json.loads(path.read_bytes())
    notebook["cells"][1] |= {
        "execution_count": 3,
        "outputs": [{"output_type": "stream", "name": "stdout", "text": ["1"]}],
    }
    notebook["cells"][1]["metadata"] = {"execution": {"iopub.status.busy": "now"}, "scrolled": True}
    notebook["metadata"]["language_info"] |= {"version": "3.12.1", "file_extension": ".py"}
    notebook["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": {}}
    path.write_text(json.dumps(notebook), "utf-8")


def test_rebuild_after_a_run_is_allowed(folder):
    """Outputs alone are no hand edit: the build may replace them."""
    build(folder)
    run(built(folder, "zh"))

    assert build(folder) == []
    assert check(folder) == []


def test_hand_edit_is_never_overwritten(folder):
    """A built notebook that a person changed is refused with the way out, and stays as it is."""
    build(folder)
    path = built(folder, "en")
    path.write_text(path.read_text("utf-8").replace("Hello, log.", "My own note."), "utf-8")
    edited = path.read_bytes()

    assert "edited by hand" in only(build(folder))
    assert path.read_bytes() == edited


def test_built_notebook_without_source_is_found(folder):
    """A built notebook that lost its source is named."""
    build(folder)
    built(folder, "zh").rename(folder / "zh" / "two.ipynb")

    assert any("two.ipynb: has no source" in problem for problem in check(folder))


def test_hidden_code_cell_is_folded(folder):
    """A code cell marked hidden starts folded in JupyterLab."""
    write(folder, source(folder).replace("code count", "code count hidden"))
    build(folder)

    assert notebook_strip.load(built(folder, "zh"))["cells"][1]["metadata"] == {
        "jupyter": {"source_hidden": True}
    }


def test_command_lists_every_problem_and_exits_1(folder):
    """The command prints each problem on its own line; nothing found is exit 0."""
    arguments = ["--folder", str(folder)]
    assert CliRunner().invoke(notebook_build.main, [*arguments, "--check"]).exit_code == 1
    assert CliRunner().invoke(notebook_build.main, arguments).exit_code == 0
    assert CliRunner().invoke(notebook_build.main, [*arguments, "--check"]).exit_code == 0

    unknown = CliRunner().invoke(notebook_build.main, [*arguments, "--accept", "nobody"])
    assert (unknown.exit_code, "no pair of cells is called nobody" in unknown.stderr) == (1, True)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"cells":[1]}', b"\xff\xfe", b"[" * 100_000])
def test_file_that_is_no_notebook_is_left_alone(tmp_path, content):
    """Stripping something that is no notebook says so and changes nothing."""
    path = tmp_path / "notes.ipynb"
    path.write_bytes(content)

    done = CliRunner().invoke(notebook_strip.main, [str(path)])
    assert (done.exit_code, path.read_bytes()) == (1, content)
    assert "not a notebook" in done.stderr


def test_missing_file_is_a_message(tmp_path):
    """A path that is not there gives one clear line."""
    done = CliRunner().invoke(notebook_strip.main, [str(tmp_path / "gone.ipynb")])

    assert done.exit_code == 1
    only(done.stderr.strip().splitlines())


def test_strip_keeps_ids_and_sources(folder):
    """Stripping touches neither ids nor text nor order."""
    build(folder)
    before = notebook_strip.load(built(folder, "zh"))
    run(built(folder, "zh"))

    after = notebook_strip.strip(notebook_strip.load(built(folder, "zh")))
    assert [(c["id"], c["source"]) for c in after["cells"]] == [
        (c["id"], c["source"]) for c in before["cells"]
    ]
