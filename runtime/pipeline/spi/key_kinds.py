"""Definitions of connectors' keys by the kind of their value: a text, a choice, a number, a list.

What most keys of a kind have is not said again for each: it is of medium importance, and a key
with a default is not required.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TypedDict, Unpack

from ....actors.settings import SettingType, Validator, Value, at_least, one_of
from .config import Definition, Importance, Width


class KeyTraits(TypedDict, total=False):
    """What a key may have beside its name, its meaning and its default; see `Definition`."""

    importance: Importance
    required: bool
    validator: Validator
    recommended: tuple[str, ...]
    dependents: tuple[str, ...]
    width: Width
    group: str
    order: int
    display_name: str


def text_key(
    name: str, meaning: str, default: str | None = None, **traits: Unpack[KeyTraits]
) -> Definition:
    """Return a key that has a text, or none."""
    return _key(SettingType.STRING, name, meaning, default, traits)


def task_key(name: str, what: str, **traits: Unpack[KeyTraits]) -> Definition:
    """Return a key that a connector sets in the configs of its tasks; `what` it tells them."""
    low: KeyTraits = {"importance": Importance.LOW, **traits}
    return text_key(name, f"Set by the connector: {what}.", **low)


def secret_key(name: str, meaning: str, **traits: Unpack[KeyTraits]) -> Definition:
    """Return a key whose value is sealed."""
    return _key(SettingType.PASSWORD, name, meaning, None, traits)


def choice_key(name: str, meaning: str, *values: str, **traits: Unpack[KeyTraits]) -> Definition:
    """Return a key that has one of some values: the first unless it is set, or required."""
    chosen: KeyTraits = {"validator": one_of(*values), "recommended": values, **traits}
    default = None if chosen.get("required") else values[0]
    return _key(SettingType.STRING, name, meaning, default, chosen)


def list_key(name: str, meaning: str, *values: str, **traits: Unpack[KeyTraits]) -> Definition:
    """Return a key that has a list; `values` are its default unless it is required."""
    return _key(SettingType.LIST, name, meaning, None if traits.get("required") else values, traits)


def flag_key(name: str, meaning: str, *, default: bool, **traits: Unpack[KeyTraits]) -> Definition:
    """Return a key that is true or false."""
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
    """Return a key that has a whole number, from `least` on; None: any."""
    bound: KeyTraits = {} if least is None else {"validator": at_least(least)}
    return _key(kind, name, meaning, default, {**bound, **traits})


def grouped(
    group: str, definitions: Iterable[Definition], first: int = 1
) -> tuple[Definition, ...]:
    """Return definitions as a form shows them: under one heading, in this order."""
    return tuple(
        replace(each, group=group, order=order)
        for order, each in enumerate(definitions, start=first)
    )


def patterns(value: Value) -> str | None:
    """Refuse a text, or a list of texts, that is no regular expression."""
    for each in value if isinstance(value, tuple) else (str(value or ""),):
        try:
            re.compile(each)
        except re.error as error:
            return f"{each} is no regular expression: {error}"
    return None


def _key(
    kind: SettingType, name: str, meaning: str, default: Value, traits: KeyTraits
) -> Definition:
    all_traits: KeyTraits = {"importance": Importance.MEDIUM, **traits}
    return Definition(name, kind, meaning, default, **all_traits)
