"""What a broker's answers say here: its nodes are reached through us, and groups are with us.

Clients must not hear of another way to the brokers: the first FindCoordinator that one sends there
would make a second group of the same name. So each address of a broker becomes one of ours, and
one more node stands beside them, which leads nothing and has all groups.
"""
# pyright: basic

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple

from kio.schema.errors import ErrorCode

from .wire.frames import Request, item_class, make, response_class
from .wire.served import (
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    FIND_COORDINATOR,
    METADATA,
    PRIVATE,
    RANGES,
    TRANSACTIONS,
    WITHHELD,
)
from .wire.terms import NO_TIME

COORDINATOR_ID: Final = 1_000_000_000
"""The node that has all groups; no broker has so great an id."""
OF_GROUPS: Final = 0
"""What FindCoordinator calls the keys of groups; others are transactions, shares."""
OF_BROKERS: Final = 1
"""What DescribeCluster calls brokers; others are controllers."""
MANY_KEYS: Final = 4
"""The version from which on FindCoordinator may name several keys."""


class HostPort(NamedTuple):
    """Where clients reach something."""

    host: str
    port: int


class Broker(NamedTuple):
    """A broker as it tells of itself."""

    broker_id: int
    host: str
    port: int


Mapped = Callable[[Broker], HostPort]
"""Where clients reach a broker."""


def asks_for_group(request: Request) -> bool:
    """Tell whether a FindCoordinator asks where groups are."""
    return getattr(request.message, "key_type", OF_GROUPS) == OF_GROUPS


def coordinator_of(request: Request, here: HostPort) -> Any:
    """Return that all groups which are asked for are here."""
    kind = response_class(*request.head[:2])
    told = {"node_id": COORDINATOR_ID, "host": here.host, "port": here.port}
    told |= {"error_code": ErrorCode.none, "error_message": None}
    if request.head.version < MANY_KEYS:
        return make(kind, throttle_time=NO_TIME, **told)
    item = item_class(kind, "coordinators")
    found = tuple(make(item, key=key, **told) for key in request.message.coordinator_keys)
    return make(kind, throttle_time=NO_TIME, coordinators=found)


def amend(api: int, message: Any, here: HostPort, mapped: Mapped) -> Any:
    """Return a broker's answer as clients are to have it; `here` is where groups are."""
    if api == METADATA:
        return replace(message, brokers=_nodes(message.brokers, "node_id", here, mapped))
    if api == DESCRIBE_CLUSTER:
        if getattr(message, "endpoint_type", OF_BROKERS) != OF_BROKERS:
            return message
        return replace(message, brokers=_nodes(message.brokers, "broker_id", here, mapped))
    if api == FIND_COORDINATOR:
        return _found(message, mapped)
    assert api == API_VERSIONS  # noqa: S101  # these are all that are amended
    return _versions(message)


def brokers_of(message: Any) -> list[Broker]:
    """Return the brokers that an answer to Metadata tells of."""
    return [Broker(each.node_id, each.host, each.port) for each in message.brokers]


def _nodes(
    brokers: tuple[Any, ...], id_name: str, here: HostPort, mapped: Mapped
) -> tuple[Any, ...]:
    if not brokers:
        return brokers
    found: list[Any] = []
    for each in brokers:
        place = mapped(Broker(getattr(each, id_name), each.host, each.port))
        found.append(replace(each, host=place.host, port=place.port))
    groups = {id_name: COORDINATOR_ID, "host": here.host, "port": here.port, "rack": None}
    return (*found, make(type(brokers[0]), **groups, is_fenced=False))


def _found(message: Any, mapped: Mapped) -> Any:
    if hasattr(message, "coordinators"):
        found = tuple(_moved(each, mapped) for each in message.coordinators)
        return replace(message, coordinators=found)
    return _moved(message, mapped)


def _moved(told: Any, mapped: Mapped) -> Any:
    if told.node_id < 0:  # there is none
        return told
    place = mapped(Broker(told.node_id, told.host, told.port))
    return replace(told, host=place.host, port=place.port)


def _versions(message: Any) -> Any:
    """Return what the broker can do, with our own ranges for what is answered here."""
    kept: list[Any] = []
    for each in message.api_keys:
        if each.api_key in WITHHELD:
            continue
        first, last = RANGES.get(each.api_key, (each.min_version, each.max_version))
        first, last = max(first, each.min_version), min(last, each.max_version)
        kept.append(replace(each, min_version=first, max_version=last))
    kind: Any = type(message)
    item = item_class(kind, "api_keys")
    for key in PRIVATE:
        first, last = RANGES[key]
        kept.append(make(item, api_key=key, min_version=first, max_version=last))
    told: dict[str, Any] = {"api_keys": tuple(kept)}
    for name in ("supported_features", "finalized_features"):
        if hasattr(message, name):
            features = getattr(message, name)
            told[name] = tuple(each for each in features if each.name != TRANSACTIONS)
    return replace(message, **told)
