"""What a setting is: one definition for a node's settings, a group's own and a connector's keys.

Values arrive as text: from a file, the environment, a command line or REST. `Setting.parse` turns
a text into its value or says what is wrong with it. Lists of settings and their explanations draw
on the same definition.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

Value = str | int | bool | tuple[str, ...] | None
"""A parsed value; None: not given and without a default."""

Convert = Callable[[str], Value]
"""Turns a text into its value, or raises `ValueError` with what is wrong.

Without any words where `Setting.allowed` says it all.
"""

Validator = Callable[[Value], str | None]
"""Returns what is wrong with a parsed value, or None."""


class SettingType(Enum):
    """The type of a value, spelled as Connect spells it."""

    STRING = "STRING"
    INT = "INT"
    LONG = "LONG"
    BOOLEAN = "BOOLEAN"
    LIST = "LIST"
    PASSWORD = "PASSWORD"  # noqa: S105  # a type's name


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its name, type, default and meaning, and what values it lets through."""

    name: str
    type: SettingType
    documentation: str
    default: Value = None
    required: bool = False
    """Whether a value has to be given; there is no default then."""
    validator: Validator | None = None
    convert: Convert | None = None
    """How a text becomes a value, where its type alone does not say it."""
    allowed: str = ""
    """What values are let through, in words; empty: what is wrong with one is told instead."""
    unit: str = ""

    def parse(self, text: str | None) -> Value:
        """Return the value that a text stands for; raises `ValueError` with what is wrong."""
        if text is None:
            if self.required:
                raise ValueError("a value is required, and there is no default")
            return self.default
        value = (self.convert or _CONVERT[self.type])(text)
        complaint = self.validator(value) if self.validator else None
        if complaint:
            raise ValueError(complaint)
        return value


def spell(value: Value) -> str | None:
    """Return a value as the text that would be parsed to it, None if there is none."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def whole(least: int, most: int) -> Convert:
    """Return how a whole number between two is read: digits, and nothing else."""

    def convert(text: str) -> int:
        is_number = text.isascii() and text.isdigit() and len(text) <= len(str(most))
        if not is_number or not least <= int(text) <= most:
            raise ValueError
        return int(text)

    return convert


def word(*words: str) -> Convert:
    """Return how one of a few words is read."""

    def convert(text: str) -> str:
        if text not in words:
            raise ValueError
        return text

    return convert


def at_least(minimum: int) -> Validator:
    """Return a validator for integers from `minimum` up."""

    def validate(value: Value) -> str | None:
        fits = isinstance(value, int) and value >= minimum
        return None if fits else f"must be at least {minimum}"

    return validate


def between(minimum: int, maximum: int) -> Validator:
    """Return a validator for integers from `minimum` to `maximum`."""

    def validate(value: Value) -> str | None:
        fits = isinstance(value, int) and minimum <= value <= maximum
        return None if fits else f"must be from {minimum} to {maximum}"

    return validate


def one_of(*allowed: str) -> Validator:
    """Return a validator for a closed list of words."""

    def validate(value: Value) -> str | None:
        return None if value in allowed else f"must be one of {', '.join(allowed)}"

    return validate


def not_blank(value: Value) -> str | None:
    """Refuse a text without any letter in it."""
    return None if isinstance(value, str) and value.strip() else "must not be blank"


def _integer(bits: int) -> Convert:
    def convert(text: str) -> Value:
        try:
            number = int(text.strip())
        except ValueError:
            raise ValueError(f"not a whole number: {text!r}") from None
        if not -(1 << bits - 1) <= number < 1 << bits - 1:
            raise ValueError(f"does not fit into {bits} bits: {text}")
        return number

    return convert


def _boolean(text: str) -> Value:
    flag = text.strip().lower()
    if flag not in {"true", "false"}:
        raise ValueError(f"must be true or false, not {text!r}")
    return flag == "true"


def _list(text: str) -> Value:
    return tuple(part.strip() for part in text.split(",")) if text.strip() else ()


_CONVERT: Mapping[SettingType, Convert] = {
    SettingType.STRING: str,
    SettingType.PASSWORD: str,
    SettingType.INT: _integer(32),
    SettingType.LONG: _integer(64),
    SettingType.BOOLEAN: _boolean,
    SettingType.LIST: _list,
}
