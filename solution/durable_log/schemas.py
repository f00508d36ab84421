"""Typed schemas for the data of events, and how data of an old version becomes today's (E4, E6).

    class Order(msgspec.Struct, forbid_unknown_fields=True):
        items: list[str]
        currency: str

    def upcast_v1_v2(data):
        return {**data, "currency": "EUR"}

    schemas = Schemas(Schema("order", Order, upcast_v1_v2), strict=True)
    log = await DurableLog.open("shop-7", schemas=schemas)

An event's `v` is the version of its type's schema. What is stored is never rewritten: a reader brings old data to
today's form each time, and stops at what it does not know rather than guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from .contract import SCHEMA_VERSION, Event
from .errors import SchemaError, UnknownVersionError

Upcast = Callable[[Any], Any]
"""Takes the data of one version, which it may change in place, and gives that of the next."""

# Of msgspec's words only those that come from the schema: others quote the data.
_FROM_THE_SCHEMA = re.compile(r"(?:Expected `[^`]*`|Object missing required field `[^`]*`)")
_PLACE = re.compile(r" - at `([^`]*)`$")


class Schema:
    """What the data of one type must look like today, and how it came to look so.

    Its version is one more than the number of its upcasts, so a version without a way to the next cannot be declared.
    """

    def __init__(self, type: str, shape: Any, *upcasts: Upcast) -> None:  # noqa: A002 - as in append
        """Declare a type.

        Args:
            type: the event's type.
            shape: a `msgspec.Struct`, or any type that msgspec can validate.
            upcasts: from version 1 to 2, from 2 to 3, and so on; call them upcast_v1_v2, upcast_v2_v3.

        Raises: TypeError when msgspec cannot validate the shape.
        """
        msgspec.json.Decoder(shape)
        self.type = type
        self.shape = shape
        self.upcasts = upcasts
        self.version = len(upcasts) + 1


class Schemas:
    """The types that a program knows. With `strict`, an event of any other type is neither written nor read."""

    def __init__(self, *schemas: Schema, strict: bool = False) -> None:
        """Take one schema for each type. Raises: ValueError for a type with two."""
        self._of = {schema.type: schema for schema in schemas}
        self._strict = strict
        if len(self._of) < len(schemas):
            raise ValueError("schemas: a type has two; declare its older versions as upcasts of one schema")

    def check(self, type: str, data: Any) -> int:  # noqa: A002
        """Give the version that `data`, about to be stored, has; 1 for a type without a schema.

        Raises: SchemaError.
        """
        schema = self._of.get(type)
        if schema is None:
            if self._strict:
                raise SchemaError(
                    "type: is not among the schemas; declare it, or open the log with strict=False"
                )
            return SCHEMA_VERSION
        try:
            msgspec.convert(data, schema.shape, strict=True)
        except (msgspec.ValidationError, RecursionError) as problem:
            raise SchemaError(f"data{_fault(problem)}; look at the schema of this type") from None
        return schema.version

    def upcast(self, event: Event) -> Event:
        """Give the event with its data and `v` as of today; the very event when they are.

        Raises:
            UnknownVersionError: the type or its version is not known here.
            SchemaError: an upcast failed, or gave what its schema refuses.
        """
        schema = self._of.get(event.type)
        if schema is None and self._strict:
            raise UnknownVersionError(
                f"{event.session}: event {event.sequence} is of a type that is not among the schemas (version "
                f"{event.v} of it); declare the type; nothing was changed"
            )
        newest = schema.version if schema else SCHEMA_VERSION
        if not 1 <= event.v <= newest:
            raise UnknownVersionError(
                f"{event.session}: event {event.sequence} is of version {event.v} of its type, this program knows "
                f"versions up to {newest}; read it with a newer program; nothing was changed"
            )
        return event if schema is None or event.v == newest else self._upcast(event, schema)

    def _upcast(self, event: Event, schema: Schema) -> Event:
        where = f"{event.session}: event {event.sequence}: version {event.v} of its type"
        data = event.data
        for version, upcast in enumerate(schema.upcasts[event.v - 1 :], start=event.v):
            try:
                data = upcast(data)
            except Exception as error:  # noqa: BLE001 - its words may hold data
                raise SchemaError(
                    f"{where}: its upcast from {version} to {version + 1} failed ({type(error).__name__}); mend the upcast"
                ) from None
        try:
            msgspec.convert(data, schema.shape, strict=True)
        except (msgspec.ValidationError, RecursionError) as problem:
            raise SchemaError(
                f"{where}: after its upcasts the data{_fault(problem)}; mend the upcasts"
            ) from None
        return msgspec.structs.replace(event, v=schema.version, data=data)

    def typed(self, event: Event) -> Any:
        """Give the data of an event, as `read` gave it, as an object of its type's shape; as it is without a schema.

        Raises: SchemaError.
        """
        schema = self._of.get(event.type)
        if schema is None:
            return event.data
        try:
            return msgspec.convert(event.data, schema.shape, strict=True)
        except (msgspec.ValidationError, RecursionError) as problem:
            raise SchemaError(
                f"{event.session}: event {event.sequence}: its data{_fault(problem)}; look at the schema"
            ) from None


def _fault(problem: Exception) -> str:
    """Say what msgspec found, in the schema's words alone."""
    text = str(problem)
    place, what = _PLACE.search(text), _FROM_THE_SCHEMA.match(text)
    at = f" at {place[1]}" if place else ""
    return f"{at}: is not what the schema asks for" + (f" ({what[0].replace('`', '')})" if what else "")
