"""What a submission's classes offer, read from its source by the grader: no child's word is needed for it (G1).

Code that took the line over could otherwise pass with a class that has no methods. Nothing is run or imported here, and a
source that Python does not read is left to the child, which says so in its own words.
"""

from __future__ import annotations

import ast
import builtins
import warnings
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Literal

from grader.suites.check import Text
from labkit.workspace import HOMEWORK_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

STORE, ERROR = "JsonlSessionStore", "CorruptLogError"
CALLS = {"append": 2, "read": 0}
"""The store's methods, and how many arguments each is given."""

MAX_SOURCE_BYTES = 256 * 1024
_NAME = "<handed-in>"
Kind = Literal["def", "async def", "other"]
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef

_ONE_PARSE = Lock()
"""Python before 3.11.8 counts the depth of all threads' parses as one, and raises SystemError when two of them meet."""

warnings.filterwarnings("ignore", module=_NAME)  # of a student's spelling, on the grader's screen


@dataclass(frozen=True, slots=True)
class Interface:
    """How the store's methods are written, by name, and what is wrong with the whole, if anything is.

    `other` is whatever is not a plain function: decorated, assigned, inherited from where we cannot look.
    """

    methods: Mapping[str, Kind]
    problem: Text | None = None


def read_interface(files: Mapping[str, bytes]) -> Interface:
    """Read the interface of lesson 22 from the submission's files, by their names.

    The homework among them is judged by itself: that it cannot be read says nothing of its lesson.
    """
    large = [name for name, raw in files.items() if len(raw) > MAX_SOURCE_BYTES and name != HOMEWORK_FILE]
    if large:
        return Interface({}, Text(f"{large[0]} 超过 256 KiB", f"{large[0]} is larger than 256 KiB"))
    trees = {name.removesuffix(".py"): _parsed(raw) for name, raw in files.items()}
    read = {name: tree for name, tree in trees.items() if tree}
    if trees.keys() - read.keys() - {HOMEWORK_FILE.removesuffix(".py")}:
        return Interface(dict.fromkeys(CALLS, "other"))
    sources = _Sources(read)
    methods: dict[str, Kind] = {}
    for name, arguments in CALLS.items():
        found = sources.method(STORE, name)
        if found is None:
            return Interface(
                {}, Text(f"源码里 {STORE} 没有方法 {name}", f"{STORE} has no method {name} in the source")
            )
        if isinstance(found, _FUNCTION) and not found.decorator_list:
            if not _takes(found, 1 + arguments):
                return Interface(
                    {}, Text(f"{name} 的参数个数不对", f"{name} takes another number of arguments")
                )
            methods[name] = "async def" if isinstance(found, ast.AsyncFunctionDef) else "def"
        else:
            methods[name] = "other"
    if not sources.is_exception(ERROR):
        return Interface(
            {}, Text(f"源码里 {ERROR} 不是异常类", f"{ERROR} is no exception class in the source")
        )
    return Interface(methods)


def _parsed(raw: bytes) -> ast.Module | None:
    """Read one source; None for one that Python does not read, or that is too large to try."""
    if len(raw) > MAX_SOURCE_BYTES:
        return None
    try:
        with _ONE_PARSE:
            return ast.parse(raw, _NAME)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class _Module:
    """What the names of one file stand for: a class, a name of another file of the package, or another name of this one."""

    def __init__(self, tree: ast.Module) -> None:
        self.names: dict[str, ast.ClassDef | tuple[str | None, str]] = {}
        self.everything_of: list[str] = []
        self.set_later: set[str] = set()
        for node in ast.walk(tree):  # once: it takes longer than everything else here
            if isinstance(node, ast.ClassDef):
                self.names[node.name] = node
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                self.set_later.add(node.attr)
            elif isinstance(node, ast.ImportFrom):
                self._import(node)
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self.names[target.id] = (None, node.value.id)

    def _import(self, node: ast.ImportFrom) -> None:
        source = (node.module or "").rpartition(".")[2]
        for alias in node.names:
            if alias.name == "*":
                self.everything_of.append(source)
            else:
                self.names[alias.asname or alias.name] = (source, alias.name)


class _Sources:
    """The files of a package, as modules by their names."""

    def __init__(self, trees: Mapping[str, ast.Module]) -> None:
        self._modules = {name: _Module(tree) for name, tree in trees.items()}
        self._set_later = set().union(*(module.set_later for module in self._modules.values()))

    def method(self, owner: str, name: str) -> ast.stmt | None:
        """Give what binds the method in a class or the classes that it stands on; None when nothing does."""
        for _, found in self._line("__init__", owner):
            for statement in reversed(found.body):
                if name in _bound(statement):
                    return statement
        return ast.Pass() if name in self._set_later else None

    def is_exception(self, owner: str) -> bool:
        """Say whether a class stands on one of Python's exceptions."""
        bases = {_last(base) for _, found in self._line("__init__", owner) for base in found.bases}
        known = (getattr(builtins, name, None) for name in bases if name)
        return any(isinstance(kind, type) and issubclass(kind, BaseException) for kind in known)

    def _line(self, module: str, name: str) -> Iterator[tuple[str, ast.ClassDef]]:
        """Give the class of this name, and every one of the package that it stands on, with their modules."""
        waiting, seen = [(module, name)], set()
        while waiting:
            place = waiting.pop(0)
            found = None if place in seen else self._found(*place)
            seen.add(place)
            if isinstance(found, ast.ClassDef):
                yield place[0], found
                waiting += [(place[0], base) for base in map(_last, found.bases) if base]
            elif found:
                waiting.append((found[0] or place[0], found[1]))

    def _found(self, module: str, name: str) -> ast.ClassDef | tuple[str | None, str] | None:
        known = self._modules.get(module)
        if known is None:
            return None
        if name in known.names:
            return known.names[name]
        others = (other for other in known.everything_of if self._found(other, name))
        return next(((other, name) for other in others), None)


def _bound(statement: ast.stmt) -> set[str]:
    """Name what a statement of a class body binds."""
    if isinstance(statement, _FUNCTION):
        return {statement.name}
    return {
        node.id
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _last(base: ast.expr) -> str | None:
    """Give the last part of a name: `Plain`, `stores.Plain`, `Plain[int]`."""
    if isinstance(base, ast.Subscript):
        return _last(base.value)
    return base.id if isinstance(base, ast.Name) else base.attr if isinstance(base, ast.Attribute) else None


def _takes(function: ast.FunctionDef | ast.AsyncFunctionDef, count: int) -> bool:
    """Say whether a function can be called with so many positional arguments, `self` among them."""
    given = function.args
    most = len(given.posonlyargs) + len(given.args)
    least = most - len(given.defaults)
    needed = sum(default is None for default in given.kw_defaults)
    return least <= count and (count <= most or given.vararg is not None) and not needed
