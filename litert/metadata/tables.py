"""Tables of a flatbuffer as dicts, by a description of their fields.

The `flatbuffers` package knows how a table lies in a file and leaves what it holds to generated code, which no package that is
still kept up brings for TFLite Metadata. A description of a few lines (`schema.py`) takes its place, for writing and reading alike.

What is empty or 0 isn't written and, as the format has it, reads as if it were: a dict holds only what is there.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from flatbuffers import Builder, encode, number_types, packer
from flatbuffers.table import Table as Reader

MAX_TABLES = 100_000  # a hostile file may name one table many times over, and such lists in lists


@dataclass(frozen=True)
class Text:
    """A string, UTF-8."""


@dataclass(frozen=True)
class Number:
    """An integer, of a type of `flatbuffers.number_types`."""

    type: Any


@dataclass(frozen=True)
class Floats:
    """A list of float32."""


@dataclass(frozen=True)
class Table:
    """A table: by name of a field its id in the schema, counted from 0, and what it holds."""

    fields: Mapping[str, tuple[int, Any]]


@dataclass(frozen=True)
class Tables:
    """A list of tables."""

    of: Table


@dataclass(frozen=True)
class OneOf:
    """One of several tables, by its number in the schema's union, which is a field of its own with the id before the table's.

    Its value is a pair, number and table; one of another number is left out on reading.
    """

    options: Mapping[int, Table]


def to_bytes(table: Table, values: Mapping[str, Any], identifier: bytes) -> bytes:
    """The flatbuffer whose root is a table.

    Args:
        table: what the root is.
        values: what it holds, by field; nested tables as dicts.
        identifier: four bytes that tell the format.
    """
    builder = Builder(1024)
    builder.Finish(_write(builder, table, values), identifier)
    return bytes(builder.Output())


def from_bytes(table: Table, content: bytes) -> dict[str, Any]:
    """What the root table of a flatbuffer holds, by field.

    Raises:
        ValueError: an offset leads nowhere, a text isn't UTF-8, or the tables are more than `MAX_TABLES`.
    """
    try:
        return _Reading(content).table(table, encode.Get(packer.uoffset, content, 0))
    except (IndexError, OverflowError, RecursionError, struct.error, TypeError) as error:
        raise ValueError(" ".join(str(error).split())) from error


def _write(builder: Builder, table: Table, values: Mapping[str, Any]) -> int:
    parts = {name: _part(builder, kind, values[name]) for name, (_, kind) in table.fields.items() if values.get(name)}
    builder.StartObject(1 + max((slot for slot, _ in table.fields.values()), default=-1))
    for name, part in parts.items():
        slot, kind = table.fields[name]
        if isinstance(kind, Number):
            builder.PrependSlot(kind.type, slot, part, 0)
        else:
            if isinstance(kind, OneOf):
                builder.PrependUint8Slot(slot - 1, values[name][0], 0)
            builder.PrependUOffsetTRelativeSlot(slot, part, 0)
    return int(builder.EndObject())


def _part(builder: Builder, kind: Any, value: Any) -> int:
    """Writes what lies outside of its table and gives its offset; of a number, the number."""
    if isinstance(kind, Text):
        return int(builder.CreateString(value))
    if isinstance(kind, Floats):
        return int(builder.CreateNumpyVector(np.asarray(value, np.float32)))
    if isinstance(kind, Table):
        return _write(builder, kind, value)
    if isinstance(kind, OneOf):
        number, content = value
        return _write(builder, kind.options[number], content)
    if isinstance(kind, Tables):
        offsets = [_write(builder, kind.of, each) for each in value]
        builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            builder.PrependUOffsetTRelative(offset)
        return int(builder.EndVector())
    return int(value)


class _Reading:
    """One reading, which counts its tables."""

    def __init__(self, content: bytes) -> None:
        self._content, self._tables = content, 0

    def table(self, table: Table, position: int) -> dict[str, Any]:
        self._tables += 1
        if self._tables > MAX_TABLES:
            raise ValueError(f"more than {MAX_TABLES} tables")
        reader = Reader(self._content, position)
        values = {}
        for name, (slot, kind) in table.fields.items():
            offset = reader.Offset(4 + 2 * slot)
            if offset:
                value = self._value(reader, kind, offset, slot)
                if value is not None:
                    values[name] = value
        return values

    def _value(self, reader: Reader, kind: Any, offset: int, slot: int) -> Any:
        place = offset + reader.Pos
        if isinstance(kind, Text):
            return reader.String(place).decode()
        if isinstance(kind, Number):
            return reader.Get(kind.type, place)
        if isinstance(kind, Table):
            return self.table(kind, reader.Indirect(place))
        if isinstance(kind, OneOf):
            tag = reader.Offset(4 + 2 * (slot - 1))
            number = reader.Get(number_types.Uint8Flags, tag + reader.Pos) if tag else 0
            return (number, self.table(kind.options[number], reader.Indirect(place))) if number in kind.options else None
        start, count = reader.Vector(offset), reader.VectorLen(offset)
        if start + 4 * count > len(self._content):
            raise ValueError(f"a list of {count} entries, behind which the file ends")
        if isinstance(kind, Floats):
            return np.frombuffer(self._content, "<f4", count, start)
        return [self.table(kind.of, reader.Indirect(start + 4 * i)) for i in range(count)]
