"""What a scrape measures, as the projections tell it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ..events.commits import Lag
from ..events.group import Group
from ..events.model import Resource, Why
from .views import LogFigures, Progress
from .watch.group import Watched


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """What is measured of one group; `logs` by name, `progress` by connector.

    `skipping` holds the progress of the tasks that ever left out bad rows.
    """

    group: Group
    rebalances: Mapping[Why, int]
    logs: Mapping[str, LogFigures]
    progress: Mapping[str, Progress]
    skipping: Mapping[Resource, Progress] = field(default_factory=dict[Resource, Progress])
    failures: Mapping[tuple[str, Why], int] = field(default_factory=dict[tuple[str, Why], int])
    """How often a worker was lost, by its url and how, in the whole log."""
    unread: Mapping[str, Lag] = field(default_factory=dict[str, Lag])
    """What connectors have to read that are paused, stopped or have failed, by a look at it."""
    watched: Watched = field(default_factory=Watched)


@dataclass(frozen=True, slots=True)
class Beats:
    """The heartbeats that a group's actor took since it started, and those it holds now."""

    taken: int
    held: int


class EngineFigures(NamedTuple):
    """A JVM: whether it runs jobs now, and how often it was started again."""

    is_up: bool
    restarts: int


@dataclass(frozen=True, slots=True)
class NodeFigures:
    """What is measured of the node itself; `engines` by worker, "" for the one that they share."""

    engines: Mapping[str, EngineFigures] = field(default_factory=dict[str, EngineFigures])
    free_bytes: int | None = None
    """What may still be written to the disk of the logs."""
