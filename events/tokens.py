"""Fencing tokens: what the log grants, as a pair that never goes back (DATA_PLANE §3)."""

from .group import Group
from .model import Grants, Resource, Token


def token_of(group: Group, member_id: str, resource: Resource) -> Token | None:
    """Return the token under which the member may work on a resource, None if it may not.

    A task's generation is that of its own config; a connector's is its config's version.
    What is pending revocation may still finish its batch. Each return of a static member
    counts as one more generation: it is granted its work anew without a bump, maybe at the
    epoch of the grant before, and the process that left must not be taken for the new one.
    """
    if group.owner.get(resource) != member_id:
        return None
    member = group.members[member_id]
    current, succession = member.current, member.metadata.succession
    grants: Grants = current.assigned if resource in current.assigned else current.pending
    generation = generation_of(group, resource)
    if generation is None:
        return None
    returns = succession.returns if succession else 0
    return Token(grants[resource], generation + returns)


def generation_of(group: Group, resource: Resource) -> int | None:
    """Return the generation of a resource's config, None if it has none."""
    if not resource.is_task:
        config = group.connectors.get(resource.connector)
        return config.version if config else None
    split = group.task_configs.get(resource.connector)
    if split is None or resource.task >= len(split.tasks):
        return None
    return split.tasks[resource.task].generation
