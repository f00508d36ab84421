"""Notebooks in a kit that was handed out without the reference: what needs it says so, and the rest of the cell runs.

Nothing is judged differently. A statement that would need the reference's answer is not run to its end, and what it
would have named is a ``Missing``, which says so wherever it is used or shown. Cells stay as they are, so that they do
all of it again once the reference is there.
"""

from __future__ import annotations

import ast
from html import escape
from typing import Any, NoReturn

from labkit import workspace
from labkit.words import t


class ReferenceMissingError(NotImplementedError):
    """The reference's answer is needed, and this kit was handed out without it."""


class Missing:
    """Stands for what only the reference could have answered. Shown, it says so; used in any way, it raises that."""

    def _repr_html_(self) -> str:
        return f"<p>○ {escape(t('left-out.cell'))}</p>"

    def __repr__(self) -> str:
        return t("left-out.cell")

    def __getattr__(self, name: str) -> Any:
        if name.startswith(
            ("_repr_", "_ipython_")
        ):  # how a notebook asks in which forms a thing can be shown
            raise AttributeError(name)
        self._refuse()

    def _refuse(self, *_: object) -> NoReturn:
        raise ReferenceMissingError(t("left-out.cell"))

    __getitem__ = __iter__ = __len__ = __bool__ = __call__ = __contains__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __add__ = __truediv__ = _refuse
    __eq__ = __ne__ = __hash__ = _refuse


MISSING = Missing()


def need_reference() -> None:
    """Raise ReferenceMissingError in a kit that was handed out without the reference."""
    if workspace.reference_left_out():
        raise ReferenceMissingError(t("left-out.cell"))


class ByStatement(ast.NodeTransformer):
    """Lets every statement of a cell run by itself; one that needs the reference leaves ``MISSING`` where it assigns."""

    def visit_Module(self, node: ast.Module) -> ast.Module:
        """Rewrite one cell."""
        *before, last = node.body or [ast.Pass()]
        body: list[ast.stmt] = [_guarded(statement) for statement in before]
        if isinstance(last, ast.Expr):  # what a cell ends with is shown
            shown = ast.Name("_seen_last", ast.Store())
            body += [_guarded(ast.Assign([shown], last.value)), ast.Expr(ast.Name("_seen_last", ast.Load()))]
        else:
            body.append(_guarded(last))
        node.body = body
        return node


def _guarded(statement: ast.stmt) -> ast.stmt:
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return statement
    names = [
        name.id
        for name in ast.walk(statement)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    ]
    missing = f"{__name__.partition('.')[0]}.experiments.left_out"
    given = [f"__import__({missing!r}, fromlist=['MISSING']).MISSING"]
    source = "\n".join(f"{name} = {given[0]}" for name in names) or "pass"
    handler = ast.ExceptHandler(ast.Name("NotImplementedError", ast.Load()), None, ast.parse(source).body)
    return ast.Try([statement], [handler], [], [])


def install() -> None:
    """Let the notebook that imports the experiments work so, in a kit without the reference; else do nothing."""
    if not workspace.reference_left_out():
        return
    from IPython import get_ipython  # noqa: PLC0415 - a child process of an experiment has no need of it

    shell = get_ipython()
    if shell is not None and not any(isinstance(one, ByStatement) for one in shell.ast_transformers):
        shell.ast_transformers.append(ByStatement())
