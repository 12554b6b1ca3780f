"""The keys that every connector has, whatever its class.

Those of placement say where its work may run, and how much of a worker it takes. The group reads
them itself: see `events.placement`. So they are examined for every class, and a key of that
family that nobody knows is refused.
"""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches

from ....actors.settings import (
    SettingType,
    Value,
    at_least,
    between,
    not_blank,
    one_of,
)
from ....events.placement import (
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
from ..spi.config import (
    Checked,
    ConfigDef,
    ConfigInvalid,
    Definition,
    Importance,
    Validation,
    Width,
    undefined,
)

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
        SettingType.INT,
        "How much of a worker the connector takes, and each of its tasks, next to others.",
        importance=Importance.LOW,
        default=1,
        validator=between(1, HEAVIEST),
        group="Placement",
        order=1,
    ),
    Definition(
        TASK_WEIGHTS,
        SettingType.LIST,
        "The weights of tasks that have one of their own: `0:5, 3:20`.",
        importance=Importance.LOW,
        default=(),
        validator=_each(_flaw_in_task_weights),
        group="Placement",
        order=2,
    ),
    Definition(
        WORKERS,
        SettingType.LIST,
        "The workers that may run it, by any of their names. Empty: all.",
        importance=Importance.LOW,
        default=(),
        validator=_each(flaw_in_workers),
        group="Placement",
        order=3,
    ),
    Definition(
        TAGS,
        SettingType.LIST,
        "Tags that a worker must have, all of them, to run it.",
        importance=Importance.LOW,
        default=(),
        validator=_each(flaw_in_labels),
        group="Placement",
        order=4,
    ),
    Definition(
        ZONES,
        SettingType.LIST,
        "Zones that it may run in. Empty: all.",
        importance=Importance.LOW,
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
        Checked(_definition_of(key), config[key], config[key], (complaint,))
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
CONNECTOR_VERSION = "connector.plugin.version"
TASKS_MAX = "tasks.max"
TRANSFORMS = "transforms"
TOLERANCE = "errors.tolerance"
PREDICATES = "predicates"
RESTART_INITIAL_MS = "task.restart.backoff.initial.ms"
RESTART_MAX_MS = "task.restart.backoff.max.ms"
RESTART_BUDGET = "task.restart.budget"
RESTART_WINDOW_MS = "task.restart.window.ms"
DEFAULT_WINDOW_MS = 600_000
RETRY_TIMEOUT_MS = "errors.retry.timeout"
RETRY_MAX_MS = "errors.retry.delay.max.ms"
CALL_TIMEOUT_MS = "task.call.timeout.ms"
BATCH_TIMEOUT_MS = "task.batch.timeout.ms"
TASK_MEMORY = "task.memory"


def _name(value: Value) -> str | None:
    """Refuse a name that is blank, or that could not be told in one line."""
    controls = [ord(char) for char in str(value) if unicodedata.category(char) == "Cc"]
    if controls:
        told = ", ".join(map(str, controls))
        return f"String may not contain control sequences but had the following ASCII chars: {told}"
    return not_blank(value)


COMMON = ConfigDef(
    (
        Definition(
            NAME,
            SettingType.STRING,
            "The connector's name, unique within its group.",
            importance=Importance.HIGH,
            required=True,
            validator=_name,
            order=1,
            display_name="Connector name",
        ),
        Definition(
            CONNECTOR_CLASS,
            SettingType.STRING,
            "The plugin to run, by its short or its full name.",
            importance=Importance.HIGH,
            required=True,
            validator=not_blank,
            order=2,
            width=Width.LONG,
            display_name="Connector class",
        ),
        Definition(
            CONNECTOR_VERSION,
            SettingType.STRING,
            "The version that the plugin must have: `1.0`, `latest`, or a range, `[1.0,2.0)`. "
            "Empty: whichever is installed.",
            importance=Importance.MEDIUM,
            order=5,
            display_name="Connector version",
        ),
        Definition(
            TASKS_MAX,
            SettingType.INT,
            "How many tasks may share the work at most.",
            importance=Importance.HIGH,
            default=1,
            validator=at_least(1),
            order=3,
            width=Width.SHORT,
            display_name="Tasks max",
        ),
        Definition(
            TRANSFORMS,
            SettingType.LIST,
            "Names of the transforms that each batch goes through, in this order. "
            "Each has keys of its own under `transforms.<name>.`.",
            importance=Importance.LOW,
            default=(),
            group="Transforms",
            width=Width.LONG,
            display_name="Transforms",
        ),
        Definition(
            PREDICATES,
            SettingType.LIST,
            "Names of the predicates by which transforms are for some records alone. "
            "Each has keys of its own under `predicates.<name>.`.",
            importance=Importance.LOW,
            default=(),
            group="Predicates",
            width=Width.LONG,
            display_name="Predicates",
        ),
        Definition(
            "config.action.reload",
            SettingType.STRING,
            "Is taken, and has no effect here: references are read when a task starts.",
            importance=Importance.LOW,
            default="restart",
            validator=one_of("none", "restart"),
            order=4,
            display_name="Reload Action",
        ),
        Definition(
            RESTART_INITIAL_MS,
            SettingType.INT,
            "How long a failed task waits before its first restart; doubles, with jitter.",
            importance=Importance.LOW,
            default=500,
            validator=at_least(1),
            group="Restarts",
            order=1,
        ),
        Definition(
            RESTART_MAX_MS,
            SettingType.INT,
            "The longest wait before a failed task is restarted.",
            importance=Importance.LOW,
            default=30_000,
            validator=at_least(1),
            group="Restarts",
            order=2,
        ),
        Definition(
            RESTART_BUDGET,
            SettingType.INT,
            "How many restarts within the window a task gets before it stays FAILED. -1: for ever.",
            importance=Importance.LOW,
            default=5,
            validator=at_least(-1),
            group="Restarts",
            order=3,
        ),
        Definition(
            RESTART_WINDOW_MS,
            SettingType.INT,
            "The window of the restart budget; a task that ran this long without an error "
            "begins anew.",
            importance=Importance.LOW,
            default=DEFAULT_WINDOW_MS,
            validator=at_least(1),
            group="Restarts",
            order=4,
        ),
        Definition(
            RETRY_TIMEOUT_MS,
            SettingType.LONG,
            "For how long what is out of reach, a source or a sink, is tried again before the task "
            "fails. Below zero: for ever.",
            importance=Importance.MEDIUM,
            default=-1,
            group="Error Handling",
            order=1,
            display_name="Retry Timeout for Errors",
        ),
        Definition(
            RETRY_MAX_MS,
            SettingType.LONG,
            "The longest wait between two such attempts; the first is a second, each doubles it.",
            importance=Importance.MEDIUM,
            default=10_000,
            group="Error Handling",
            order=2,
            display_name="Maximum Delay Between Retries for Errors",
        ),
        Definition(
            CALL_TIMEOUT_MS,
            SettingType.INT,
            "How long one call of the source, the sink or a transform may take; the task is "
            "restarted then, and what hangs is left behind.",
            importance=Importance.LOW,
            default=300_000,
            validator=at_least(1),
            group="Limits",
            order=1,
        ),
        Definition(
            BATCH_TIMEOUT_MS,
            SettingType.INT,
            "How long a batch may take until it is staged, its Spark jobs included.",
            importance=Importance.LOW,
            default=3_600_000,
            validator=at_least(1),
            group="Limits",
            order=2,
        ),
        Definition(
            TASK_MEMORY,
            SettingType.INT,
            "How many bytes of rows a source may hold that fetches them in the worker.",
            importance=Importance.LOW,
            default=256 << 20,
            validator=at_least(1),
            group="Limits",
            order=3,
        ),
        *PLACEMENT,
    )
)


def restart_window_ms(config: Mapping[str, str]) -> int:
    """Return for how long a failure counts; a config that is invalid has the default."""
    try:
        return COMMON.parse(config).number(RESTART_WINDOW_MS)
    except ConfigInvalid:
        return DEFAULT_WINDOW_MS
