"""Compares what was changed with what the contract allows (P11). It reads nothing and repairs nothing."""

from __future__ import annotations

from dataclasses import dataclass

from issue_garden.contract import Contract
from issue_garden.git_view import ABSENT, REGULAR, Change


@dataclass(frozen=True)
class BoundaryError:
    """One crossing: ``cause`` for programs, the path (None: the round as a whole), and a sentence."""

    cause: str
    path: str | None
    message: str

    def as_object(self) -> dict[str, str | None]:
        """The error as it stands in attempts and answers."""
        return dict(vars(self))


@dataclass(frozen=True)
class SizedChange:
    """A change with its lines; None where they cannot be counted, as in a binary file."""

    change: Change
    removed: int | None
    added: int | None

    @property
    def lines(self) -> int:
        """Removed plus added lines; 0 where they cannot be counted."""
        return (self.removed or 0) + (self.added or 0)


def check_boundary(changes: list[SizedChange], contract: Contract) -> list[BoundaryError]:
    """Return every crossing, in the order of the paths, the budgets last. Deletions and new files count like edits."""
    errors = [error for sized in changes if (error := _path_error(sized, contract))]
    if len(changes) > contract.max_files:
        zh, en = (
            f"改了 {len(changes)} 个文件，上限 {contract.max_files}",
            f"{len(changes)} files changed, {contract.max_files} at most",
        )
        errors.append(BoundaryError("too_many_files", None, f"{zh} ({en})"))
    lines = sum(sized.lines for sized in changes)
    if lines > contract.max_lines:
        zh, en = (
            f"改了 {lines} 行，上限 {contract.max_lines}",
            f"{lines} lines changed, {contract.max_lines} at most",
        )
        errors.append(BoundaryError("too_many_lines", None, f"{zh} ({en})"))
    return errors


def _path_error(sized: SizedChange, contract: Contract) -> BoundaryError | None:
    change, path = sized.change, sized.change.path
    if _covers(contract.protected_paths, path):
        return BoundaryError(
            "protected_path", path, f"{path}: 受保护，谁都不能改 (is protected; nobody may change it)"
        )
    if not _covers(contract.allowed_paths, path):
        return BoundaryError(
            "outside_allowed_paths",
            path,
            f"{path}: 不在契约允许的路径里 (is outside the paths that the contract allows)",
        )
    if change.kind == "unmerged":
        return BoundaryError("unmerged", path, f"{path}: 有未解决的合并 (holds an unresolved merge)")
    if change.kind == "hidden":
        return BoundaryError(
            "hidden",
            path,
            f"{path}: 对 Git 隐藏了，看不到改没改 (is hidden from Git; nobody sees its changes)",
        )
    if change.mode != ABSENT and not change.mode.startswith(REGULAR):
        return BoundaryError(
            "not_a_regular_file",
            path,
            f"{path}: 不是普通文件，可能指向别处 (is no regular file and may lead elsewhere)",
        )
    if sized.added is None:
        return BoundaryError(
            "binary_file", path, f"{path}: 二进制，或无法按行计算 (is binary, or cannot be counted in lines)"
        )
    return None


def _covers(paths: tuple[str, ...], path: str) -> bool:
    """A folder covers what is below it; a file covers itself, and whatever stands in its place."""
    return any(
        path.startswith(entry) if entry.endswith("/") else path.rstrip("/") == entry for entry in paths
    )
