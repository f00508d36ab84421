"""Data has a form, forms have versions, and old data is read as today's without being rewritten (E4, E6)."""

from __future__ import annotations

import enum
from typing import Annotated, Literal

import msgspec
import pytest

from solution.durable_log.contract import GENESIS, Event
from solution.durable_log.errors import SchemaError, UnknownVersionError
from solution.durable_log.schemas import Schema, Schemas

SECRET = "hunter2"


class Colour(enum.Enum):
    RED = "red"


class Order(msgspec.Struct, forbid_unknown_fields=True):
    items: list[str]
    currency: str
    note: Annotated[str, msgspec.Meta(max_length=5)] = ""
    kind: Literal["a", "b"] = "a"
    colour: Colour = Colour.RED
    prices: dict[str, int] = {}


def upcast_v1_v2(data):
    return {"items": [data["item"]]}


def upcast_v2_v3(data):
    data["currency"] = "EUR"
    return data


SCHEMAS = Schemas(Schema("order", Order, upcast_v1_v2, upcast_v2_v3))
TODAY = {"items": ["tea"], "currency": "EUR"}


def event(data, v, type_="order"):
    fields = {"session": "s", "sequence": 7, "event_id": "e", "occurred_at": "", "previous_hash": GENESIS}
    return Event(
        v=v, type=type_, data=data, causation_id=None, correlation_id=None, event_hash=GENESIS, **fields
    )


def test_data_of_today_has_todays_version():
    """A type's version is one more than it has upcasts; a type without schema has version 1."""
    assert SCHEMAS.check("order", TODAY) == 3
    assert SCHEMAS.check("other", {"anything": 1}) == 1


@pytest.mark.parametrize(("v", "data"), [(1, {"item": "tea"}), (2, {"items": ["tea"]}), (3, TODAY)])
def test_data_of_every_version_is_read_as_todays(v, data):
    """Row 84: a new version hides no old event; each is brought to today's form, the rest of it untouched."""
    given = event(data, v)

    assert SCHEMAS.upcast(given) == msgspec.structs.replace(given, v=3, data=TODAY)


@pytest.mark.parametrize("v", [0, 4, 99])
def test_an_unknown_version_stops_and_both_are_named(v):
    """Row 83: data of a version that nobody here knows is not guessed at; the error names both versions."""
    with pytest.raises(UnknownVersionError, match=rf"event 7 .* version {v} .* up to 3"):
        SCHEMAS.upcast(event(TODAY, v))


def test_a_type_without_schema_has_version_one_only():
    """A version that some other program gave to a type is unknown here, strict or not."""
    assert SCHEMAS.upcast(event(1, 1, "other")).data == 1
    with pytest.raises(UnknownVersionError, match=r"version 2 .* up to 1"):
        SCHEMAS.upcast(event(1, 2, "other"))


def test_strict_knows_only_its_types():
    """With strict, a type without schema is neither written nor read."""
    strict = Schemas(Schema("order", Order, upcast_v1_v2, upcast_v2_v3), strict=True)

    with pytest.raises(SchemaError, match="not among the schemas"):
        strict.check("other", 1)
    with pytest.raises(UnknownVersionError, match="not among the schemas"):
        strict.upcast(event(1, 1, "other"))


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        {},
        {"items": ["tea"]},
        {"items": "tea", "currency": "EUR"},
        {"items": [1], "currency": "EUR"},
        {**TODAY, "extra": 1},
        {**TODAY, "note": "too long"},
        {**TODAY, "kind": "c"},
        {**TODAY, "colour": "blue"},
        {**TODAY, "prices": {"a": True}},
        {**TODAY, "prices": {"a": "1"}},
    ],
)
def test_data_of_another_form_is_refused(wrong):
    """Missing, unknown and mistyped fields and values out of range are refused; nothing is converted."""
    with pytest.raises(SchemaError):
        SCHEMAS.check("order", wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {**TODAY, SECRET: 1},
        {**TODAY, "kind": SECRET},
        {**TODAY, "colour": SECRET},
        {**TODAY, "note": SECRET},
        {**TODAY, "prices": {SECRET: SECRET}},
        {"items": SECRET, "currency": SECRET},
    ],
)
def test_a_refusal_says_nothing_of_the_data(wrong):
    """The error names the place and the schema's own words, never a value or a key."""
    with pytest.raises(SchemaError) as caught:
        SCHEMAS.check("order", wrong)

    assert SECRET not in repr(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_refusal_says_where_and_what():
    """The place within the data and what was expected there are told."""
    with pytest.raises(SchemaError, match=r"data at \$\.items\[0\]: .*\(Expected str\)"):
        SCHEMAS.check("order", {"items": [1], "currency": "EUR"})


@pytest.mark.parametrize(
    ("upcast", "told"),
    [
        (lambda data: data["no"], r"upcast from 1 to 2 failed \(KeyError\)"),
        (
            lambda data: {"items": [data["item"], 5], "currency": "x"},
            r"after its upcasts the data at \$\.items",
        ),
    ],
)
def test_an_upcast_that_fails_is_named(upcast, told):
    """An upcast that raises, or gives what the schema refuses, is told with the event, and without its data."""
    schemas = Schemas(Schema("order", Order, upcast))

    with pytest.raises(SchemaError, match=f"event 7: .*{told}") as caught:
        schemas.upcast(event({"item": SECRET}, 1))
    assert SECRET not in repr(caught.value)
    assert caught.value.__suppress_context__


def test_data_can_be_had_as_an_object():
    """Whoever wants today's data typed gets an object of its shape; without schema, the data."""
    assert SCHEMAS.typed(event(TODAY, 3)) == Order(["tea"], "EUR")
    assert SCHEMAS.typed(event(5, 1, "other")) == 5
    with pytest.raises(SchemaError, match="event 7"):
        SCHEMAS.typed(event(5, 3))


def test_a_type_has_one_schema():
    """Two schemas for one type, and a shape that cannot be checked, are refused when they are declared."""
    with pytest.raises(ValueError, match="a type has two"):
        Schemas(Schema("a", int), Schema("a", str))
    with pytest.raises(TypeError):
        Schema("a", object())
