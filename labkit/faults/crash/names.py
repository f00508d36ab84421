"""Which file is which, while code is recorded: numbers by device and inode, and the names that lead to them."""

from __future__ import annotations

Key = tuple[int, int]
"""Device and inode. A system uses inodes again; whoever makes a file gives it a new number."""


class Names:
    """Which number a file has, and which names lead to it."""

    def __init__(self) -> None:
        self._numbers: dict[Key, int] = {}
        self._at: dict[str, int] = {}
        self._latest: dict[int, str] = {}
        self._folders: set[int] = set()

    def new(self, key: Key, path: str = "", *, folder: bool = False) -> int:
        """Give a number to a file or folder that was not there before, whatever had its inode."""
        self._numbers[key] = number = len(self._latest)
        self._folders |= {number} if folder else set()
        self.named(number, path)
        return number

    def is_folder(self, number: int) -> bool:
        """Say whether this is a folder."""
        return number in self._folders

    def number(self, key: Key) -> int | None:
        """Return the number of a file that was met before."""
        return self._numbers.get(key)

    def named(self, number: int, path: str) -> None:
        """Learn a name; it is the latest that is known."""
        self._latest[number] = path
        if path:
            self._at[path] = number

    def latest(self, number: int) -> str:
        """Return the latest name that is known; "" for a file that never had one."""
        return self._latest[number]

    def gone(self, path: str) -> int:
        """Forget a name, and return whose it was; the file may have others. -1 for a name that is unknown."""
        number = self._at.pop(path, -1)
        if number >= 0 and self._latest[number] == path:
            self._latest[number] = next((other for other, of in self._at.items() if of == number), path)
        return number

    def moved(self, path: str, to: str) -> None:
        """Learn that a name became another, and all names below it with it."""
        self.gone(to)
        for old in [name for name in self._at if name == path or name.startswith(path + "/")]:
            number, new = self._at.pop(old), to + old[len(path) :]
            self.named(number, new)

    def below(self, path: str) -> list[str]:
        """List a name and all names below it, the deepest first."""
        return sorted(
            (name for name in self._at if name == path or name.startswith(path + "/")), reverse=True
        )
