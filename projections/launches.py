"""What the log grants one member: the resources it may run, with config and fencing token."""

from collections.abc import Mapping
from dataclasses import dataclass

from ..events.group import Group
from ..events.model import Resource, Resources, Token
from ..events.tokens import token_of


@dataclass(frozen=True, slots=True)
class Launch:
    """One resource that a member may run.

    `connector_config` is the connector's own config, `config` what this resource runs with:
    for a task its task config, for a connector the connector's. Two launches with one token
    and one config are the same launch.
    """

    resource: Resource
    token: Token
    connector_config: Mapping[str, str]
    config: Mapping[str, str]


def launches(group: Group, member_id: str, resources: Resources) -> dict[Resource, Launch]:
    """Return the launches of those of the resources that the log grants the member.

    What is granted but has no config yet, or none any more, is left out.
    """
    found: dict[Resource, Launch] = {}
    for resource in resources:
        token = token_of(group, member_id, resource)
        connector = group.connectors.get(resource.connector)
        if token is None or connector is None:
            continue
        config = connector.config
        if resource.is_task:
            config = group.task_configs[resource.connector].tasks[resource.task].config
        found[resource] = Launch(resource, token, connector.config, config)
    return found
