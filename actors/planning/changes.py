"""What can be planned: changes to a group that nobody has made yet.

Each stands for the command, or the join or leave, that would make it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ...events.placement.abilities import ORDINARY, Abilities


@dataclass(frozen=True, slots=True)
class AddWorkers:
    """So many workers join, one after the other, with engines that are warm."""

    count: int
    zone: str | None = None
    abilities: Abilities = ORDINARY


@dataclass(frozen=True, slots=True)
class RemoveWorker:
    """A worker is drained, and leaves for good; nothing is parked."""

    worker: str


@dataclass(frozen=True, slots=True)
class DrainWorker:
    """A worker gives up what it has and gets nothing more, but stays."""

    worker: str


@dataclass(frozen=True, slots=True)
class PutConnector:
    """A connector is created, or given another config, and splits into so many tasks."""

    connector: str
    config: Mapping[str, str]
    tasks: int


@dataclass(frozen=True, slots=True)
class Scale:
    """A connector that there is splits into another number of tasks."""

    connector: str
    tasks: int


@dataclass(frozen=True, slots=True)
class DeleteConnector:
    """A connector and all its tasks stop for good."""

    connector: str


Change = AddWorkers | RemoveWorker | DrainWorker | PutConnector | Scale | DeleteConnector
"""A worker or a connector is named as in the command that would make the change."""
