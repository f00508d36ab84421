"""What happens to secrets before anything is written: hidden (the default), refused, or encrypted (E7).

    DurableLog.open(...)                              # redact: each secret is replaced by [redacted]
    DurableLog.open(..., secrets=refuse)              # SecretError, nothing is written
    DurableLog.open(..., secrets=Encrypt(cipher))     # [encrypted:…], readable again with Encrypt(cipher).reveal

A secret is known by the name it stands under, by its own shape, or by both (`secret_names`, `secret_text`); nested
data, keys, texts that hold JSON, headers, command lines and whole environments are searched. What looks like any other
text, and stands under no telling name, cannot be known: this is a net, not a proof.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NoReturn, Protocol

from . import secret_names, secret_text
from .errors import SecretError

_DEEPEST_LEVEL = 120  # levels; a log stores fewer
_PASSES = 8
_ATOMS = frozenset({int, float, bool, type(None)})
_TOO_DEEP = "[redacted:too deep]"

_REDACTED = re.compile(r"\[redacted(?::[a-z ]{1,20})?\]")
_ENCRYPTED = re.compile(
    r"\[redacted(?::[a-z ]{1,20})?\]|\[encrypted:(?P<number>number:)?(?P<sealed>[A-Za-z0-9_-]+={0,2})\]"
)


# A glance at JSON: what stands between a name and a value, or could begin more than these, becomes !, what a token is
# made of becomes x.
_MARKS = bytes(
    ord("!" if byte == 0xEF or byte in b":=[\\" else "x" if chr(byte) in secret_text.TOKEN else " ")
    for byte in range(256)
)
_LONG_RUN = b"x" * secret_text.SHORTEST_SHAPE
_MOST_NAMES = 4096
_plain_names: set[str] = set()


class SecretPolicy(Protocol):
    """What a log does with the data of an event before it is stored.

    A policy gives back the very object when it changes nothing, and never changes the one it was given.
    """

    def __call__(self, data: Any) -> Any:
        """Give the data as it may be stored. Raises: SecretError."""
        ...

    def clears(self, raw: bytes, data: Any) -> bool:
        """Say at a glance that the policy need not be asked about `data`, whose JSON is `raw`. False says nothing."""
        ...

    def reveal(self, data: Any) -> Any:
        """Undo what can be undone; two events are the same when what they reveal is."""
        ...


class Cipher(Protocol):
    """What `Encrypt` needs; `cryptography.fernet.Fernet` is one."""

    def encrypt(self, data: bytes, /) -> bytes:
        """Seal and authenticate bytes."""
        ...

    def decrypt(self, data: bytes, /) -> bytes:
        """Open what `encrypt` has sealed; raise on anything else."""
        ...


class Keep:
    """Stores everything as it is: for data that was looked through before."""

    def __call__(self, data: Any) -> Any:
        """Give the data back."""
        return data

    def clears(self, raw: bytes, data: Any) -> bool:  # noqa: ARG002
        """Say yes: there is nothing to do."""
        return True

    def reveal(self, data: Any) -> Any:
        """Give the data back."""
        return data


class Redact:
    """Puts `[redacted]` in the place of each secret.

    Text stays text, lists and objects keep their shape, `true`, `false` and `null` stay; a number becomes the text
    `[redacted:number]`, since any number in its place would lie.
    """

    def __call__(self, data: Any) -> Any:
        """Give the data without its secrets. Raises nothing, whatever the data is."""
        return data if _is_plain(data) else _Search(self._hide, _REDACTED).value(data)

    def clears(self, raw: bytes, data: Any) -> bool:
        """Say at a glance that there is nothing to hide: in a flat object of harmless names, without a sign of more.

        Every member has one colon, so one more would be in a text or in an object within. rfind is twice as fast as find.
        """
        marks = raw.translate(_MARKS)
        return (
            data.__class__ is dict
            and marks.count(b"!") == len(data)
            and marks.rfind(_LONG_RUN) < 0
            and raw.rfind(b"--") < 0
            and raw.rfind(b"password") < 0
            and (_plain_names.issuperset(data) or _are_plain(data))
        )

    def reveal(self, data: Any) -> Any:
        """Give the data back: what was hidden is gone."""
        return data

    @staticmethod
    def _hide(_secret: str, kind: str) -> str:
        return f"[redacted:{kind}]" if kind else "[redacted]"


class Refuse(Redact):
    """Refuses data that holds a secret; what was redacted before is none."""

    @staticmethod
    def _hide(_secret: str, kind: str) -> NoReturn:  # noqa: ARG004
        raise SecretError(
            "data: holds what looks like a secret; take it out, or open the log with secrets=redact to have it hidden"
        )


class Encrypt(Redact):
    """Puts `[encrypted:…]` in the place of each secret, sealed by a cipher that the caller brings.

        from cryptography.fernet import Fernet
        policy = Encrypt(Fernet(key))
        log = await DurableLog.open(root, session, secrets=policy)
        policy.reveal(event.data)

    The cipher must authenticate what it seals. Its key is never stored and never shown.
    """

    def __init__(self, cipher: Cipher) -> None:
        self._cipher = cipher

    def __call__(self, data: Any) -> Any:
        """Give the data with its secrets sealed. Raises: SecretError when the cipher fails."""
        return data if _is_plain(data) else _Search(self._seal, _ENCRYPTED, exactly=True).value(data)

    def reveal(self, data: Any) -> Any:
        """Give the data as it was before. Raises: SecretError when something was sealed with another key, or altered."""
        if isinstance(data, str):
            return self._open_text(data)
        if isinstance(data, list):
            return [self.reveal(item) for item in data]
        if isinstance(data, dict):
            return {self.reveal(key): self.reveal(value) for key, value in data.items()}
        return data

    def _seal(self, secret: str, kind: str) -> str:
        try:
            sealed = self._cipher.encrypt(secret.encode("utf-8", "surrogatepass"))
        except Exception as error:  # noqa: BLE001 - a cipher's words may hold what it was to hide
            raise SecretError(
                f"data: the cipher failed ({type(error).__name__}); nothing was written; look at the cipher"
            ) from None
        text = base64.urlsafe_b64encode(sealed).decode()
        return f"[encrypted:{kind}:{text}]" if kind else f"[encrypted:{text}]"

    def _open_text(self, text: str) -> Any:
        if (whole := _ENCRYPTED.fullmatch(text)) and whole["number"]:
            return json.loads(self._open(whole))
        return _ENCRYPTED.sub(self._open, text)

    def _open(self, found: re.Match[str]) -> str:
        if not found["sealed"]:
            return found[0]
        try:
            sealed = base64.b64decode(found["sealed"], altchars=b"-_", validate=True)
            return self._cipher.decrypt(sealed).decode("utf-8", "surrogatepass")
        except Exception as error:  # noqa: BLE001 - as above
            raise SecretError(
                f"data: cannot be revealed ({type(error).__name__}); use the cipher and key that sealed it"
            ) from None


keep = Keep()
redact = Redact()
refuse = Refuse()


def _is_plain(value: Any, level: int = 0) -> bool:
    """Say at little cost that there is nothing to hide: so it is with nearly all data. False says nothing."""
    kind = value.__class__
    if kind is str:
        return not secret_text.may_hold(value)
    if kind is dict:
        return level < _DEEPEST_LEVEL and _is_plain_object(value, level + 1)
    if kind is list:
        return level < _DEEPEST_LEVEL and all(_is_plain_item(item, level + 1) for item in value)
    return not isinstance(value, str | dict | list)


def _is_plain_object(members: dict[Any, Any], level: int) -> bool:
    for key, member in members.items():
        if not _is_plain_name(key) or (member.__class__ not in _ATOMS and not _is_plain(member, level)):
            return False
    return True


def _is_plain_item(item: Any, level: int) -> bool:
    if item.__class__ is str and item[:1] == "-":  # an option's name; the next item is its value
        return False
    is_pair = item.__class__ is list and len(item) == 2
    return not (is_pair and isinstance(item[0], str) and not _is_plain_name(item[0])) and _is_plain(
        item, level
    )


@lru_cache(maxsize=4096)
def _is_plain_name(name: Any) -> bool:
    return not isinstance(name, str) or not (secret_names.is_telling(name) or secret_text.may_hold(name))


def _are_plain(names: Iterable[str]) -> bool:
    """Look at names that are new here, and remember those that tell nothing."""
    if not all(map(_is_plain_name, names)):
        return False
    if len(_plain_names) < _MOST_NAMES:
        _plain_names.update(names)
    return True


class _Search:
    """One walk through one value.

    `hide` gives what stands in a secret's place; `mask` knows what it gives. A text that is JSON and holds a secret is
    written anew without it or, when it must come back `exactly`, hidden as a whole.
    """

    def __init__(
        self, hide: Callable[[str, str], str], mask: re.Pattern[str], *, exactly: bool = False
    ) -> None:
        self._exactly = exactly
        self._hide = hide
        self._mask = mask
        self._seen: dict[tuple[int, str], tuple[Any, Any]] = {}
        self._level = 0

    def value(self, value: Any) -> Any:
        """Search any value; the very object comes back when nothing is hidden in it."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return self._once(value, "", self._list)
        if isinstance(value, dict):
            return self._once(value, "", self._object)
        return value

    def _once(self, value: Any, rule: str, search: Callable[[Any], Any]) -> Any:
        """Search a list or object once by one rule, wherever it stands; within itself, or too deep, it is given up."""
        place = (id(value), rule)
        if place not in self._seen and self._level < _DEEPEST_LEVEL:
            self._seen[place] = (value, _TOO_DEEP)
            self._level += 1
            self._seen[place] = (value, search(value))
            self._level -= 1
        return self._seen[place][1] if place in self._seen else _TOO_DEEP

    # --- Objects and lists ---

    def _object(self, members: dict[Any, Any]) -> Any:
        environment = secret_names.is_environment(members)
        named = any(_names_secret(members.get(key)) for key in secret_names.NAME_KEYS)
        hidden: dict[Any, Any] = {}
        for key, value in members.items():
            whole = (named and key in secret_names.VALUE_KEYS) or (environment and not _is_harmless(key))
            found = self._all(value, numbers=True) if whole else self._member(key, value)
            hidden[self._key(key, hidden, members)] = found
        return hidden if _differ(members, hidden) else members

    def _member(self, key: Any, value: Any) -> Any:
        if not isinstance(key, str):
            return self.value(value)
        if secret_names.is_secret(key):
            return self._all(value, numbers=not secret_names.counts(key))
        if key.lower() in secret_names.ENVIRONMENTS and isinstance(value, list | dict):
            return self._variables(value)
        return self.value(value)

    def _key(self, key: Any, hidden: dict[Any, Any], members: dict[Any, Any]) -> Any:
        found = self._text(key) if isinstance(key, str) else key
        if found is key:
            return key
        number, free = 1, found
        while free in hidden or free in members:
            number += 1
            free = f"{found} {number}"
        return free

    def _list(self, items: list[Any]) -> Any:
        pairs = all(isinstance(item, list) and len(item) == 2 and isinstance(item[0], str) for item in items)
        hidden = []
        before: Any = None
        for item in items:
            if pairs:
                hidden.append(_like(item, [self.value(item[0]), self._member(*item)]))
            elif (
                isinstance(item, str)
                and isinstance(before, str)
                and before[:1] == "-"
                and _names_secret(before)
            ):
                hidden.append(self._all(item, numbers=True))
            else:
                hidden.append(self.value(item))
            before = item
        return _like(items, hidden)

    def _variables(self, variables: Any) -> Any:
        """Hide the values of an environment, but for those known to be harmless; a list holds NAME=value or name and value."""
        if isinstance(variables, dict):
            hidden = {
                key: self._member(key, value) if _is_harmless(key) else self._all(value, numbers=True)
                for key, value in variables.items()
            }
            return hidden if _differ(variables, hidden) else variables
        return _like(variables, [self._variable(item) for item in variables])

    def _variable(self, item: Any) -> Any:
        if isinstance(item, str):
            name, sign, value = item.partition("=")
            harmless = not sign or secret_names.is_harmless_variable(name)
            found = value if harmless else self._all(value, numbers=True)
            return self._text(item) if found is value else f"{name}={found}"
        if isinstance(item, dict):
            name = next((item[key] for key in secret_names.NAME_KEYS if isinstance(item.get(key), str)), "")
            if not secret_names.is_harmless_variable(name):
                hidden = {
                    key: self._all(value, numbers=True)
                    if key in secret_names.VALUE_KEYS
                    else self.value(value)
                    for key, value in item.items()
                }
                return hidden if _differ(item, hidden) else item
        return self.value(item)

    def _all(self, value: Any, *, numbers: bool) -> Any:
        """Hide every text in a value, and its numbers when they are no counts."""
        if isinstance(value, str):
            return value if not value or self._mask.fullmatch(value) else self._hide(value, "")
        rule = "all" if numbers else "all but numbers"
        if isinstance(value, list):
            return self._once(
                value, rule, lambda items: _like(items, [self._all(item, numbers=numbers) for item in items])
            )
        if isinstance(value, dict):
            return self._once(value, rule, lambda members: self._all_members(members, numbers=numbers))
        if isinstance(value, int | float) and not isinstance(value, bool) and numbers:
            return self._hide(_digits(value), "number")
        return value

    def _all_members(self, members: dict[Any, Any], *, numbers: bool) -> Any:
        hidden: dict[Any, Any] = {}
        for key, value in members.items():
            hidden[self._key(key, hidden, members)] = self._all(value, numbers=numbers)
        return hidden if _differ(members, hidden) else members

    # --- Texts ---

    def _text(self, text: str) -> str:
        if not secret_text.may_hold(text):
            return text
        if (inner := self._json(text)) is not None:
            return inner
        return self._lines(text) if "\n" in text else self._plain(text)

    def _json(self, text: str) -> str | None:
        """Search the value of a text that is JSON; None when it is none. Written anew, compactly, only when it must be."""
        if not text.lstrip()[:1] or text.lstrip()[0] not in '{["' or self._level >= _DEEPEST_LEVEL:
            return None
        try:
            value = _STRICT.decode(text)
        except (ValueError, RecursionError):
            return None
        self._level += 1
        found = self.value(value)
        self._level -= 1
        if found is value:
            return text
        if self._exactly:
            return self._hide(text, "")
        return json.dumps(found, ensure_ascii=text.isascii(), separators=(",", ":"))

    def _lines(self, text: str) -> str:
        """Search a text in which some lines are JSON, each such line as the value it is."""
        done: list[str] = []
        plain: list[str] = []
        for line in text.split("\n"):
            if (inner := self._json(line)) is None:
                plain.append(line)
                continue
            if plain:
                done.append(self._plain("\n".join(plain)))
                plain = []
            done.append(inner)
        if plain:
            done.append(self._plain("\n".join(plain)))
        hidden = "\n".join(done)
        return text if hidden == text else hidden

    def _plain(self, text: str) -> str:
        """Hide what the rules find, again until they find no more: what one hid may bring two others together."""
        for _ in range(_PASSES):
            spans = secret_text.spans(text, self._mask)
            if not spans:
                break
            parts, at = [], 0
            for begin, end in spans:
                parts += [text[at:begin], self._hide(text[begin:end], "")]
                at = end
            text = "".join([*parts, text[at:]])
        return text


def _is_harmless(name: Any) -> bool:
    return isinstance(name, str) and secret_names.is_harmless_variable(name)


def _names_secret(name: Any) -> bool:
    return isinstance(name, str) and secret_names.is_secret(name)


def _like(items: list[Any], hidden: list[Any]) -> list[Any]:
    return items if all(map(_same, items, hidden)) else hidden


def _differ(members: dict[Any, Any], hidden: dict[Any, Any]) -> bool:
    return not (all(map(_same, members, hidden)) and all(map(_same, members.values(), hidden.values())))


def _same(one: object, other: object) -> bool:
    return one is other


def _digits(number: float) -> str:
    try:
        return json.dumps(number)
    except ValueError:  # more digits than Python turns into text; such a number is refused later
        return "0"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("doubled key")
    return members


def _refuse(_token: str) -> NoReturn:
    raise ValueError("not a number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("overflow")
    return number


_STRICT = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite)
