"""What a config key means, and what is wrong with a value: Connect's ConfigDef.

Values arrive as text, as they do over REST. Definitions parse them; `check` finds everything
that is wrong at once and in the shape of Connect's validation reply, `parse` refuses.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum

Value = str | int | bool | tuple[str, ...] | None
"""A parsed value; None: not given and without a default."""

Json = str | int | bool | None | Sequence["Json"] | Mapping[str, "Json"]

HIDDEN = "********"
_DEFERRED = ("${env:", "${file:")


class Kind(Enum):
    """The type of a value, spelled as Connect spells it."""

    STRING = "STRING"
    INT = "INT"
    LONG = "LONG"
    BOOLEAN = "BOOLEAN"
    LIST = "LIST"
    PASSWORD = "PASSWORD"  # noqa: S105  # a type's name


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


Validator = Callable[[Value], str | None]
"""Returns what is wrong with a parsed value, or None."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One key: its type, default, meaning, and how a form shows it.

    A required key has no default. `recommended` lists values to offer, not all that are
    allowed; `dependents` names the keys whose meaning hangs on this one.
    """

    name: str
    kind: Kind
    importance: Importance
    documentation: str
    default: Value = None
    required: bool = False
    validator: Validator | None = None
    recommended: tuple[str, ...] = ()
    group: str = "Common"
    order: int = 0
    width: Width = Width.MEDIUM
    display_name: str = ""
    dependents: tuple[str, ...] = ()

    def parse(self, text: str | None) -> Value:
        """Return the value that a text stands for; raises `ValueError` with what is wrong."""
        if text is None:
            if self.required:
                raise ValueError("a value is required, and there is no default")
            return self.default
        value = _PARSERS[self.kind](text)
        complaint = self.validator(value) if self.validator else None
        if complaint:
            raise ValueError(complaint)
        return value

    def to_json(self) -> Mapping[str, Json]:
        """Return Connect's `ConfigKeyInfo`."""
        return {
            "name": self.name,
            "type": self.kind.value,
            "required": self.required,
            "default_value": _spelled(self.default),
            "importance": self.importance.value,
            "documentation": self.documentation,
            "group": self.group,
            "order": self.order,
            "width": self.width.value,
            "display_name": self.display_name or self.name,
            "dependents": self.dependents,
        }


@dataclass(frozen=True, slots=True)
class Checked:
    """One key of a config with what was given for it and what is wrong with that."""

    definition: Definition
    value: str | None
    errors: tuple[str, ...] = ()

    def to_json(self) -> Mapping[str, Json]:
        """Return Connect's `ConfigInfo`; a password is never shown."""
        secret = self.definition.kind is Kind.PASSWORD and self.value is not None
        return {
            "definition": self.definition.to_json(),
            "value": {
                "name": self.definition.name,
                "value": HIDDEN if secret else self.value,
                "recommended_values": self.definition.recommended,
                "errors": self.errors,
                "visible": True,
            },
        }


@dataclass(frozen=True, slots=True)
class Validation:
    """What a config looks like against its definitions; warnings do not refuse it."""

    checked: tuple[Checked, ...]
    warnings: tuple[str, ...] = ()

    @property
    def errors(self) -> Mapping[str, tuple[str, ...]]:
        """What is wrong, by key; empty if the config is fit for use."""
        return {each.definition.name: each.errors for each in self.checked if each.errors}

    def plus(self, errors: Mapping[str, str]) -> "Validation":
        """Return this validation with further errors, each under a key that is defined."""
        return Validation(
            tuple(
                Checked(each.definition, each.value, (*each.errors, errors[each.definition.name]))
                if each.definition.name in errors
                else each
                for each in self.checked
            ),
            self.warnings,
        )

    def to_json(self, name: str) -> Mapping[str, Json]:
        """Return Connect's `ConfigInfos`, the reply to `PUT …/config/validate`."""
        groups = list(dict.fromkeys(each.definition.group for each in self.checked))
        return {
            "name": name,
            "error_count": sum(len(each.errors) for each in self.checked),
            "groups": groups,
            "configs": [each.to_json() for each in self.checked],
        }


@dataclass(frozen=True, slots=True)
class Settings:
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

    `prefixes` names families of keys that are passed on as they are: `source.option.`.
    """

    definitions: tuple[Definition, ...]
    prefixes: tuple[str, ...] = ()

    def plus(self, definitions: Iterable[Definition]) -> "ConfigDef":
        """Return these definitions and further ones."""
        return ConfigDef((*self.definitions, *definitions), self.prefixes)

    def check(self, config: Mapping[str, str]) -> Validation:
        """Find everything that is wrong with a config."""
        checked = tuple(_checked(each, config.get(each.name)) for each in self.definitions)
        known = {each.name for each in self.definitions}
        strange = sorted(
            key for key in config if key not in known and not key.startswith(self.prefixes)
        )
        return Validation(checked, tuple(_unknown(key, known) for key in strange))

    def parse(self, config: Mapping[str, str]) -> Settings:
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
        return Settings(values)


def refuse(validation: Validation) -> None:
    """Raise `ConfigInvalid` if there is anything wrong."""
    if validation.errors:
        told = (f"{key}: {'; '.join(errors)}" for key, errors in validation.errors.items())
        raise ConfigInvalid("; ".join(told))


def _checked(definition: Definition, text: str | None) -> Checked:
    if text is not None and any(mark in text for mark in _DEFERRED):
        return Checked(definition, text)
    try:
        definition.parse(text)
    except ValueError as error:
        return Checked(definition, text, (str(error),))
    return Checked(definition, _spelled(definition.default) if text is None else text)


def _spelled(value: Value) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _unknown(key: str, known: Collection[str]) -> str:
    near = get_close_matches(key, known, n=1)
    meant = f"; did you mean {near[0]}?" if near else ""
    return f"unknown key {key}: it has no effect{meant}"


def _integer(bits: int) -> Callable[[str], Value]:
    def parse(text: str) -> Value:
        try:
            number = int(text.strip())
        except ValueError:
            raise ValueError(f"not a whole number: {text!r}") from None
        if not -(1 << bits - 1) <= number < 1 << bits - 1:
            raise ValueError(f"does not fit into {bits} bits: {text}")
        return number

    return parse


def _boolean(text: str) -> Value:
    word = text.strip().lower()
    if word not in {"true", "false"}:
        raise ValueError(f"must be true or false, not {text!r}")
    return word == "true"


def _list(text: str) -> Value:
    return tuple(part.strip() for part in text.split(",")) if text.strip() else ()


_PARSERS: Mapping[Kind, Callable[[str], Value]] = {
    Kind.STRING: str,
    Kind.PASSWORD: str,
    Kind.INT: _integer(32),
    Kind.LONG: _integer(64),
    Kind.BOOLEAN: _boolean,
    Kind.LIST: _list,
}
