"""What labs went through, to look at: a terminal's lines, what was found, files; and trials as a table. HTML without script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from html import escape

from labkit.experiments.cards import STYLE, file_listing, readable, shortened, table
from labkit.experiments.lesson_04.garden import Step
from labkit.experiments.lesson_04.records import Stepped
from labkit.experiments.lesson_04.scenes import Scene, Scenes, Trial, Trials
from labkit.experiments.lesson_04.sweeping import Strike, Swept
from labkit.naive import spine
from labkit.words import catalogue, t

_MARKS = {0: "✓", 75: "◦"}
"""Exit codes that are no refusal: done, and ended on purpose."""


def scenes(seen: Scenes) -> str:
    """Return one card a lab, next to each other where the window is wide enough."""
    cards = (_card(side, _title(side.name), _agreement(side, seen)) for side in seen.sides)
    return f'{STYLE}<div class="seen">{"".join(cards)}</div>'


def scene(seen: Scene) -> str:
    """Return the card of one lab, which needs no title."""
    return f'{STYLE}<div class="seen">{_card(seen, "", "")}</div>'


def _card(side: Scene, title: str, agreement: str) -> str:
    parts = [f"<h4>{escape(title)}</h4>"] if title else []
    parts += ["<ul>", *(_step(step) for step in side.steps), "</ul>"]
    if agreement:
        parts.append(f"<p>{escape(agreement)}</p>")
    if side.unfinished:
        parts.append(f"<p>○ {escape(t('seen.unfinished', message=side.unfinished))}</p>")
    parts += [file_listing(name, raw) for name, raw in side.files.items()]
    return f"<section>{''.join(parts)}</section>"


def _title(name: str) -> str:
    if hasattr(spine, name):
        return f"{t('seen.naive')} · {name}"
    return next((t(key) for key in (f"seen.{name}", f"scene.{name}") if key in catalogue()), name)


def _agreement(side: Scene, seen: Scenes) -> str:
    """Compare the learner's steps with the reference's; nothing to say about other labs, or before they exist."""
    if side.name != "yours" or side.unfinished:
        return ""
    for mine, reference in zip(side.steps, seen["kit"].steps, strict=False):
        if (mine.code, mine.said, mine.value) != (reference.code, reference.said, reference.value):
            return f"≠ {t('seen.differs', call=mine.text)}"
    return f"= {t('seen.same')}"


def _step(step: Step) -> str:
    if step.code is None:
        return f"<li>· {escape(_named(step.text))} → {escape(_found(step.value))}</li>"
    lines = [f'<li class="typed">$ {escape(step.text)}</li>', *_output(step), _end(step)]
    return "".join(lines)


def _output(step: Step) -> Iterable[str]:
    if step.answer:
        message = step.answer.get("message")
        if message:
            return [f'<li class="n">{escape(message)}</li>']
    lines = [line for line in step.out.splitlines() if line.strip()]
    kept = [line for line in lines if not step.keep or any(mark in line for mark in step.keep)]
    return shortened([f'<li class="n">{escape(readable(line.expandtabs().encode()))}</li>' for line in kept])


def _end(step: Step) -> str:
    code = step.code or 0
    mark = _MARKS.get(code, "✗")
    how = (
        t("room.by-signal", signal=_SIGNALS.get(-code, str(-code))) if code < 0 else t("room.exit", code=code)
    )
    return f"<li>{mark} {escape(' · '.join([how, *_said(step)]))}</li>"


_SIGNALS = {9: "SIGKILL", 15: "SIGTERM"}


def _said(step: Step) -> list[str]:
    return [" / ".join(part for part in step.said if part)] if step.answer else []


def _named(text: str) -> str:
    """Return a finding's name in the reader's language; names of files and fields stand for themselves."""
    return t(f"found.{text}") if f"found.{text}" in catalogue() else text


def _found(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return t("scene.yes" if value else "scene.no")
    if isinstance(value, str):
        return _named(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_found(one)}" for key, one in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_found, value)) or "∅"
    return str(value)


def trials(seen: Trials) -> str:
    """Return one row a change: what the reference's runner answered, in its words, and what the learner's did."""
    head = [t(f"refusals.{name}") for name in ("what", "exit", "decision", "cause")]
    head += [t("scene.unchanged"), t("scene.starts"), *([t("seen.yours")] if seen.yours else [])]
    rows = [
        [_kind(kind), *_trial(trial), *([_yours(seen.yours[kind], trial)] if seen.yours else [])]
        for kind, trial in seen.kit.items()
    ]
    return table(head, rows) + _messages(seen.kit)


def _kind(kind: str) -> str:
    return t(f"tamper.{kind}") if f"tamper.{kind}" in catalogue() else t(f"scene.{kind}")


def _trial(trial: Trial) -> list[str]:
    decision = f"{trial.decision} / {trial.reason}"
    return [str(trial.exit_code), decision, trial.cause or "–", _found(trial.unchanged), str(trial.starts)]


def _yours(mine: Trial, reference: Trial) -> str:
    if mine.unfinished:
        return f"○ {t('seen.unfinished', message=mine.unfinished)}"
    same = (mine.exit_code, mine.cause, mine.starts) == (
        reference.exit_code,
        reference.cause,
        reference.starts,
    )
    said = mine.cause or mine.decision or mine.message
    return f"{'=' if same and mine.unchanged == reference.unchanged else '≠'} {said}"


def _messages(kit: Mapping[str, Trial]) -> str:
    items = "".join(f"<li>{escape(trial.message)}</li>" for trial in kit.values())
    return f"<details><summary>{escape(t('refusals.message'))}</summary><ul>{items}</ul></details>"


def swept(seen: Swept) -> str:
    """Return a sweep as a table: one row for each story that the disk told, and what was said to it."""
    head = [
        t("scene.strikes"),
        *(t(f"scene.{name}") for name in ("queue", "state", "last-event", "disagree")),
    ]
    head += [t("matrix.verdict"), t("scene.starts")]
    stories = Counter((*_story(strike), str(strike.starts)) for strike in seen.strikes)
    return table(head, [[f"{count} ×", *story] for story, count in stories.items()])


def _story(strike: Strike) -> list[str]:
    said = " / ".join(strike.answer[key] for key in ("decision", "reason", "cause") if key in strike.answer)
    disagree = t(f"scene.{strike.disagreement}") if strike.disagreement else "–"
    return [", ".join(strike.places), strike.phase or "–", strike.last_event or "–", disagree, said]


def moments(stepped: Stepped) -> str:
    """Return the stops of one round as a table."""
    head = [t("scene.phase"), "inode", t("scene.last-event"), t("scene.log-bytes"), t("scene.kept")]
    rows = [
        [one.phase, str(one.inode), one.last_event, str(one.log_bytes), _found(one.kept)]
        for one in stepped.moments
    ]
    return table(head, rows)
