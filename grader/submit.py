"""`statelab submit`: packs a learner's own work into one zip to hand in.

0 the zip is written   1 refused, nothing was written   2 wrong use   3 the kit itself failed
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

import click

from grader.intake import content_hash, reason
from grader.intake.manifest import Manifest, student_id
from grader.plain_text import printable
from grader.report.names import file_names
from grader.report.words import Language, chosen_language
from grader.submission_zip import (
    NotebookError,
    NotWholeError,
    Work,
    gather,
    uncommitted,
    write_whole,
)
from grader.suites import LESSONS
from grader.suites.check import Text
from labkit.workspace import WorkspaceError, target, target_folder

SCHEMA = 1
MAX_SHOWN = 5  # names in one sentence

SAID: dict[str, Text] = {
    "ask": Text("学号", "Your student id"),
    "no-id": Text(
        "--student：不是可用的学号；用 1 到 100 个看得见的字符",
        "--student: is no id that can be used; give 1 to 100 visible characters",
    ),
    "nothing": Text(
        "{folder}：没有可以提交的文件；请检查 --target", "{folder}: holds no file to hand in; check --target"
    ),
    "missing": Text(
        "第 {lesson} 课：{problem}；先补上，或用 --lesson 只交另一课，或加 --force 就这样提交",
        "lesson {lesson}: {problem}; put it back, or hand in the other lesson alone with --lesson, or add --force",
    ),
    "untouched": Text(
        "第 {lesson} 课还是发下来的样子，没有改过；先动手写，或加 --force 就这样提交",
        "lesson {lesson}: still as it was given out; write it first, or add --force",
    ),
    "one-untouched": Text("第 {lesson} 课还是发下来的样子", "lesson {lesson}: still as it was given out"),
    "uncommitted": Text(
        "有未提交到 Git 的改动，压缩包里是磁盘上现在的内容：{names}",
        "not committed to Git; the zip holds what is on disk now: {names}",
    ),
    "left-out": Text("没有放进去（{why}）：{names}", "left out ({why}): {names}"),
    "exists": Text(
        "{path}：已经有这个文件；加 --replace 覆盖，或用 --out 换个名字",
        "{path}: is there already; add --replace to write over it, or choose another --out",
    ),
    "unwritable": Text(
        "{path}：写不进去（{why}）；换一个 --out", "{path}: cannot be written ({why}); choose another --out"
    ),
    "written": Text("已打包：{path}", "Written: {path}"),
    "whose": Text("学号 {student} · 内容 {content}", "student {student} · content {content}"),
    "file": Text("  {name}（{size} 字节）", "  {name} ({size} bytes)"),
    "warning": Text("注意：{text}", "Note: {text}"),
    "next": Text("下一步：把这个文件交给老师。", "Next step: hand this file in."),
}


class Refused(click.ClickException):
    """Nothing was written, and the text says why."""

    exit_code = 1


class KitFault(click.ClickException):
    """The kit made a zip that it would not take back."""

    exit_code = 3


@click.command(epilog="Example: statelab submit --student 2026001 --out out/2026001.zip")
@click.option("--student", help="Your student id. Asked for on a terminal.")
@click.option(
    "--lesson",
    "lessons",
    multiple=True,
    type=click.Choice(LESSONS),
    help="One lesson; again for more. Default: all.",
)
@click.option("--target", "name", help="starter, solution or a folder. Default: LAB_TARGET, or starter.")
@click.option(
    "--notebook",
    "notebooks",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A notebook to hand in, too; again for more.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), show_default="out/ID.zip", help="The zip, or a folder for it."
)
@click.option("--replace", is_flag=True, help="Write over a file that is there.")
@click.option("--force", is_flag=True, help="Hand in although a lesson is missing or untouched.")
@click.option("--lang", type=click.Choice(["zh", "en"]), help="Language. Default: LAB_LANG, or the system's.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema 1) and nothing else.")
def submit(
    *,
    student: str | None,
    lessons: tuple[str, ...],
    name: str | None,
    notebooks: tuple[Path, ...],
    out: Path | None,
    replace: bool,
    force: bool,
    lang: str | None,
    as_json: bool,
) -> None:
    """Pack your work into one zip to hand in: the lessons' files, and whose they are."""
    language = chosen_language(lang)
    ident = _student(student, language)
    folder = _folder(name or target())
    try:
        work = gather(folder, lessons or LESSONS, notebooks)
    except NotebookError as error:
        raise click.BadParameter(str(error), param_hint="--notebook") from None
    warnings = _judged(folder, work, language, force=force)
    path = _path(out, ident)
    made_at = datetime.now(UTC).isoformat(timespec="seconds")
    manifest = Manifest(ident, version("agent-state-lab"), content_hash(work.files), made_at)
    _write(path, work, manifest, language, replace=replace)
    if as_json:
        click.echo(json.dumps(_plain(path, work, manifest, warnings), indent=1))
    else:
        _show(path, work, manifest, warnings, language)


def _student(given: str | None, language: Language) -> str:
    if given is None:
        if not sys.stdin.isatty():
            raise click.UsageError("--student: is missing; give your student id")
        given = click.prompt(_say("ask", language), type=str)
    ident = student_id(given)
    if not ident:
        raise click.UsageError(_say("no-id", language))
    return ident


def _folder(name: str) -> Path:
    try:
        return target_folder(name)
    except WorkspaceError as error:
        raise click.BadParameter(str(error), param_hint="--target") from None


def _judged(folder: Path, work: Work, language: Language, *, force: bool) -> list[Text]:
    """Refuse what was surely not meant, unless forced; give what is to be said all the same."""
    if not work.files:
        _refuse("nothing", language, folder=folder)
    for lesson in work.missing:
        problem = work.handins[lesson].problem
        if problem and not force:
            _refuse("missing", language, lesson=lesson, problem=getattr(problem, language))
    if len(work.untouched) == len(work.handins) and not force:
        _refuse("untouched", language, lesson=", ".join(work.untouched))
    warnings = [_filled("one-untouched", lesson=lesson) for lesson in work.untouched]
    if changed := uncommitted(folder, work):
        warnings.append(_filled("uncommitted", names=", ".join(changed)))
    return warnings + _left_out(work)


def _left_out(work: Work) -> list[Text]:
    """Say once for each reason what was left out, in a few names."""
    by_reason: dict[str, dict[str, None]] = {}
    for handin in work.handins.values():
        for entry in handin.left_out:
            by_reason.setdefault(entry.why, {})[printable(entry.name)] = None
    said = []
    for why, names in by_reason.items():
        shown = ", ".join(list(names)[:MAX_SHOWN]) + (
            f" … (+{len(names) - MAX_SHOWN})" * (len(names) > MAX_SHOWN)
        )
        text, words = SAID["left-out"], reason(why)
        said.append(
            Text(text.zh.format(names=shown, why=words.zh), text.en.format(names=shown, why=words.en))
        )
    return said


def _path(out: Path | None, ident: str) -> Path:
    own_name = f"{file_names([{'submission': ident}])[0]}.zip"
    if out is None:
        return Path("out") / own_name
    return out / own_name if out.is_dir() else out


def _write(path: Path, work: Work, manifest: Manifest, language: Language, *, replace: bool) -> None:
    try:
        write_whole(path, work, manifest, replace=replace)
    except FileExistsError:
        _refuse("exists", language, path=path)
    except OSError as error:
        _refuse("unwritable", language, path=path, why=error.strerror or "OSError")
    except NotWholeError as error:
        raise KitFault(str(error)) from None


def _plain(path: Path, work: Work, manifest: Manifest, warnings: list[Text]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "path": str(path),
        "student": manifest.student,
        "kit": manifest.kit,
        "content": manifest.content,
        "made_at": manifest.made_at,
        "lessons": [lesson for lesson, handin in work.handins.items() if handin.files],
        "files": {name: len(raw) for name, raw in {**work.files, **work.notebooks}.items()},
        "warnings": [{"en": text.en, "zh": text.zh} for text in warnings],
    }


def _show(path: Path, work: Work, manifest: Manifest, warnings: list[Text], language: Language) -> None:
    click.echo(_say("written", language, path=path))
    click.echo(_say("whose", language, student=manifest.student, content=manifest.content[:12]))
    for name, raw in {**work.files, **work.notebooks}.items():
        click.echo(_say("file", language, name=name, size=len(raw)))
    for text in warnings:
        click.echo(_say("warning", language, text=getattr(text, language)), err=True)
    click.echo(_say("next", language))


def _refuse(key: str, language: Language, **values: object) -> NoReturn:
    raise Refused(_say(key, language, **values))


def _say(key: str, language: Language, **values: object) -> str:
    return str(getattr(SAID[key], language)).format(**values)


def _filled(key: str, **values: object) -> Text:
    return Text(_say(key, "zh", **values), _say(key, "en", **values))
