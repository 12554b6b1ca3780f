"""The config keys of all connector classes."""

import unicodedata
from collections.abc import Mapping
from functools import partial
from typing import Final

from .....actors.settings import SettingType, Value, not_blank, one_of, trimmed
from ..config import ConfigDef, ConfigInvalid, Importance, ParsedConfig, Width
from .kinds import list_key, number_key, text_key, with_group
from .labels import LABELS, flaw_in_label_list
from .placement import PLACEMENT

NAME: Final = "name"
CONNECTOR_CLASS: Final = "connector.class"
CONNECTOR_VERSION: Final = "connector.plugin.version"
TASKS_MAX: Final = "tasks.max"
TRANSFORMS: Final = "transforms"
TOLERANCE: Final = "errors.tolerance"
QUEUE: Final = "errors.deadletterqueue"
QUEUE_TOPIC: Final = f"{QUEUE}.topic.name"
PREDICATES: Final = "predicates"
RESTART_INITIAL_MS: Final = "task.restart.backoff.initial.ms"
RESTART_MAX_MS: Final = "task.restart.backoff.max.ms"
RESTART_BUDGET: Final = "task.restart.budget"
RESTART_WINDOW_MS: Final = "task.restart.window.ms"
RETRY_TIMEOUT_MS: Final = "errors.retry.timeout"
RETRY_MAX_MS: Final = "errors.retry.delay.max.ms"
CALL_TIMEOUT_MS: Final = "task.call.timeout.ms"
BATCH_TIMEOUT_MS: Final = "task.batch.timeout.ms"
TASK_MEMORY: Final = "task.memory"


def _name(value: Value) -> str | None:
    """Return an error for a name that is blank or has control characters."""
    controls = [ord(char) for char in str(value) if unicodedata.category(char) == "Cc"]
    if controls:
        codes = ", ".join(map(str, controls))
        return (
            f"String may not contain control sequences but had the following ASCII chars: {codes}"
        )
    return None if value else "String may not be empty"


def _labels(value: Value) -> str | None:
    return flaw_in_label_list(value if isinstance(value, tuple) else ()) or None


_whole_number = partial(number_key, least=1, kind=SettingType.INT, importance=Importance.LOW)

_CONNECTOR: Final = (
    text_key(
        NAME,
        "The connector's name, unique within its group.",
        importance=Importance.HIGH,
        required=True,
        validator=_name,
        convert=trimmed,
        display_name="Connector name",
    ),
    text_key(
        CONNECTOR_CLASS,
        "The plugin to run, by its short or its full name.",
        importance=Importance.HIGH,
        required=True,
        validator=not_blank,
        width=Width.LONG,
        display_name="Connector class",
    ),
    _whole_number(
        TASKS_MAX,
        "The maximum number of tasks.",
        1,
        importance=Importance.HIGH,
        width=Width.SHORT,
        display_name="Tasks max",
    ),
    text_key(
        "config.action.reload",
        "Accepted for compatibility; it has no effect: references are read when a task starts.",
        "restart",
        importance=Importance.LOW,
        validator=one_of("none", "restart"),
        convert=trimmed,
        display_name="Reload Action",
    ),
    text_key(
        CONNECTOR_VERSION,
        "The version that the plugin must have: `1.0`, `latest`, or a range, `[1.0,2.0)`. "
        "Empty: the installed version.",
        display_name="Connector version",
    ),
    list_key(
        LABELS,
        "Words by which `fairlead get -l team=a` and other verbs select connectors: "
        "`team=a, env=prod`. They change nothing else.",
        importance=Importance.LOW,
        validator=_labels,
        display_name="Labels",
    ),
)

_CHAIN: Final = (
    list_key(
        TRANSFORMS,
        "The names of the transforms that apply to each batch, in this order. "
        "The keys of each begin with `transforms.<name>.`.",
        importance=Importance.LOW,
        group="Transforms",
        width=Width.LONG,
        display_name="Transforms",
    ),
    list_key(
        PREDICATES,
        "The names of predicates, which limit transforms to some records. "
        "The keys of each begin with `predicates.<name>.`.",
        importance=Importance.LOW,
        group="Predicates",
        width=Width.LONG,
        display_name="Predicates",
    ),
)

_RESTARTS: Final = (
    _whole_number(
        RESTART_INITIAL_MS,
        "How long a failed task waits before its first restart; doubles, with jitter.",
        500,
    ),
    _whole_number(RESTART_MAX_MS, "The longest wait before a failed task is restarted.", 30_000),
    _whole_number(
        RESTART_BUDGET,
        "How many restarts within the window a task gets before it stays FAILED. -1: no limit.",
        5,
        least=-1,
    ),
    _whole_number(
        RESTART_WINDOW_MS,
        "The window of the restart budget; a task that ran this long without an error has the "
        "whole budget again.",
        600_000,
    ),
)

_RETRIES: Final = (
    number_key(
        RETRY_TIMEOUT_MS,
        "How long a task retries an unreachable source or sink before it fails. "
        "Below zero: forever.",
        -1,
        least=None,
        display_name="Retry Timeout for Errors",
    ),
    number_key(
        RETRY_MAX_MS,
        "The longest wait between two such retries; the wait is a second at first, and doubles.",
        10_000,
        least=None,
        display_name="Maximum Delay Between Retries for Errors",
    ),
)

_LIMITS: Final = (
    _whole_number(
        CALL_TIMEOUT_MS,
        "How long one call of the source, the sink or a transform may take; after that the task "
        "is restarted, and the hanging call is abandoned.",
        300_000,
    ),
    _whole_number(
        BATCH_TIMEOUT_MS,
        "How long a batch may take until it is staged, including its Spark jobs.",
        3_600_000,
    ),
    _whole_number(
        TASK_MEMORY,
        "How many bytes of rows a source that fetches them in the worker may hold.",
        256 << 20,
    ),
)

COMMON: Final = ConfigDef(
    (
        *with_group("Common", _CONNECTOR),
        *_CHAIN,
        *with_group("Restarts", _RESTARTS),
        *with_group("Error Handling", _RETRIES),
        *with_group("Limits", _LIMITS),
        *PLACEMENT,
    )
)

_RUNNING: Final = ConfigDef((*_RESTARTS, *_RETRIES, *_LIMITS))

OF_TASKS: Final = (
    CONNECTOR_CLASS,
    CONNECTOR_VERSION,
    *(each.name for each in _RUNNING.definitions),
)
"""The keys that the task runner reads from the connector's config, not from the task config."""

_DEFAULTS: Final = _RUNNING.parse({})


def running_settings(config: Mapping[str, str]) -> ParsedConfig:
    """Return the parsed keys about restarts, retries and limits; the defaults if one is invalid.

    An invalid config fails elsewhere, and its failures need restart limits as well.
    """
    try:
        return _RUNNING.parse(config)
    except ConfigInvalid:
        return _DEFAULTS
