"""Rewrites responses of brokers: clients reach brokers and groups through the listener only.

A client must not learn the real address of a broker: with the first FindCoordinator that it sends
there, the broker would create a second group of the same name. So each address of a broker is
replaced by one of the listener, and the list of brokers gets one more node, which leads no
partition and is the coordinator of all groups.

Of many fairlead nodes each gives the same answer: all addresses are of the listener at the node
that owns the groups. If answers differed, a client would leave its brokers whenever it asked
another node. The other nodes follow as more nodes that lead nothing: a client that has lost the
owner's host asks these.
"""
# pyright: basic

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, Final, NamedTuple
from zlib import crc32

from kio.schema.errors import ErrorCode

from ....actors.transport.ports import HostPort
from ..wire.frames import Request, item_class, make, response_class
from ..wire.served import (
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    FIND_COORDINATOR,
    METADATA,
    PRIVATE,
    RANGES,
    TRANSACTIONS,
    WITHHELD,
)
from ..wire.terms import NO_TIME

COORDINATOR_ID: Final = 1_000_000_000
"""The node id of the coordinator of all groups; no broker has such a large id."""
MOST_IDS: Final = 1_000_000_000
"""How many ids there are above it, for the other nodes of a cluster."""
OF_GROUPS: Final = 0
"""The key type of groups in FindCoordinator; others are transactions and share groups."""
OF_BROKERS: Final = 1
"""The endpoint type of brokers in DescribeCluster; others are controllers."""
MANY_KEYS: Final = 4
"""The first version of FindCoordinator with several keys."""

NOBODY: Final = {"node_id": -1, "host": "", "port": -1}
"""Where a coordinator is that nobody is told of."""
NOT_AUTHORIZED: Final = {
    **NOBODY,
    "error_code": ErrorCode.group_authorization_failed,
    "error_message": None,
}
"""The coordinator of a group that the client may not find."""


class Broker(NamedTuple):
    """A broker, with the address that it advertises."""

    broker_id: int
    host: str
    port: int


MapBroker = Callable[[Broker], HostPort]
"""Returns the address at which clients reach a broker: one of the listener."""


class NodePlaces(NamedTuple):
    """The listeners of a cluster."""

    coordinator: HostPort
    """That of the node which owns all groups."""
    others: Mapping[str, HostPort] = {}
    """Those of the other nodes that live, by name."""

    def by_id(self) -> Iterator[tuple[int, HostPort]]:
        """Yield all listeners, each with the id that clients know it by, the coordinator last."""
        for name, place in self.others.items():
            if place != self.coordinator:
                yield COORDINATOR_ID + 1 + crc32(name.encode()) % MOST_IDS, place
        yield COORDINATOR_ID, self.coordinator


def is_for_groups(request: Request) -> bool:
    """Return whether a FindCoordinator request is for groups."""
    return getattr(request.message, "key_type", OF_GROUPS) == OF_GROUPS


def find_group_coordinator(
    request: Request, here: HostPort, may_find: Callable[[str], bool]
) -> Any:
    """Build the FindCoordinator response: all groups that the client may find are at `here`."""
    kind = response_class(*request.head[:2])

    def fields_of(group_id: str) -> dict[str, Any]:
        if not may_find(group_id):
            return NOT_AUTHORIZED
        place = {"node_id": COORDINATOR_ID, "host": here.host, "port": here.port}
        return {**place, "error_code": ErrorCode.none, "error_message": None}

    if request.head.version < MANY_KEYS:
        return make(kind, throttle_time=NO_TIME, **fields_of(request.message.key))
    item = item_class(kind, "coordinators")
    keys = request.message.coordinator_keys
    coordinators = tuple(make(item, key=key, **fields_of(key)) for key in keys)
    return make(kind, throttle_time=NO_TIME, coordinators=coordinators)


def rewrite_response(
    api: int, message: Any, places: NodePlaces, map_broker: MapBroker, hidden: AbstractSet[int]
) -> Any:
    """Return a broker's response for clients."""
    if api == METADATA:
        return replace(
            message, brokers=_rewrite_brokers(message.brokers, "node_id", places, map_broker)
        )
    if api == DESCRIBE_CLUSTER:
        if getattr(message, "endpoint_type", OF_BROKERS) != OF_BROKERS:
            return message
        return replace(
            message, brokers=_rewrite_brokers(message.brokers, "broker_id", places, map_broker)
        )
    if api == FIND_COORDINATOR:
        return _rewrite_coordinators(message, map_broker)
    assert api == API_VERSIONS  # noqa: S101  # the APIs in REWRITTEN are these
    return _rewrite_versions(message, hidden)


def brokers_of(message: Any) -> list[Broker]:
    """Return the brokers in a Metadata response."""
    return [Broker(each.node_id, each.host, each.port) for each in message.brokers]


def _rewrite_brokers(
    brokers: tuple[Any, ...], id_name: str, places: NodePlaces, map_broker: MapBroker
) -> tuple[Any, ...]:
    if not brokers or getattr(brokers[-1], id_name) == COORDINATOR_ID:
        return brokers
    found: list[Any] = []
    for each in brokers:
        address = map_broker(Broker(getattr(each, id_name), each.host, each.port))
        found.append(replace(each, host=address.host, port=address.port))
    return (*found, *listeners_as_brokers(type(brokers[0]), id_name, places))


def listeners_as_brokers(kind: Any, id_name: str, places: NodePlaces) -> tuple[Any, ...]:
    """Return the listeners of a cluster as items of a list of brokers."""
    return tuple(
        make(kind, **{id_name: number}, host=at.host, port=at.port, rack=None, is_fenced=False)
        for number, at in places.by_id()
    )


def _rewrite_coordinators(message: Any, map_broker: MapBroker) -> Any:
    if hasattr(message, "coordinators"):
        found = tuple(_rewrite_coordinator(each, map_broker) for each in message.coordinators)
        return replace(message, coordinators=found)
    return _rewrite_coordinator(message, map_broker)


def _rewrite_coordinator(message: Any, map_broker: MapBroker) -> Any:
    if message.node_id < 0:  # there is no coordinator
        return message
    address = map_broker(Broker(message.node_id, message.host, message.port))
    return replace(message, host=address.host, port=address.port)


def _rewrite_versions(message: Any, hidden: AbstractSet[int]) -> Any:
    """Return the APIs of the broker, and those of the listener, with the supported versions."""
    kept: list[Any] = []
    for each in message.api_keys:
        if each.api_key in WITHHELD or each.api_key in hidden:
            continue
        first, last = RANGES.get(each.api_key, (each.min_version, each.max_version))
        first, last = max(first, each.min_version), min(last, each.max_version)
        kept.append(replace(each, min_version=first, max_version=last))
    kind: Any = type(message)
    item = item_class(kind, "api_keys")
    for key in (each for each in PRIVATE if each not in hidden):
        first, last = RANGES[key]
        kept.append(make(item, api_key=key, min_version=first, max_version=last))
    changed: dict[str, Any] = {"api_keys": tuple(kept)}
    for name in ("supported_features", "finalized_features"):
        if hasattr(message, name):
            features = getattr(message, name)
            changed[name] = tuple(each for each in features if each.name != TRANSACTIONS)
    return replace(message, **changed)
