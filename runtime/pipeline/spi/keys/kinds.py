"""Factories of key definitions, one for each kind of value: text, choice, number, list.

Keys are of medium importance unless a call says otherwise; a key with a default is not required.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TypedDict, Unpack

from .....actors.settings import Convert, SettingType, Validator, Value, at_least, one_of
from ...untrusted.patterns import PatternRefused, compile_pattern
from ..config import Definition, Importance, Width


class KeyTraits(TypedDict, total=False):
    """The optional fields of a `Definition`, in addition to its name, meaning and default."""

    importance: Importance
    required: bool
    validator: Validator
    convert: Convert
    recommended: tuple[str, ...]
    dependents: tuple[str, ...]
    width: Width
    group: str
    order: int
    display_name: str


def text_key(
    name: str, meaning: str, default: str | None = None, **traits: Unpack[KeyTraits]
) -> Definition:
    """Return a key with a text value."""
    return _key(SettingType.STRING, name, meaning, default, traits)


def task_key(name: str, meaning: str, **traits: Unpack[KeyTraits]) -> Definition:
    """Return a key that the connector, not the user, sets in its task configs."""
    low: KeyTraits = {"importance": Importance.LOW, **traits}
    return text_key(name, f"Set by the connector: {meaning}.", **low)


def secret_key(name: str, meaning: str, **traits: Unpack[KeyTraits]) -> Definition:
    """Return a key with a secret: its value is encrypted in the log and masked in replies."""
    return _key(SettingType.PASSWORD, name, meaning, None, traits)


def choice_key(name: str, meaning: str, *values: str, **traits: Unpack[KeyTraits]) -> Definition:
    """Return a key with one of `values`; the first is the default unless the key is required."""
    chosen: KeyTraits = {"validator": one_of(*values), "recommended": values, **traits}
    default = None if chosen.get("required") else values[0]
    return _key(SettingType.STRING, name, meaning, default, chosen)


def list_key(name: str, meaning: str, *values: str, **traits: Unpack[KeyTraits]) -> Definition:
    """Return a key with a list; `values` is the default unless the key is required."""
    return _key(SettingType.LIST, name, meaning, None if traits.get("required") else values, traits)


def flag_key(name: str, meaning: str, *, default: bool, **traits: Unpack[KeyTraits]) -> Definition:
    """Return a key with a boolean."""
    return _key(SettingType.BOOLEAN, name, meaning, default, traits)


def number_key(
    name: str,
    meaning: str,
    default: int | None,
    *,
    least: int | None = 0,
    kind: SettingType = SettingType.LONG,
    **traits: Unpack[KeyTraits],
) -> Definition:
    """Return a key with an integer of at least `least`; None: any integer."""
    bound: KeyTraits = {} if least is None else {"validator": at_least(least)}
    return _key(kind, name, meaning, default, {**bound, **traits})


def with_group(
    group: str, definitions: Iterable[Definition], first: int = 1
) -> tuple[Definition, ...]:
    """Return definitions with the group, and with their order in it, for forms."""
    return tuple(
        replace(each, group=group, order=order)
        for order, each in enumerate(definitions, start=first)
    )


def check_patterns(value: Value) -> str | None:
    """Return an error if a text, or an item of a list, is not a regular expression of RE2."""
    for each in value if isinstance(value, tuple) else (str(value or ""),):
        try:
            compile_pattern(each)
        except PatternRefused as error:
            return f"{each} is no regular expression: {error}"
    return None


def _key(
    kind: SettingType, name: str, meaning: str, default: Value, traits: KeyTraits
) -> Definition:
    all_traits: KeyTraits = {"importance": Importance.MEDIUM, **traits}
    return Definition(name, kind, meaning, default, **all_traits)
