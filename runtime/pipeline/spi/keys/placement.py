"""The placement keys: the workers that may run a connector, and its weight.

The group's coordinator reads them (`events.placement`). So they are validated for each connector
class, and an unknown key with their prefix is an error.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from .....actors.misspelling import hint
from .....actors.settings import SettingType, Value, between
from .....events.placement import (
    HEAVIEST,
    KEYS,
    PREFIX,
    TAGS,
    TASK_WEIGHTS,
    WEIGHT,
    WORKERS,
    ZONES,
    flaw_in_labels,
    flaw_in_workers,
    task_weights_in,
    weight_in,
)
from ..config import Checked, Definition, Importance, Validation, undefined_key
from .kinds import list_key, number_key, with_group

_REFERENCE: Final = "${"
_ALL: Final = ", ".join(KEYS)


def _items(name: str, meaning: str, flaw_in: Callable[[Sequence[str]], str]) -> Definition:
    """Return a list key that `flaw_in` validates."""

    def validate(value: Value) -> str | None:
        return flaw_in(value if isinstance(value, tuple) else ()) or None

    return list_key(name, meaning, importance=Importance.LOW, validator=validate)


def _flaw_in_task_weights(items: Sequence[str]) -> str:
    if task_weights_in(items) is not None:
        return ""
    return f"must give each task once, with a weight from 1 to {HEAVIEST}: `0:5, 3:20`"


PLACEMENT: Final = with_group(
    "Placement",
    (
        number_key(
            WEIGHT,
            "The load of the connector, and of each of its tasks, relative to others.",
            1,
            kind=SettingType.INT,
            importance=Importance.LOW,
            validator=between(1, HEAVIEST),
        ),
        _items(
            TASK_WEIGHTS,
            "The weights of single tasks: `0:5, 3:20`.",
            _flaw_in_task_weights,
        ),
        _items(
            WORKERS,
            "The workers that may run it, by any of their names. Empty: all.",
            flaw_in_workers,
        ),
        _items(TAGS, "Tags that a worker must have, all of them, to run it.", flaw_in_labels),
        _items(ZONES, "Zones that it may run in. Empty: all.", flaw_in_labels),
    ),
)

_DEFINED: Final[Mapping[str, Definition]] = {each.name: each for each in PLACEMENT}


def with_placement(validation: Validation, config: Mapping[str, str]) -> Validation:
    """Return a plugin's validation with the errors of the placement keys added."""
    by_name = {each.definition.name: each for each in validation.checked}
    complaints = {
        key: complaint
        for key in sorted(config)
        if key.startswith(PREFIX)
        and key not in validation.misspelt
        and not (key in by_name and by_name[key].errors)
        and (complaint := _complaint(key, config[key]))
    }
    strange = tuple(
        Checked(_definition_of(key), config[key], config[key], (complaint,))
        for key, complaint in complaints.items()
        if key not in by_name
    )
    judged = validation.plus({key: text for key, text in complaints.items() if key in by_name})
    return replace(judged, checked=(*judged.checked, *strange))


def _complaint(key: str, text: str) -> str:
    """Return the error of a key with the placement prefix and its value, or nothing."""
    definition = _DEFINED.get(key)
    if definition is None:
        return f"there is no such key: {hint(key, KEYS) or f'there are {_ALL}'}"
    if _REFERENCE in text:
        return "must not have ${...} references: the coordinator reads it without resolving them"
    try:
        definition.parse(text)
    except ValueError as error:
        return str(error)
    if key == WEIGHT and weight_in(text) is None:  # the group reads fewer spellings than Connect
        return f"must be from 1 to {HEAVIEST}, in plain digits"
    return ""


def _definition_of(key: str) -> Definition:
    return _DEFINED.get(key, undefined_key(key))
