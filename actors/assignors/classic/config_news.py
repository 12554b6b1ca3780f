"""What a worker does about news in the log of configs: rejoin, or see to it by itself.

See `DistributedHerder` of Connect, and KIP-415.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class ConfigNews(Enum):
    """What the log of configs can tell a worker."""

    CONNECTORS = "a connector was created or deleted"
    CONNECTOR_CONFIG = "a connector that was there already has another config"
    TASK_CONFIGS = "the configs of a connector's tasks were written"
    TARGET_STATE = "a connector is to be paused, resumed or stopped"


class Change(Enum):
    """What a worker changes of what it runs, without waiting for an assignment."""

    NOTHING = "nothing"
    RESTART_CONNECTOR = "restart the connector, if it runs here"
    STOP_TASKS = "stop the connector's tasks: they start again after the rebalance"
    APPLY_STATE = "bring the connector and its tasks to that state"


@dataclass(frozen=True, slots=True)
class Response:
    """Whether the worker rejoins, so that all is assigned anew, and what it changes at once."""

    rejoins: bool
    change: Change


RESPONSES: Mapping[ConfigNews, Response] = {
    ConfigNews.CONNECTORS: Response(rejoins=True, change=Change.NOTHING),
    ConfigNews.CONNECTOR_CONFIG: Response(rejoins=False, change=Change.RESTART_CONNECTOR),
    ConfigNews.TASK_CONFIGS: Response(rejoins=True, change=Change.STOP_TASKS),
    ConfigNews.TARGET_STATE: Response(rejoins=False, change=Change.APPLY_STATE),
}
