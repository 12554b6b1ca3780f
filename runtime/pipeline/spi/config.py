"""What a config key means, and what is wrong with a value: Connect's ConfigDef.

Values arrive as text, as they do over REST. Definitions parse them; `check` finds everything
that is wrong at once and in the shape of Connect's validation reply, `parse` refuses.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import chain

from ....actors.misspelling import did_you_mean, meant_by
from ....actors.settings import MISSING, NO_VALUE, Setting, SettingType, Value, spell

HIDDEN = "********"
MOST_SEARCHED = 250
"""For how many unknown keys of a config the one that was meant is looked for."""
_ANY_NAME = "<name>"
_DEFERRED = ("${env:", "${file:")


class Importance(Enum):
    """How much a key matters to somebody who reads the list for the first time."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class Width(Enum):
    """How wide a form should draw the value."""

    SHORT = "SHORT"
    MEDIUM = "MEDIUM"
    LONG = "LONG"


class ConfigInvalid(Exception):  # noqa: N818  # says what it is about
    """Some values of a config are not fit for use; starting again will not help."""


@dataclass(frozen=True, slots=True)
class Definition(Setting):
    """One key of a connector's config: a setting, and how a form shows it.

    `recommended` lists values to offer, not all that are allowed; `dependents` names the keys
    whose meaning hangs on this one.
    """

    importance: Importance = field(kw_only=True)
    recommended: tuple[str, ...] = ()
    group: str = "Common"
    order: int = 0
    width: Width = Width.MEDIUM
    display_name: str = ""
    dependents: tuple[str, ...] = ()

    @property
    def default_text(self) -> str | None:
        """The default as a config would give it."""
        return spell(self.default)


@dataclass(frozen=True, slots=True)
class Checked:
    """One key of a config with what was given for it and what is wrong with that."""

    definition: Definition
    given: str | None
    value: str | None = None
    """What it stands for, or the default; None where it stands for nothing."""
    errors: tuple[str, ...] = ()
    is_secret: bool = False
    """Hides a value that is not of a kind to be hidden: a URL with a password in it."""

    @property
    def shown_value(self) -> str | None:
        """The value as people may see it: never a secret."""
        return self._shown(self.value)

    @property
    def told_errors(self) -> tuple[str, ...]:
        """The errors in the words of Connect, which name the key and what was given for it."""
        name, given = self.definition.name, self._shown(self.given)
        if given is not None and self.definition.type is SettingType.LIST:
            given = f"[{', '.join(each.strip() for each in given.split(','))}]"
        return tuple(in_words(name, given, error) for error in self.errors)

    def _shown(self, text: str | None) -> str | None:
        is_hidden = self.is_secret or self.definition.type is SettingType.PASSWORD
        return HIDDEN if is_hidden and text is not None else text


@dataclass(frozen=True, slots=True)
class Validation:
    """What a config looks like against its definitions; warnings do not refuse it.

    `misspelt` holds the unknown keys that are nearly known ones, each with the one that was
    meant. A new config with them is refused; a connector that runs already goes on with a warning.
    """

    checked: tuple[Checked, ...]
    warnings: tuple[str, ...] = ()
    misspelt: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def errors(self) -> Mapping[str, tuple[str, ...]]:
        """What is wrong, by key; empty if the config is fit for use."""
        return {each.definition.name: each.errors for each in self.checked if each.errors}

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is strange about a config that is in use, misspelt keys included."""
        near = self.misspelt.items()
        told = (f"unknown key {key}: it has no effect; {did_you_mean(each)}" for key, each in near)
        return (*self.warnings, *told)

    def plus(self, errors: Mapping[str, str]) -> "Validation":
        """Return this validation with further errors, each under a key that is defined."""
        return replace(
            self,
            checked=tuple(
                replace(each, errors=(*each.errors, errors[each.definition.name]))
                if each.definition.name in errors
                else each
                for each in self.checked
            ),
        )

    def strict(self, config: Mapping[str, str]) -> "Validation":
        """Return this validation with an error for each misspelt key of its config."""
        kinds = {each.definition.name: each.definition.type for each in self.checked}
        strange = tuple(
            Checked(
                undefined(key, kinds.get(meant, SettingType.STRING)),
                config[key],
                config[key],
                (f"there is no such key: {did_you_mean(meant)}",),
            )
            for key, meant in self.misspelt.items()
        )
        return replace(self, checked=(*self.checked, *strange), misspelt={})


@dataclass(frozen=True, slots=True)
class ParsedConfig:
    """The parsed values of a config, asked for by type."""

    values: Mapping[str, Value]

    def text(self, key: str) -> str:
        """Return a text; an absent one is empty."""
        value = self.values[key]
        return "" if value is None else str(value)

    def number(self, key: str) -> int:
        """Return an integer that is given or has a default."""
        value = self.values[key]
        if not isinstance(value, int):
            raise TypeError(f"{key} is not a number")
        return value

    def flag(self, key: str) -> bool:
        """Return a boolean; an absent one is false."""
        return self.values[key] is True

    def items(self, key: str) -> tuple[str, ...]:
        """Return a list; an absent one is empty."""
        value = self.values[key]
        return value if isinstance(value, tuple) else ()


@dataclass(frozen=True, slots=True)
class ConfigDef:
    """The keys that a config may have; others are let through, with a warning.

    `prefixes` names families of keys that are passed on as they are: `source.option.`. `families`
    are for readers of the list: keys of which a part is the user's to choose, `source.option.*`.
    """

    definitions: tuple[Definition, ...]
    prefixes: tuple[str, ...] = ()
    families: tuple[Definition, ...] = ()

    def plus(self, definitions: Iterable[Definition]) -> "ConfigDef":
        """Return these definitions and further ones."""
        return replace(self, definitions=(*self.definitions, *definitions))

    def named(self, config: Mapping[str, str]) -> "ConfigDef":
        """Return these definitions and those of families, once for each name that a key gives.

        A family has `<name>` in its key. Families that begin alike go by the same names:
        `lookup.<name>.path` and `lookup.<name>.format`.
        """
        names: dict[str, dict[str, None]] = {}
        for each in self.families:
            before, _, after = each.name.partition(_ANY_NAME)
            shape = re.compile(f"{re.escape(before)}(.+){re.escape(after)}", re.DOTALL)
            given = (match[1] for key in config if (match := shape.fullmatch(key)))
            names.setdefault(before, {}).update(dict.fromkeys(given))
        return self.plus(
            replace(each, name=each.name.replace(_ANY_NAME, name))
            for before, given in names.items()
            for name in given
            for each in self.families
            if each.name.startswith(before)
        )

    def check(self, config: Mapping[str, str]) -> Validation:
        """Find everything that is wrong with a config."""
        checked = tuple(_checked(each, config.get(each.name)) for each in self.definitions)
        known = {each.name for each in self.definitions}
        strange = sorted(
            key for key in config if key not in known and not key.startswith(self.prefixes)
        )
        names = [each.name for each in self.definitions]
        meant = {key: meant_by(key, names, self.prefixes) for key in strange[:MOST_SEARCHED]}
        misspelt = {key: near for key, near in meant.items() if near}
        unknown = (f"unknown key {key}: it has no effect" for key in strange if key not in misspelt)
        return Validation(checked, tuple(unknown), misspelt)

    def parse(self, config: Mapping[str, str]) -> ParsedConfig:
        """Return the parsed values; raises `ConfigInvalid` naming all that is wrong.

        References such as `${env:NAME}` must have been resolved before.
        """
        refuse(self.check(config))
        values: dict[str, Value] = {}
        for each in self.definitions:
            try:
                values[each.name] = each.parse(config.get(each.name))
            except ValueError as error:
                raise ConfigInvalid(f"{each.name}: {error}") from None
        return ParsedConfig(values)


def refuse(validation: Validation) -> None:
    """Raise `ConfigInvalid` if there is anything wrong."""
    if validation.errors:
        raise ConfigInvalid("; ".join(chain(*(each.told_errors for each in validation.checked))))


def in_words(key: str, given: str | None, error: str) -> str:
    """Return what is wrong with a key as Kafka's ConfigException says it."""
    if error == MISSING:
        return f'Missing required configuration "{key}" which has no default value.'
    shown = "null" if given is None or error == NO_VALUE else given
    return f"Invalid value {shown} for configuration {key}: {error}"


def undefined(key: str, kind: SettingType = SettingType.STRING) -> Definition:
    """Return what stands for the definition of a key that has none."""
    return Definition(key, kind, "There is no such key.", importance=Importance.LOW)


def under(prefix: str, config: Mapping[str, str]) -> dict[str, str]:
    """Return the values of a family of keys, by what follows its prefix."""
    return {key[len(prefix) :]: config[key] for key in config if key.startswith(prefix)}


def is_deferred(text: str) -> bool:
    """Tell whether a value, or a part of it, is known to the worker alone that runs it."""
    return any(mark in text for mark in _DEFERRED)


def has_deferred(prefix: str, config: Mapping[str, str]) -> bool:
    """Tell whether any value of a family of keys is known to the worker alone."""
    return any(map(is_deferred, under(prefix, config).values()))


def _checked(definition: Definition, text: str | None) -> Checked:
    if text is not None and is_deferred(text):
        return Checked(definition, text, text)
    value, flaws = definition.examine(text)
    return Checked(definition, text, spell(value), tuple(flaws))
