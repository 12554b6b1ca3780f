"""The keys that every connector has, whatever its class.

Those of placement say where its work may run, and how much of a worker it takes. The group reads
them itself: see `events.placement.config`. So they are examined for every class, and a key of that
family that nobody knows is refused.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches

from ...events.placement.config import (
    HEAVIEST,
    KEYS,
    LONGEST_LABEL,
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
from .config import (
    Checked,
    ConfigDef,
    ConfigType,
    Definition,
    Importance,
    Validation,
    Value,
    undefined,
)
from .validators import at_least, between, not_blank

_REFERENCE = "${"


def _each(flaw_in: Callable[[Sequence[str]], str]) -> Callable[[Value], str | None]:
    """Return a validator of the items of a list."""

    def validate(value: Value) -> str | None:
        return flaw_in(value if isinstance(value, tuple) else ()) or None

    return validate


def _flaw_in_task_weights(items: Sequence[str]) -> str:
    if task_weights_in(items) is not None:
        return ""
    return f"must give each task once, with a weight from 1 to {HEAVIEST}: `0:5, 3:20`"


PLACEMENT = (
    Definition(
        WEIGHT,
        ConfigType.INT,
        Importance.LOW,
        "How much of a worker the connector takes, and each of its tasks, next to others.",
        default=1,
        validator=between(1, HEAVIEST),
        group="Placement",
        order=1,
    ),
    Definition(
        TASK_WEIGHTS,
        ConfigType.LIST,
        Importance.LOW,
        "The weights of tasks that have one of their own: `0:5, 3:20`.",
        default=(),
        validator=_each(_flaw_in_task_weights),
        group="Placement",
        order=2,
    ),
    Definition(
        WORKERS,
        ConfigType.LIST,
        Importance.LOW,
        "The workers that may run it, by any of their names. Empty: all.",
        default=(),
        validator=_each(flaw_in_workers),
        group="Placement",
        order=3,
    ),
    Definition(
        TAGS,
        ConfigType.LIST,
        Importance.LOW,
        "Tags that a worker must have, all of them, to run it.",
        default=(),
        validator=_each(flaw_in_labels),
        group="Placement",
        order=4,
    ),
    Definition(
        ZONES,
        ConfigType.LIST,
        Importance.LOW,
        "Zones that it may run in. Empty: all.",
        default=(),
        validator=_each(flaw_in_labels),
        group="Placement",
        order=5,
    ),
)


def with_placement(validation: Validation, config: Mapping[str, str]) -> Validation:
    """Return what a plugin finds in a config, with what is wrong about its placement."""
    found = {each.definition.name: each for each in validation.checked}
    complaints = {
        key: complaint
        for key in sorted(config)
        if key.startswith(PREFIX)
        and key not in validation.misspelt
        and not (key in found and found[key].errors)
        and (complaint := _complaint(key, config[key]))
    }
    strange = tuple(
        Checked(_definition_of(key), config[key], (complaint,))
        for key, complaint in complaints.items()
        if key not in found
    )
    known = validation.plus({key: text for key, text in complaints.items() if key in found})
    return replace(known, checked=(*known.checked, *strange))


def _complaint(key: str, text: str) -> str:
    """Return what is wrong with a key of this family and its value, or nothing."""
    definition = _DEFINED.get(key)
    if definition is None:
        near = get_close_matches(key[:LONGEST_LABEL], KEYS, 1, cutoff=0)[0]
        return f"there is no such key: did you mean {near}?"
    if _REFERENCE in text:
        return "must be plain text: the group reads it itself, and resolves no reference"
    try:
        definition.parse(text)
    except ValueError as error:
        return str(error)
    if key == WEIGHT and weight_in(text) is None:  # the group reads fewer spellings than Connect
        return f"must be from 1 to {HEAVIEST}, in plain digits"
    return ""


def _definition_of(key: str) -> Definition:
    return _DEFINED.get(key, undefined(key))


_DEFINED: Mapping[str, Definition] = {each.name: each for each in PLACEMENT}


NAME = "name"
CONNECTOR_CLASS = "connector.class"
TASKS_MAX = "tasks.max"
TRANSFORMS = "transforms"
RESTART_INITIAL_MS = "task.restart.backoff.initial.ms"
RESTART_MAX_MS = "task.restart.backoff.max.ms"
RESTART_BUDGET = "task.restart.budget"
RESTART_WINDOW_MS = "task.restart.window.ms"

COMMON = ConfigDef(
    (
        Definition(
            NAME,
            ConfigType.STRING,
            Importance.HIGH,
            "The connector's name, unique within its group.",
            required=True,
            validator=not_blank,
            order=1,
        ),
        Definition(
            CONNECTOR_CLASS,
            ConfigType.STRING,
            Importance.HIGH,
            "The plugin to run, by its short or its full name.",
            required=True,
            validator=not_blank,
            order=2,
        ),
        Definition(
            TASKS_MAX,
            ConfigType.INT,
            Importance.HIGH,
            "How many tasks may share the work at most.",
            default=1,
            validator=at_least(1),
            order=3,
        ),
        Definition(
            TRANSFORMS,
            ConfigType.LIST,
            Importance.LOW,
            "Names of the transforms that each batch goes through, in this order. "
            "Each has keys of its own under `transforms.<name>.`.",
            default=(),
            order=4,
        ),
        Definition(
            RESTART_INITIAL_MS,
            ConfigType.INT,
            Importance.LOW,
            "How long a failed task waits before its first restart; doubles, with jitter.",
            default=500,
            validator=at_least(1),
            group="Restarts",
            order=1,
        ),
        Definition(
            RESTART_MAX_MS,
            ConfigType.INT,
            Importance.LOW,
            "The longest wait before a failed task is restarted.",
            default=30_000,
            validator=at_least(1),
            group="Restarts",
            order=2,
        ),
        Definition(
            RESTART_BUDGET,
            ConfigType.INT,
            Importance.LOW,
            "How many restarts within the window a task gets before it stays FAILED.",
            default=5,
            validator=at_least(0),
            group="Restarts",
            order=3,
        ),
        Definition(
            RESTART_WINDOW_MS,
            ConfigType.INT,
            Importance.LOW,
            "The window of the restart budget; a task that ran this long without an error "
            "begins anew.",
            default=600_000,
            validator=at_least(1),
            group="Restarts",
            order=4,
        ),
        *PLACEMENT,
    )
)
