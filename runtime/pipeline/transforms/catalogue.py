"""The chain of transforms of a config: definitions of its keys, validation, construction."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from ....actors.settings import SettingType, Validator, Value, trimmed
from ..installed import flaw_in_version
from ..spi.config import (
    ConfigDef,
    ConfigInvalid,
    Definition,
    Importance,
    Width,
    has_reference,
    strip_prefix,
)
from ..spi.context import Context
from ..spi.errors import PluginUnknown
from ..spi.keys.common import PREDICATES, TRANSFORMS
from ..spi.keys.kinds import flag_key, text_key
from ..spi.transform import Transform
from .connect.record_transform import BUILT_IN, Predicate, RecordTransform
from .lookups import flaw_in_name, lookup_names
from .sql import Select, Sql
from .types import GROUP, PREDICATES_BY_NAME, TYPES, find_predicate, find_transform

MOST_TRANSFORMS: Final = 100
"""The most transforms, or predicates, of a pipeline."""
"""The characters that Java trims."""


def definitions(config: Mapping[str, str]) -> Iterator[Definition]:
    """Yield the definitions of all transforms and predicates in a config."""
    for kind in (TRANSFORMS, PREDICATES):
        for alias in aliases(config, kind):
            bare = strip_prefix(f"{kind}.{alias}.", config)
            for order, each in enumerate(_keys(kind, alias, bare).definitions):
                yield replace(
                    each,
                    name=f"{kind}.{alias}.{each.name}",
                    group=f"{kind.capitalize()}: {alias}",
                    order=order,
                    dependents=tuple(f"{kind}.{alias}.{name}" for name in each.dependents),
                )


def complaints(config: Mapping[str, str]) -> Mapping[str, str]:
    """Return the errors of the chain as a whole, by the key to change."""
    errors: dict[str, str] = {}
    for kind in (TRANSFORMS, PREDICATES):
        names = [each.strip() for each in config.get(kind, "").split(",") if each.strip()]
        if len(set(names)) < len(names):
            errors[kind] = "Duplicate alias provided."
        if len(names) > MOST_TRANSFORMS:
            errors[kind] = f"{len(names)} are given, and at most {MOST_TRANSFORMS} taken"
            return errors
    for alias in aliases(config):
        flaws = _flaws(strip_prefix(f"{TRANSFORMS}.{alias}.", config), aliases(config, PREDICATES))
        errors |= {f"{TRANSFORMS}.{alias}.{key}": flaw for key, flaw in flaws.items()}
    return errors


def make_chain(config: Mapping[str, str], context: Context) -> tuple[Transform, ...]:
    """Return the transforms of a config in their order; raises `ConfigInvalid`."""
    return tuple(make_transform(alias, config, context) for alias in aliases(config))


def aliases(config: Mapping[str, str], kind: str = TRANSFORMS) -> Sequence[str]:
    """Return the names of a config's transforms, or predicates, in order."""
    names = config.get(kind, "").split(",", MOST_TRANSFORMS)[:MOST_TRANSFORMS]
    return [alias for alias in dict.fromkeys(each.strip() for each in names) if alias]


def make_transform(alias: str, config: Mapping[str, str], context: Context) -> Transform:
    """Return one transform of a config; raises `ConfigInvalid`."""
    bare = strip_prefix(f"{TRANSFORMS}.{alias}.", config)
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
    bare = strip_prefix(f"{PREDICATES}.{alias}.", config)
    settings = _keys(PREDICATES, alias, bare).parse(bare)
    return find_predicate(settings.text("type"))(settings)


def _keys(kind: str, alias: str, bare: Mapping[str, str]) -> ConfigDef:
    """Return the definitions of one transform or predicate, without prefix."""
    is_transform = kind == TRANSFORMS
    plugin: type[Transform | Predicate] | None = None
    own, version = ConfigDef(()), BUILT_IN
    with suppress(PluginUnknown):
        name = bare.get("type", "")
        plugin = find_transform(name) if is_transform else find_predicate(name)
        own, version = plugin.config(), plugin.version
    implied = (_version_key(version), *(_IMPLIED if is_transform else ()))
    masked = {"type", *(each.name for each in implied)}
    rest = [each for each in own.expand_families(bare).definitions if each.name not in masked]
    if plugin is not None and issubclass(plugin, RecordTransform | Predicate):
        rest = [_trimming(each) for each in rest]
    return ConfigDef((_type_key(kind, alias, rest), *implied, *rest), own.prefixes)


def _trimming(definition: Definition) -> Definition:
    """Return a definition that trims text values, as Connect does."""
    is_text = definition.type is SettingType.STRING
    return replace(definition, convert=trimmed) if is_text else definition


def _type_key(kind: str, alias: str, rest: Sequence[Definition]) -> Definition:
    is_transform = kind == TRANSFORMS
    what = "transformation" if is_transform else "predicate"
    recommended = TYPES if is_transform else tuple(PREDICATES_BY_NAME)
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


def _version_key(installed: str) -> Definition:
    """Return the key that every transform and every predicate has."""

    def validate(value: Value) -> str | None:
        return flaw_in_version(str(value), installed) or None if value else None

    return text_key(
        "plugin.version",
        "The version that it must have: `1.0`, `latest`, or a range, `[1.0,2.0)`. Empty: the "
        "installed one.",
        validator=validate,
    )


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
    """Return errors of valid keys of one transform that do not fit together."""
    try:
        kind = find_transform(bare.get("type", ""))
    except PluginUnknown:
        return {}  # an error of the type itself
    errors: dict[str, str] = {}
    predicate = bare.get("predicate", "")
    if predicate and not issubclass(kind, RecordTransform):
        errors["predicate"] = f"a {bare['type']} transform is for all rows: it takes no predicate"
    elif predicate and predicate not in predicates:
        errors["predicate"] = f"there is no predicate {predicate}: name it in `{PREDICATES}`"
    elif "negate" in bare and "predicate" not in bare:
        errors["negate"] = "there is no predicate to be negated"
    for name in lookup_names(bare) if kind is Sql else ():
        if flaw := flaw_in_name(name):
            errors[f"lookup.{name}.path"] = flaw
    keys = _keys(TRANSFORMS, "", bare)
    if not keys.check(bare).errors and not any(map(has_reference, bare.values())):
        errors |= kind.flaws(keys.parse(bare))
    return errors


def _known(find: Callable[[str], object]) -> Validator:
    """Return a validator of names that can be found."""

    def validate(value: Value) -> str | None:
        try:
            find(str(value))
        except PluginUnknown as error:
            return f"Class {value} could not be found. {error}"
        return None

    return validate


def _families() -> Iterator[Definition]:
    own, version = (*Sql.config().definitions, *Select.config().definitions), _version_key(BUILT_IN)
    for kind, keys in ((TRANSFORMS, (version, *_IMPLIED, *own)), (PREDICATES, (version,))):
        for order, each in enumerate((_type_key(kind, "<name>", own), *keys)):
            name, group = f"{kind}.<name>.{each.name}", f"{kind.capitalize()}: <name>"
            yield replace(each, name=name, group=group, order=order, dependents=())


FAMILIES: Final = tuple(_families())
"""The keys that are documented without a config: those of all transforms, and of SQL."""
