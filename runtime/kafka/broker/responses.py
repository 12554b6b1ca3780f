"""Rewrites responses of brokers: clients reach brokers and groups through the listener only.

A client must not learn the real address of a broker: with the first FindCoordinator that it sends
there, the broker would create a second group of the same name. So each address of a broker is
replaced by one of the listener, and the list of brokers gets one more node, which leads no
partition and is the coordinator of all groups.
"""
# pyright: basic

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any, Final, NamedTuple

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
OF_GROUPS: Final = 0
"""The key type of groups in FindCoordinator; others are transactions and share groups."""
OF_BROKERS: Final = 1
"""The endpoint type of brokers in DescribeCluster; others are controllers."""
MANY_KEYS: Final = 4
"""The first version of FindCoordinator with several keys."""

NOT_AUTHORIZED: Final = {
    "node_id": -1,
    "host": "",
    "port": -1,
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
    api: int, message: Any, here: HostPort, map_broker: MapBroker, hidden: AbstractSet[int]
) -> Any:
    """Return a broker's response for clients; `here` is the address of the group coordinator."""
    if api == METADATA:
        return replace(
            message, brokers=_rewrite_brokers(message.brokers, "node_id", here, map_broker)
        )
    if api == DESCRIBE_CLUSTER:
        if getattr(message, "endpoint_type", OF_BROKERS) != OF_BROKERS:
            return message
        return replace(
            message, brokers=_rewrite_brokers(message.brokers, "broker_id", here, map_broker)
        )
    if api == FIND_COORDINATOR:
        return _rewrite_coordinators(message, map_broker)
    assert api == API_VERSIONS  # noqa: S101  # the APIs in REWRITTEN are these
    return _rewrite_versions(message, hidden)


def brokers_of(message: Any) -> list[Broker]:
    """Return the brokers in a Metadata response."""
    return [Broker(each.node_id, each.host, each.port) for each in message.brokers]


def _rewrite_brokers(
    brokers: tuple[Any, ...], id_name: str, here: HostPort, map_broker: MapBroker
) -> tuple[Any, ...]:
    if not brokers:
        return brokers
    found: list[Any] = []
    for each in brokers:
        address = map_broker(Broker(getattr(each, id_name), each.host, each.port))
        found.append(replace(each, host=address.host, port=address.port))
    groups = {id_name: COORDINATOR_ID, "host": here.host, "port": here.port, "rack": None}
    return (*found, make(type(brokers[0]), **groups, is_fenced=False))


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
