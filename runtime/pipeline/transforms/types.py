"""The registry of transform and predicate types.

Types go by Connect's names, whole or without the package: `InsertField$Value`, `InsertField$Key`,
and `InsertField` alone, which is about the value; Debezium's go by its own. Ours are `sql`,
`select`, `expect` and `dedupe`; further ones are entry points of the group `fairlead.transforms`,
by their names. A type that cannot be loaded is an error only of the configs that name it.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from ..installed import InstalledClasses, describe_unknown
from ..spi.errors import PluginUnknown
from ..spi.transform import Transform
from .connect.cast import Cast
from .connect.fields import InsertField, MaskField, ReplaceField
from .connect.metadata import DropHeaders, HeaderFrom, InsertHeader, RegexRouter, TimestampRouter
from .connect.new_record_state import ExtractNewRecordState
from .connect.record import RecordPart
from .connect.record_transform import (
    Filter,
    HasHeaderKey,
    Predicate,
    RecordIsTombstone,
    RecordTransform,
    TopicNameMatches,
)
from .connect.structure import ExtractField, Flatten, HoistField, SetSchemaMetadata, ValueToKey
from .connect.timestamps import TimestampConverter
from .dedupe import Dedupe
from .expect import Expectations
from .sql import Select, Sql

GROUP: Final = "fairlead.transforms"

_OWN: Final[Mapping[str, type[Transform]]] = {
    "sql": Sql,
    "select": Select,
    "expect": Expectations,
    "dedupe": Dedupe,
}
_OF_PARTS: Final[tuple[type[RecordTransform], ...]] = (
    *(Cast, ExtractField, Flatten, HeaderFrom, HoistField, InsertField, MaskField, ReplaceField),
    *(SetSchemaMetadata, TimestampConverter),
)
"""The transforms with variants for key and value."""
_OF_RECORDS: Final[tuple[type[RecordTransform], ...]] = (
    *(DropHeaders, Filter, InsertHeader, RegexRouter, TimestampRouter, ValueToKey),
)
_OF_DEBEZIUM: Final[tuple[type[RecordTransform], ...]] = (ExtractNewRecordState,)
_PREDICATES: Final[tuple[type[Predicate], ...]] = (
    HasHeaderKey,
    RecordIsTombstone,
    TopicNameMatches,
)
_PACKAGE: Final = "org.apache.kafka.connect.transforms."
_DEBEZIUM: Final = "io.debezium.transforms."
_OF_OTHERS: Final = (*_OF_PARTS, *_OF_RECORDS, *_OF_DEBEZIUM)

PREDICATES_BY_NAME: Final = {each.__name__: each for each in _PREDICATES}
TYPES: Final = tuple(sorted((*_OWN, *(each.__name__ for each in _OF_OTHERS))))
"""The built-in types by their short names."""

INSTALLED: Final = InstalledClasses[Transform](
    "transform",
    GROUP,
    Transform,  # type: ignore[type-abstract]
    {
        **_OWN,
        **{each.__name__: each for each in _OF_OTHERS},
        **{f"{_DEBEZIUM}{each.__name__}": each for each in _OF_DEBEZIUM},
        **{f"{each.__name__}${part}": each for each in _OF_PARTS for part in ("Key", "Value")},
    },
    TYPES,
)
"""The transform types by name, without Connect's package."""


def find_transform(name: str) -> type[Transform]:
    """Return a type of transform by its name; raises `PluginUnknown`."""
    return INSTALLED.find(name.removeprefix(_PACKAGE))


def find_predicate(name: str) -> type[Predicate]:
    """Return a type of predicate by its name; raises `PluginUnknown`."""
    plain = name.removeprefix(_PACKAGE).removeprefix("predicates.")
    if found := PREDICATES_BY_NAME.get(plain):
        return found
    raise PluginUnknown(describe_unknown("predicate", name, PREDICATES_BY_NAME))


def transform_names() -> Sequence[str]:
    """Return the full names of all transform types, including those that cannot be loaded."""
    parts = [part.value for part in RecordPart]
    named = [f"{_PACKAGE}{each.__name__}${part}" for each in _OF_PARTS for part in parts]
    named += [f"{_PACKAGE}{each.__name__}" for each in _OF_RECORDS]
    named += [f"{_DEBEZIUM}{each.__name__}" for each in _OF_DEBEZIUM]
    return [*sorted(named), *_OWN, *INSTALLED.further]


def predicate_names() -> Sequence[str]:
    """Return the full names of all types of predicates."""
    return [f"{_PACKAGE}predicates.{name}" for name in sorted(PREDICATES_BY_NAME)]
