"""The keys that every connector has, whatever its class."""

from .config import ConfigDef, Definition, Importance, Kind
from .placement_keys import PLACEMENT
from .validators import at_least, not_blank

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
            Kind.STRING,
            Importance.HIGH,
            "The connector's name, unique within its group.",
            required=True,
            validator=not_blank,
            order=1,
        ),
        Definition(
            CONNECTOR_CLASS,
            Kind.STRING,
            Importance.HIGH,
            "The plugin to run, by its short or its full name.",
            required=True,
            validator=not_blank,
            order=2,
        ),
        Definition(
            TASKS_MAX,
            Kind.INT,
            Importance.HIGH,
            "How many tasks may share the work at most.",
            default=1,
            validator=at_least(1),
            order=3,
        ),
        Definition(
            TRANSFORMS,
            Kind.LIST,
            Importance.LOW,
            "Names of the transforms that each batch goes through, in this order. "
            "Each has keys of its own under `transforms.<name>.`.",
            default=(),
            order=4,
        ),
        Definition(
            RESTART_INITIAL_MS,
            Kind.INT,
            Importance.LOW,
            "How long a failed task waits before its first restart; doubles, with jitter.",
            default=500,
            validator=at_least(1),
            group="Restarts",
            order=1,
        ),
        Definition(
            RESTART_MAX_MS,
            Kind.INT,
            Importance.LOW,
            "The longest wait before a failed task is restarted.",
            default=30_000,
            validator=at_least(1),
            group="Restarts",
            order=2,
        ),
        Definition(
            RESTART_BUDGET,
            Kind.INT,
            Importance.LOW,
            "How many restarts within the window a task gets before it stays FAILED.",
            default=5,
            validator=at_least(0),
            group="Restarts",
            order=3,
        ),
        Definition(
            RESTART_WINDOW_MS,
            Kind.INT,
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
