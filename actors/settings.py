"""A setting: one definition for a node's settings, a group's own and a connector's keys.

Values arrive as text: from a file, the environment, a command line or REST. `Setting.parse` turns
a text into its value or says what is wrong with it, in the words of Kafka's ConfigDef where that
has some. Lists of settings and their explanations draw on the same definition.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

Value = str | int | bool | tuple[str, ...] | None
"""A parsed value; None: not given and without a default."""

Convert = Callable[[str], Value]
"""Turns a text into its value, or raises `ValueError` with what is wrong.

Without any words where `Setting.allowed` says it all.
"""

Validator = Callable[[Value], str | None]
"""Returns what is wrong with a parsed value, or None; a text that is no value comes as None."""

HIDDEN: Final = "********"
"""What people read in place of a secret."""
CONFIDENTIAL_NAMES: Final = (
    r"pas+w|passphr|pass(?![a-z])|pwd|pswd|secr|token|cred|authoriz|bearer|cookie"
    r"|(?<![a-z])(?:auth|sas|pw)(?![a-z])"
    r"|(?:api|access|private|account|encryption|shared|client|master)[._-]?key|key[._-]?pem"
)
"""Matches parts of names whose values are secret, also of misspelt ones; in any case."""
_CONFIDENTIAL_NAME: Final = re.compile(CONFIDENTIAL_NAMES, re.IGNORECASE)

MISSING: Final = "a value is required, and there is no default"
NO_VALUE: Final = "Value must be non-null"
"""What is wrong where a text is no value, and one is needed."""


def sounds_secret(name: str) -> bool:
    """Return whether the name of something that is passed through suggests a secret value.

    Such as `source.option.password`, or `spark.hadoop.fs.s3a.secret.key`.
    """
    return _CONFIDENTIAL_NAME.search(name) is not None


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
    """One setting: its name, type, default and meaning, and its valid values."""

    name: str
    type: SettingType
    documentation: str
    default: Value = None
    required: bool = False
    """Whether a value has to be given; there is no default then."""
    validator: Validator | None = None
    """Returns the flaw of a value; "" if it is valid. None: any value is valid."""
    convert: Convert | None = None
    """How a text becomes a value, where its type alone does not say it."""
    allowed: str = ""
    """What values are let through, in words; empty: what is wrong with one is told instead."""
    unit: str = ""
    """The unit of the value, such as `ms`; empty: none."""

    def parse(self, text: str | None) -> Value:
        """Return the value of a text; raises `ValueError` with the flaw."""
        value, flaws = self.examine(text)
        for flaw in flaws:
            raise ValueError(flaw)
        return value

    def examine(self, text: str | None) -> tuple[Value, Sequence[str]]:
        """Return the value of a text, None if it is invalid, and all of its flaws."""
        if text is None:
            return (None, [MISSING]) if self.required else (self.default, [])
        value: Value = None
        flaws: list[str] = []
        try:
            value = (self.convert or _CONVERT[self.type])(text)
        except ValueError as error:
            flaws.append(str(error))
        if complaint := self.validator(value) if self.validator else None:
            flaws.append(complaint)
        return value, flaws


def spell(value: Value) -> str | None:
    """Return the text from which `parse` makes this value; None if there is none."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def trimmed(text: str) -> str:
    """Return a text without the blanks that Java's `trim` removes; it keeps an NBSP."""
    return text.strip(_BLANKS)


def whole(least: int, most: int) -> Convert:
    """Return how a whole number between two is read: digits, after a minus where it may be less."""
    sign = "-" if least < 0 else ""

    def convert(text: str) -> int:
        digits = text.removeprefix(sign)
        is_number = digits.isascii() and digits.isdigit() and len(digits) <= len(str(most))
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
        if not isinstance(value, int):
            return NO_VALUE
        return None if value >= minimum else f"Value must be at least {minimum}"

    return validate


def between(minimum: int, maximum: int) -> Validator:
    """Return a validator for integers from `minimum` to `maximum`."""
    is_enough = at_least(minimum)

    def validate(value: Value) -> str | None:
        is_much = isinstance(value, int) and value > maximum
        return f"Value must be no more than {maximum}" if is_much else is_enough(value)

    return validate


def one_of(*allowed: str) -> Validator:
    """Return a validator for a closed list of words."""

    def validate(value: Value) -> str | None:
        return None if value in allowed else f"String must be one of: {', '.join(allowed)}"

    return validate


def not_blank(value: Value) -> str | None:
    """Refuse a text without any letter in it."""
    return None if isinstance(value, str) and value.strip() else "String may not be empty"


def _integer(kind: SettingType, bits: int) -> Convert:
    def convert(text: str) -> Value:
        digits = trimmed(text)
        if _WHOLE.fullmatch(digits) and -(1 << bits - 1) <= int(digits) < 1 << bits - 1:
            return int(digits)
        raise ValueError(f"Not a number of type {kind.value}")

    return convert


def _boolean(text: str) -> Value:
    flag = text.strip().lower()
    if flag not in {"true", "false"}:
        raise ValueError("Expected value to be either true or false")
    return flag == "true"


def _list(text: str) -> Value:
    return tuple(part.strip() for part in text.split(",")) if text.strip() else ()


_BLANKS: Final = "".join(map(chr, range(33)))
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,20}")
_CONVERT: Mapping[SettingType, Convert] = {
    SettingType.STRING: str,
    SettingType.PASSWORD: str,
    SettingType.INT: _integer(SettingType.INT, 32),
    SettingType.LONG: _integer(SettingType.LONG, 64),
    SettingType.BOOLEAN: _boolean,
    SettingType.LIST: _list,
}
