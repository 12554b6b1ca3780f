"""Definitions and validation of config keys, after Connect's ConfigDef.

Values arrive as text, as they do over REST. `ConfigDef.check` reports all errors at once, in the
shape of Connect's validation reply; `ConfigDef.parse` raises for them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import chain

from ....actors.misspelling import did_you_mean, meant_by
from ....actors.settings import (
    HIDDEN,
    MISSING,
    NO_VALUE,
    Setting,
    SettingType,
    Value,
    spell,
    trimmed,
)

MOST_SEARCHED = 250
"""How many unknown keys of one config are compared with the known keys, to find misspellings."""
_ANY_NAME = "<name>"
_DEFERRED = ("${env:", "${file:", "${dir:", "${directory:")


class Importance(Enum):
    """How important a key is, for documentation and forms."""

    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class Width(Enum):
    """The width of the value's field in a form."""

    SHORT = "SHORT"
    MEDIUM = "MEDIUM"
    LONG = "LONG"


class ConfigInvalid(Exception):  # noqa: N818  # says what it is about
    """A config has invalid values; a restart does not help."""


@dataclass(frozen=True, slots=True)
class Definition(Setting):
    """One key of a connector's config: a setting, and how a form shows it.

    `recommended` lists values to offer; others may be allowed. `dependents` names the keys whose
    meaning depends on this one.
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
        """The default value as text."""
        return spell(self.default)


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of checking one key of a config."""

    definition: Definition
    given: str | None
    """The text in the config; None: the key is absent."""
    value: str | None = None
    """The parsed value, or the default, as text; None: there is neither."""
    errors: tuple[str, ...] = ()
    is_secret: bool = False
    """Whether to hide a value whose type is not PASSWORD, such as a URL with a password."""

    @property
    def shown_value(self) -> str | None:
        """The value for display; secrets are masked."""
        return self._shown(self.value)

    @property
    def error_messages(self) -> tuple[str, ...]:
        """The errors in Connect's wording, with the key and the given value (masked if secret)."""
        name, given = self.definition.name, self._shown(self.given)
        if given is not None and self.definition.type is SettingType.LIST:
            given = f"[{', '.join(each.strip() for each in given.split(','))}]"
        elif given is not None and self.definition.convert is trimmed:
            given = trimmed(given)
        return tuple(error_message(name, given, error) for error in self.errors)

    def _shown(self, text: str | None) -> str | None:
        is_hidden = self.is_secret or self.definition.type is SettingType.PASSWORD
        return HIDDEN if is_hidden and text is not None else text


@dataclass(frozen=True, slots=True)
class Validation:
    """The result of checking a config against its definitions; warnings do not make it invalid.

    `misspelt` maps each unknown key that is similar to a known key to that key. A new config with
    such keys is refused; a running connector continues with a warning.
    """

    checked: tuple[Checked, ...]
    warnings: tuple[str, ...] = ()
    misspelt: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def errors(self) -> Mapping[str, tuple[str, ...]]:
        """The errors by key; empty if the config is valid."""
        return {each.definition.name: each.errors for each in self.checked if each.errors}

    @property
    def remarks(self) -> tuple[str, ...]:
        """The warnings about a config that is in use, with those for misspelt keys."""
        similar = self.misspelt.items()
        misspelt = (
            f"unknown key {key}: it has no effect; {did_you_mean(known)}" for key, known in similar
        )
        return (*self.warnings, *misspelt)

    def plus(self, errors: Mapping[str, str]) -> "Validation":
        """Return this validation with more errors by key; each key must have a definition."""
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
        """Return this validation with each misspelt key as an error, for a new config."""
        kinds = {each.definition.name: each.definition.type for each in self.checked}
        unknown = tuple(
            Checked(
                undefined_key(key, kinds.get(meant, SettingType.STRING)),
                config[key],
                config[key],
                (f"there is no such key: {did_you_mean(meant)}",),
            )
            for key, meant in self.misspelt.items()
        )
        return replace(self, checked=(*self.checked, *unknown), misspelt={})


@dataclass(frozen=True, slots=True)
class ParsedConfig:
    """The parsed values of a config, with typed accessors."""

    values: Mapping[str, Value]

    def text(self, key: str) -> str:
        """Return a text; an absent one is empty."""
        value = self.values[key]
        return "" if value is None else str(value)

    def number(self, key: str) -> int:
        """Return an integer; raises `TypeError` if it is absent and has no default."""
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
    """The definitions of a config's keys; unknown keys are allowed, with a warning.

    Keys that begin with one of `prefixes`, such as `source.option.`, are passed on unchecked.
    `families` documents keys with a part that the user chooses, such as `source.option.*`.
    """

    definitions: tuple[Definition, ...]
    prefixes: tuple[str, ...] = ()
    families: tuple[Definition, ...] = ()

    def plus(self, definitions: Iterable[Definition]) -> "ConfigDef":
        """Return these definitions and the given ones."""
        return replace(self, definitions=(*self.definitions, *definitions))

    def expand_families(self, config: Mapping[str, str]) -> "ConfigDef":
        """Return these definitions, and those of each family for each name that the config uses.

        A family has `<name>` in its key. Families with the same beginning share their names:
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
        """Check each key of a config by itself, and find unknown and misspelt keys."""
        names = [each.name for each in self.definitions]
        unknown = sorted(
            key for key in config if key not in set(names) and not key.startswith(self.prefixes)
        )
        meant = {key: meant_by(key, names, self.prefixes) for key in unknown[:MOST_SEARCHED]}
        misspelt = {key: known for key, known in meant.items() if known}
        warnings = (
            f"unknown key {key}: it has no effect" for key in unknown if key not in misspelt
        )
        return replace(self._check_values(config), warnings=tuple(warnings), misspelt=misspelt)

    def parse(self, config: Mapping[str, str]) -> ParsedConfig:
        """Return the parsed values; raises `ConfigInvalid` with all errors.

        References such as `${env:NAME}` must be resolved before.
        """
        values: dict[str, Value] = {}
        flaws: Sequence[str] = ()
        for each in self.definitions:
            values[each.name], flaws = each.examine(config.get(each.name))
            if flaws:
                break
        else:
            return ParsedConfig(values)
        raise_if_invalid(self._check_values(config))
        raise ConfigInvalid(f"{each.name}: {flaws[0]}")

    def _check_values(self, config: Mapping[str, str]) -> Validation:
        """Check the values only: the search for misspelt keys takes longer than all the rest."""
        return Validation(tuple(_check(each, config.get(each.name)) for each in self.definitions))


def raise_if_invalid(validation: Validation) -> None:
    """Raise `ConfigInvalid` with all errors of a validation, if there are any."""
    if validation.errors:
        raise ConfigInvalid("; ".join(chain(*(each.error_messages for each in validation.checked))))


def error_message(key: str, given: str | None, error: str) -> str:
    """Return an error in the wording of Kafka's ConfigException."""
    if error == MISSING:
        return f'Missing required configuration "{key}" which has no default value.'
    shown = "null" if given is None or error == NO_VALUE else given
    return f"Invalid value {shown} for configuration {key}: {error}"


def undefined_key(key: str, kind: SettingType = SettingType.STRING) -> Definition:
    """Return a placeholder definition for an unknown key."""
    return Definition(key, kind, "There is no such key.", importance=Importance.LOW)


def strip_prefix(prefix: str, config: Mapping[str, str]) -> dict[str, str]:
    """Return the values whose keys have a prefix, by key without the prefix."""
    return {key[len(prefix) :]: config[key] for key in config if key.startswith(prefix)}


def has_reference(text: str) -> bool:
    """Tell whether a value has a reference such as `${file:}`, which only workers resolve."""
    return any(mark in text for mark in _DEFERRED)


def any_reference(prefix: str, config: Mapping[str, str]) -> bool:
    """Tell whether any value whose key has a prefix `has_reference`."""
    return any(map(has_reference, strip_prefix(prefix, config).values()))


def _check(definition: Definition, text: str | None) -> Checked:
    if text is not None and has_reference(text):
        return Checked(definition, text, text)
    value, flaws = definition.examine(text)
    return Checked(definition, text, spell(value), tuple(flaws))
