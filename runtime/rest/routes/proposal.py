"""The body of a plan: what somebody thinks of changing, in the words of the commands."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from ....events.placement.abilities import LARGEST_CAPACITY, Abilities
from ....events.placement.config import flaw_in_labels
from ...cluster.spec import WorkerTraits
from ...planning.changes import (
    Change,
    ConnectorDeleted,
    ConnectorScaled,
    WorkerDrained,
    WorkerRemoved,
    WorkersJoined,
)
from ..http.bodies import Config, Key

WORKERS_MAX = 100
"""How many workers a plan adds at most: each of them is an epoch of its own."""
TASKS_MAX = 100_000
"""How many tasks of a connector a plan is made for at most; a cluster has no such bound."""

NAMES_MAX = 100
"""How many workers, or connectors, a member of a plan names at most."""

Tasks = Annotated[int, Field(ge=1, le=TASKS_MAX)]

Names = Annotated[list[Key], Field(max_length=NAMES_MAX)]


def _label(text: str) -> str:
    if flaw := flaw_in_labels([text]):
        raise ValueError(flaw)
    return text


Label = Annotated[Key, AfterValidator(_label)]


class NewWorker(BaseModel):
    """What a worker that is added is able to; null: what this node's settings say."""

    model_config = ConfigDict(extra="forbid", strict=True)

    zone: Label | None = None
    tags: list[Label] | None = None
    capacity: int | None = Field(default=None, ge=1, le=LARGEST_CAPACITY)


class PlannedConnector(BaseModel):
    """A connector to create, or to change."""

    model_config = ConfigDict(extra="forbid")

    name: Key
    config: Config


class Proposal(BaseModel):
    """Changes, made in the order of these members; at least one."""

    model_config = ConfigDict(extra="forbid")

    add_workers: int = Field(
        0, strict=True, ge=0, le=WORKERS_MAX, description="So many workers join."
    )
    worker: NewWorker = Field(NewWorker(), description="What each of these is able to.")
    drain: Names = Field([], description="Workers that give up what they have, and stay.")
    remove_workers: Names = Field([], description="Workers that leave in good order.")
    delete: Names = Field([], description="Connectors that are deleted.")
    connectors: list[PlannedConnector] = Field(
        [],
        max_length=NAMES_MAX,
        description="Connectors that are created or changed; examined as for that.",
    )
    scale: dict[Key, Annotated[Tasks, Field(strict=True)]] = Field(
        {}, max_length=NAMES_MAX, description="Connectors, each with another `tasks.max`."
    )

    def workers(self, node: WorkerTraits) -> list[Change]:
        """Return what is to become of the workers; those added are of this node."""
        found: list[Change] = []
        if self.add_workers:
            worker, usual = self.worker, node.abilities
            tags = usual.tags if worker.tags is None else frozenset(worker.tags)
            able = Abilities(worker.capacity or usual.capacity, tags)
            found.append(WorkersJoined(self.add_workers, worker.zone or node.zone, able))
        found += map(WorkerDrained, self.drain)
        found += map(WorkerRemoved, self.remove_workers)
        return found

    def deleted(self) -> list[Change]:
        """Return which connectors are to go."""
        return [ConnectorDeleted(name) for name in self.delete]

    def scaled(self) -> list[Change]:
        """Return which connectors are to have another number of tasks."""
        return [ConnectorScaled(name, tasks) for name, tasks in self.scale.items()]
