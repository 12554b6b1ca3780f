"""The transforms and predicates that a config can name: their types, their keys, and the chain.

Types go by Connect's names, whole or without the package: `InsertField$Value`, `InsertField$Key`,
and `InsertField` alone, which is about the value. Ours are `sql`, `select` and `expect`; further
ones are entry points of the group `fairlead.transforms`, by their names. One that cannot be loaded
is told to the config that names it, and to nobody else.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from ....actors.settings import SettingType, Validator, Value
from ..connectors.common_keys import PREDICATES, TRANSFORMS
from ..connectors.installed import Installed, flaw_in_version, unknown
from ..spi.config import ConfigDef, ConfigInvalid, Definition, Importance, Width, is_deferred, under
from ..spi.context import Context
from ..spi.errors import PluginUnknown
from ..spi.key_kinds import flag_key, text_key
from ..spi.transform import Transform
from .cast import Cast
from .expect import Expectations
from .fields import InsertField, MaskField, ReplaceField
from .lookups import flaw_in_name, lookup_names
from .metadata import DropHeaders, HeaderFrom, InsertHeader, RegexRouter, TimestampRouter
from .record import RecordPart
from .record_transform import (
    Filter,
    HasHeaderKey,
    Predicate,
    RecordIsTombstone,
    RecordTransform,
    TopicNameMatches,
)
from .sql import Select, Sql
from .structure import ExtractField, Flatten, HoistField, SetSchemaMetadata, ValueToKey
from .timestamps import TimestampConverter

GROUP: Final = "fairlead.transforms"
VERSION: Final = "1.0"
"""That of all types of transforms and predicates."""
MOST_TRANSFORMS: Final = 100
"""How many transforms, or predicates, a pipeline may have: each has keys of its own."""
_BLANKS: Final = "".join(map(chr, range(33)))
"""What Java trims off."""

_OWN: Final[Mapping[str, type[Transform]]] = {"sql": Sql, "select": Select, "expect": Expectations}
_OF_PARTS: Final[tuple[type[RecordTransform], ...]] = (
    *(Cast, ExtractField, Flatten, HeaderFrom, HoistField, InsertField, MaskField, ReplaceField),
    *(SetSchemaMetadata, TimestampConverter),
)
"""Those that work on the key or on the value."""
_OF_RECORDS: Final[tuple[type[RecordTransform], ...]] = (
    *(DropHeaders, Filter, InsertHeader, RegexRouter, TimestampRouter, ValueToKey),
)
_PREDICATES: Final[tuple[type[Predicate], ...]] = (
    HasHeaderKey,
    RecordIsTombstone,
    TopicNameMatches,
)
_PACKAGE: Final = "org.apache.kafka.connect.transforms."
_TRANSFORMS_BY_NAME: Final[Mapping[str, type[Transform]]] = {
    **_OWN,
    **{each.__name__: each for each in (*_OF_PARTS, *_OF_RECORDS)},
    **{f"{each.__name__}${part}": each for each in _OF_PARTS for part in ("Key", "Value")},
}
_PREDICATES_BY_NAME: Final = {each.__name__: each for each in _PREDICATES}

TYPES: Final = tuple(sorted((*_OWN, *(each.__name__ for each in (*_OF_PARTS, *_OF_RECORDS)))))
"""The built-in types by their short names."""


INSTALLED: Final = Installed[Transform](
    "transform",
    GROUP,
    Transform,  # type: ignore[type-abstract]
    _TRANSFORMS_BY_NAME,
    TYPES,
)
"""What a transform's `type` may name, without Connect's package."""


def find_transform(name: str) -> type[Transform]:
    """Return a type of transform by its name; raises `PluginUnknown`."""
    return INSTALLED.find(name.removeprefix(_PACKAGE))


def find_predicate(name: str) -> type[Predicate]:
    """Return a type of predicate by its name; raises `PluginUnknown`."""
    plain = name.removeprefix(_PACKAGE).removeprefix("predicates.")
    if found := _PREDICATES_BY_NAME.get(plain):
        return found
    raise PluginUnknown(unknown("predicate", name, _PREDICATES_BY_NAME))


def transform_names() -> Sequence[str]:
    """Return the full names of all types of transforms, those that cannot be loaded included."""
    parts = [part.value for part in RecordPart]
    named = [f"{_PACKAGE}{each.__name__}${part}" for each in _OF_PARTS for part in parts]
    named += [f"{_PACKAGE}{each.__name__}" for each in _OF_RECORDS]
    return [*sorted(named), *_OWN, *INSTALLED.further]


def predicate_names() -> Sequence[str]:
    """Return the full names of all types of predicates."""
    return [f"{_PACKAGE}predicates.{name}" for name in sorted(_PREDICATES_BY_NAME)]


def definitions(config: Mapping[str, str]) -> Iterator[Definition]:
    """Yield the keys of all transforms and predicates that a config names."""
    for kind in (TRANSFORMS, PREDICATES):
        for alias in aliases(config, kind):
            bare = under(f"{kind}.{alias}.", config)
            for order, each in enumerate(_keys(kind, alias, bare).definitions):
                yield replace(
                    each,
                    name=f"{kind}.{alias}.{each.name}",
                    group=f"{kind.capitalize()}: {alias}",
                    order=order,
                    dependents=tuple(f"{kind}.{alias}.{name}" for name in each.dependents),
                )


def complaints(config: Mapping[str, str]) -> Mapping[str, str]:
    """Return what is wrong with the chain as a whole, under the key to change."""
    found: dict[str, str] = {}
    for kind in (TRANSFORMS, PREDICATES):
        given = [each.strip() for each in config.get(kind, "").split(",") if each.strip()]
        if len(set(given)) < len(given):
            found[kind] = f"a {kind.removesuffix('s')} is named twice"
        if len(given) > MOST_TRANSFORMS:
            found[kind] = f"{len(given)} are given, and at most {MOST_TRANSFORMS} taken"
            return found
    for alias in aliases(config):
        flaws = _flaws(under(f"{TRANSFORMS}.{alias}.", config), aliases(config, PREDICATES))
        found |= {f"{TRANSFORMS}.{alias}.{key}": flaw for key, flaw in flaws.items()}
    return found


def make_chain(config: Mapping[str, str], context: Context) -> tuple[Transform, ...]:
    """Return the transforms of a config in their order; raises `ConfigInvalid`."""
    return tuple(make_transform(alias, config, context) for alias in aliases(config))


def aliases(config: Mapping[str, str], kind: str = TRANSFORMS) -> Sequence[str]:
    """Return the names that a config gives its transforms, or its predicates, in their order."""
    given = config.get(kind, "").split(",", MOST_TRANSFORMS)[:MOST_TRANSFORMS]
    return [alias for alias in dict.fromkeys(each.strip() for each in given) if alias]


def make_transform(alias: str, config: Mapping[str, str], context: Context) -> Transform:
    """Return one transform of a config; raises `ConfigInvalid`."""
    bare = under(f"{TRANSFORMS}.{alias}.", config)
    settings = _keys(TRANSFORMS, alias, bare).parse(bare)
    try:
        kind = find_transform(settings.text("type"))
        for key, flaw in kind.flaws(settings).items():
            raise ConfigInvalid(f"{TRANSFORMS}.{alias}.{key}: {flaw}")
        transform = kind(settings, context)
        if isinstance(transform, RecordTransform):
            predicate = _made_predicate(settings.text("predicate"), config)
            transform.place(alias, predicate, is_negated=settings.flag("negate"))
    except PluginUnknown as error:
        raise ConfigInvalid(f"{TRANSFORMS}.{alias}.type: {error}") from None
    return transform


def _made_predicate(alias: str, config: Mapping[str, str]) -> Predicate | None:
    if not alias:
        return None
    bare = under(f"{PREDICATES}.{alias}.", config)
    settings = _keys(PREDICATES, alias, bare).parse(bare)
    return find_predicate(settings.text("type"))(settings)


def _keys(kind: str, alias: str, bare: Mapping[str, str]) -> ConfigDef:
    """Return the definitions of one transform or predicate by their bare names."""
    is_transform = kind == TRANSFORMS
    found: type[Transform | Predicate] | None = None
    own = ConfigDef(())
    with suppress(PluginUnknown):
        name = bare.get("type", "")
        found = find_transform(name) if is_transform else find_predicate(name)
        own = found.config()
    implied = (_VERSION, *_IMPLIED) if is_transform else (_VERSION,)
    masked = {"type", *(each.name for each in implied)}
    rest = [each for each in own.named(bare).definitions if each.name not in masked]
    if found is not None and issubclass(found, RecordTransform | Predicate):
        rest = [_trimming(each) for each in rest]
    return ConfigDef((_type_key(kind, alias, rest), *implied, *rest), own.prefixes)


def _trimming(definition: Definition) -> Definition:
    """Return a definition of Connect's as Connect reads it: texts without blanks around them."""
    is_text = definition.type is SettingType.STRING
    return replace(definition, convert=_trimmed) if is_text else definition


def _trimmed(text: str) -> str:
    return text.strip(_BLANKS)


def _type_key(kind: str, alias: str, rest: Sequence[Definition]) -> Definition:
    is_transform = kind == TRANSFORMS
    what = "transformation" if is_transform else "predicate"
    recommended = TYPES if is_transform else tuple(_PREDICATES_BY_NAME)
    return text_key(
        "type",
        f"What the {what} {alias} is: {', '.join(recommended)}"
        f"{f', or an entry point of {GROUP}' if is_transform else ''}.",
        importance=Importance.HIGH,
        required=True,
        validator=_known(find_transform if is_transform else find_predicate),
        recommended=recommended,
        width=Width.LONG,
        display_name=f"{what.capitalize()} type for {alias}",
        dependents=tuple(each.name for each in rest),
    )


def _flaw_in_version(value: Value) -> str | None:
    return flaw_in_version(str(value), VERSION) or None if value else None


_VERSION: Final = text_key(
    "plugin.version",
    "The version that it must have: `1.0`, `latest`, or a range, `[1.0,2.0)`. Empty: whichever is "
    "installed.",
    validator=_flaw_in_version,
)
"""A key that every transform and every predicate has."""

_IMPLIED: Final = (
    text_key(
        "predicate",
        "The name of the predicate that tells which records it is for. Empty: all.",
    ),
    flag_key(
        "negate",
        "Whether it is for the records that the predicate is false for.",
        default=False,
    ),
)
"""Keys that every transform has."""


def _flaws(bare: Mapping[str, str], predicates: Sequence[str]) -> Mapping[str, str]:
    """Return what is wrong with keys of one transform that are sound each by itself."""
    try:
        kind = find_transform(bare.get("type", ""))
    except PluginUnknown:
        return {}  # told of the type itself
    found: dict[str, str] = {}
    predicate = bare.get("predicate", "")
    if predicate and not issubclass(kind, RecordTransform):
        found["predicate"] = f"a {bare['type']} transform is for all rows: it takes no predicate"
    elif predicate and predicate not in predicates:
        found["predicate"] = f"there is no predicate {predicate}: name it in `{PREDICATES}`"
    elif "negate" in bare and "predicate" not in bare:
        found["negate"] = "there is no predicate to be negated"
    for name in lookup_names(bare) if kind is Sql else ():
        if flaw := flaw_in_name(name):
            found[f"lookup.{name}.path"] = flaw
    keys = _keys(TRANSFORMS, "", bare)
    if not keys.check(bare).errors and not any(map(is_deferred, bare.values())):
        found |= kind.flaws(keys.parse(bare))
    return found


def _known(find: Callable[[str], object]) -> Validator:
    """Return a validator of names that can be found."""

    def validate(value: Value) -> str | None:
        try:
            find(str(value))
        except PluginUnknown as error:
            return str(error)
        return None

    return validate


def _families() -> Iterator[Definition]:
    own = (*Sql.config().definitions, *Select.config().definitions)
    for kind, keys in ((TRANSFORMS, (_VERSION, *_IMPLIED, *own)), (PREDICATES, (_VERSION,))):
        for order, each in enumerate((_type_key(kind, "<name>", own), *keys)):
            name, group = f"{kind}.<name>.{each.name}", f"{kind.capitalize()}: <name>"
            yield replace(each, name=name, group=group, order=order, dependents=())


FAMILIES: Final = tuple(_families())
"""The keys that are listed before a config names any type: those of all, and of SQL."""
