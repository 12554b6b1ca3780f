"""Launches: the resources that the log grants one member, with config and fencing token."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ..events.group import Group, token_of
from ..events.model import Resource, Resources, RunState, Token
from ..events.placement import placement_in, work_in

_OF_CONNECT: Final = "task.class"
"""The key that Kafka Connect's own code puts into the config of each task."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One resource that a member may run.

    `connector_config` is the connector's own config, `config` what this resource runs with:
    for a task its task config, for a connector the connector's own. The keys of
    placement are left out: work that stays where it is is the same launch. `split` is how a
    connector split its work last, by task, so that it need not be split again. `weight` is what
    it weighs beside others, `tasks` how many tasks its connector has. None of them tells two
    launches apart. `target_state` is what people want the connector to be.
    """

    resource: Resource
    token: Token
    connector_config: Mapping[str, str]
    config: Mapping[str, str]
    split: tuple[Mapping[str, str], ...] = field(default=(), compare=False)
    weight: int = field(default=1, compare=False)
    target_state: RunState = RunState.RUNNING
    tasks: int = field(default=0, compare=False)

    @property
    def is_of_connect(self) -> bool:
        """Whether it is a task of one of Kafka Connect's own classes."""
        return self.resource.is_task and _OF_CONNECT in self.config


def launches(group: Group, member_id: str, resources: Resources) -> dict[Resource, Launch]:
    """Return the launches of the resources that the log grants the member.

    Resources that are granted but have no config yet, or none any more, are left out.
    """
    granted: dict[Resource, Launch] = {}
    for resource in resources:
        token = token_of(group, member_id, resource)
        if token is None or resource.connector not in group.connectors:
            continue
        granted[resource] = _launch(group, resource, token)
    return granted


def _launch(group: Group, resource: Resource, token: Token) -> Launch:
    config = group.connectors[resource.connector].config
    connector, weight = work_in(config), placement_in(config).weight_of(resource)
    split = group.task_configs.get(resource.connector)
    tasks = split.tasks if split else ()
    state = group.target_state(resource.connector)
    own, shares = connector, tuple(task.config for task in tasks)
    if resource.is_task:
        own, shares = shares[resource.task], ()
    return Launch(resource, token, connector, own, shares, weight, state, len(tasks))
