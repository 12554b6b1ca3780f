"""For whom and for what an operator's order stands, for those who decide and those who read."""

from .group import Group
from .model import Resource
from .records import Loss, MemberMetadata, Operator


def worker_name(who: MemberMetadata | Loss) -> str:
    """Return the name by which orders and pins know a worker, present or lost."""
    return who.instance_id or who.url or who.member_id


def names_of(who: MemberMetadata | Loss) -> tuple[set[str], set[str]]:
    """Return the names that only this worker has, and those that others may have as well."""
    strong = {who.member_id, who.instance_id or "", who.url} - {""}
    client_id = who.client_id if isinstance(who, MemberMetadata) else ""
    return strong, {client_id, last_part(who.url)} - {""}


def last_part(url: str) -> str:
    """Return the name of a worker on its node, which its url ends with."""
    return url.rpartition("/")[2]


def is_drained(order: Operator | None, member_id: str) -> bool:
    """Tell whether a member is to give up what it has: its worker is drained, or it is removed."""
    return order is not None and (order.draining or (order.gently and order.removing == member_id))


def placement_of(group: Group, resource: Resource) -> Operator | None:
    """Return the order that holds for a resource, if there is one.

    A connector's order stands for its tasks that have none of their own.
    """
    orders = group.resource_orders
    return orders.get(resource) or orders.get(Resource(resource.connector))
