# pyright: basic
"""Union of two schemas: the columns of both, with types that hold the values of both.

All sources and sinks use these rules. A type is widened only without loss: integers to wider ones
and to decimals, FLOAT to DOUBLE, DATE to a timestamp, decimals to more digits.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

_DIGITS: Final[Mapping[type[DataType], int]] = {
    ByteType: 3,
    ShortType: 5,
    IntegerType: 10,
    LongType: 20,
}
"""The digits of the decimal that holds each integer type; from the narrowest to the widest."""
_MOST_DIGITS: Final = 38


class Difference(NamedTuple):
    """A column that differs in two schemas, by its path: `address.street`."""

    column: str
    known: DataType | None
    """The type in the first schema; None: the first schema lacks the column."""
    found: DataType
    """The type in the second schema."""
    wider: DataType | None
    """The type for the values of both; None: no type holds them without loss."""

    @property
    def is_new(self) -> bool:
        """Whether the first schema lacks the column."""
        return self.known is None

    def __str__(self) -> str:
        """Return the column with its SQL types."""
        found = self.found.simpleString().upper()
        if self.known is None:
            return f"`{self.column}` {found}"
        return f"`{self.column}`, which is {self.known.simpleString().upper()} and now {found}"


class Union(NamedTuple):
    """The union of two schemas, and the differences of the second from the first."""

    schema: StructType
    differences: tuple[Difference, ...]


def widen_type(one: DataType, other: DataType) -> DataType | None:
    """Return the type that holds the values of two types without loss; None: there is none."""
    if isinstance(one, NullType) or isinstance(other, NullType) or one == other:
        return other if isinstance(one, NullType) else one
    kinds = {type(one), type(other)}
    order = list(_DIGITS)
    if kinds <= _DIGITS.keys():
        return max(one, other, key=lambda each: order.index(type(each)))
    if kinds == {FloatType, DoubleType}:
        return DoubleType()
    if DateType in kinds and kinds & {TimestampType, TimestampNTZType}:
        return other if isinstance(one, DateType) else one
    if kinds <= {*_DIGITS, DecimalType}:
        return _decimal(one, other)
    return None


def unite_schemas(current: StructType, actual: StructType, *, is_exact: bool = False) -> Union:
    """Return the union of two schemas; a column without a common type keeps its known type.

    `is_exact`: names are case sensitive.
    """
    walk = _Walk(is_exact)
    schema = walk.struct(current, actual, "")
    return Union(schema, tuple(walk.differences))


class _Walk:
    """Traverses two schemas and collects their differences."""

    def __init__(self, is_exact: bool) -> None:  # noqa: FBT001  # for this module alone
        self._is_exact = is_exact
        self.differences: list[Difference] = []

    def struct(self, current: StructType, actual: StructType, path: str) -> StructType:
        theirs = {self._name(each.name): each for each in actual.fields}
        ours = {self._name(each.name) for each in current.fields}
        fields = [
            StructField(each.name, self._type(each.dataType, other.dataType, path + each.name))
            if (other := theirs.get(self._name(each.name)))
            else each
            for each in current.fields
        ]
        return StructType([*fields, *self._new(actual, ours, path)])

    def _new(self, actual: StructType, ours: set[str], path: str) -> Iterator[StructField]:
        for each in actual.fields:
            if self._name(each.name) not in ours:
                column = path + each.name
                self.differences.append(Difference(column, None, each.dataType, each.dataType))
                yield StructField(each.name, each.dataType)

    def _type(self, current: DataType, actual: DataType, path: str) -> DataType:
        if isinstance(current, StructType) and isinstance(actual, StructType):
            return self.struct(current, actual, f"{path}.")
        if isinstance(current, ArrayType) and isinstance(actual, ArrayType):
            return ArrayType(self._type(current.elementType, actual.elementType, path))
        if isinstance(current, MapType) and isinstance(actual, MapType):
            return MapType(current.keyType, self._type(current.valueType, actual.valueType, path))
        holds = widen_type(current, actual)
        if holds != current:
            self.differences.append(Difference(path, current, actual, holds))
        return holds or current

    def _name(self, name: str) -> str:
        return name if self._is_exact else name.lower()


def _decimal(one: DataType, other: DataType) -> DecimalType | None:
    digits = [_digits(each) for each in (one, other)]
    whole = max(precision - scale for precision, scale in digits)
    scale = max(scale for _, scale in digits)
    return DecimalType(whole + scale, scale) if whole + scale <= _MOST_DIGITS else None


def _digits(kind: DataType) -> tuple[int, int]:
    if isinstance(kind, DecimalType):
        return kind.precision, kind.scale
    return _DIGITS[type(kind)], 0
