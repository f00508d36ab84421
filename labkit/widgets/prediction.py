"""A question that is answered before a cell runs, and compared with what then happens."""

from __future__ import annotations

from typing import Any

import traitlets

from labkit import actions, views
from labkit.widgets import parts
from labkit.words import catalogue, t


class Prediction(parts.Part):
    """Remembers the answer on disk, so that it is still there after a restart."""

    _esm = parts.script("prediction.js")
    question = traitlets.Unicode().tag(sync=True)
    options: traitlets.List[Any] = traitlets.List().tag(sync=True)
    answer = traitlets.Unicode().tag(sync=True)
    verdict = traitlets.Dict().tag(sync=True)

    def __init__(self, question: str, options: tuple[str, ...]) -> None:
        self.key = question
        super().__init__(
            question=_text(question),
            options=[[option, _text(f"{question}.{option}", option)] for option in options],
            answer=actions.predictions().get(question, ""),
            words={"answer": t("predict.answer"), "tag": t("predict.tag")},
        )
        self._say()
        self.observe(self._answered, "answer")

    def compare(self, happened: object) -> Prediction:
        """Show what happened beside the answer, and return this widget, so that it can close the cell.

        ``happened`` is compared as text, white space aside. Without an answer the outcome is shown all the same.
        """
        shown = dict(map(tuple, self.options)).get(str(happened), str(happened))
        if not self.answer:
            line = views.Line("quiet", t("predict.unanswered", happened=shown))
        elif "".join(self.answer.split()) == "".join(str(happened).split()):
            line = views.Line("good", t("predict.right", happened=shown))
        else:
            said = dict(map(tuple, self.options)).get(self.answer, self.answer)
            line = views.Line("surprise", t("predict.wrong", said=said, happened=shown))
        self.verdict = {"mark": line.mark, "text": line.text}
        return self

    def _answered(self, _change: object) -> None:
        actions.remember_prediction(self.key, self.answer)
        self._say()

    def _say(self) -> None:
        self.verdict = {"mark": "quiet", "text": t("predict.kept" if self.answer else "predict.ask")}


def _text(key: str, otherwise: str | None = None) -> str:
    """Return the catalogue's text for a key; a question that is not in the catalogue stands for itself."""
    return t(key) if key in catalogue() else otherwise or key
