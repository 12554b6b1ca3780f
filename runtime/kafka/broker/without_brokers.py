"""Responses of a listener that has no brokers behind it: it serves groups alone.

Clients learn from ApiVersions that there are no calls for records, transactions and topics; such a
call ends its connection. What is said of a cluster is that only nodes of fairlead are in it, one of
which is the coordinator of all groups; no topic exists, and configs are those of groups.
"""
# pyright: basic

from typing import Any, Final

from kio.schema.errors import ErrorCode

from ..wire.bounds import FrameRefused
from ..wire.frames import Head, Request, item_class, make, response_class
from ..wire.served import (
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    FIND_COORDINATOR,
    LIST_CONFIG_RESOURCES,
    METADATA,
    PRIVATE,
    RANGES,
    REWRITTEN,
    SASL,
    SERVED,
    SPLIT,
    TXN_OFFSET_COMMIT,
)
from ..wire.terms import NO_TIME
from .responses import COORDINATOR_ID, MANY_KEYS, NOBODY, NodePlaces, listeners_as_brokers

NO_BROKER: Final = "there is no broker behind this listener: kafka.bootstrap.servers is empty"
CLUSTER: Final = "fairlead"
"""The id of the cluster: clients of librdkafka end with a segmentation fault without any."""
OFFERED: Final = tuple(sorted({*SERVED, *REWRITTEN, *SPLIT, *SASL} - {TXN_OFFSET_COMMIT, *PRIVATE}))
"""The APIs that need no broker, without those that no broker has."""


def answer_without_broker(request: Request, places: NodePlaces) -> Any:
    """Build the response of a broker that has nothing; raises `FrameRefused` for other calls."""
    api, version = request.head[:2]
    kind, fields = response_class(api, version), {"throttle_time": NO_TIME}
    if api == API_VERSIONS:
        return make(kind, error_code=ErrorCode.none, **fields, **_versions(kind))
    if api == METADATA:
        topics = tuple(_missing_topics(request, kind))
        brokers = listeners_as_brokers(item_class(kind, "brokers"), "node_id", places)
        shown = {"brokers": brokers, "topics": topics, "controller_id": COORDINATOR_ID}
        return make(kind, error_code=ErrorCode.none, cluster_id=CLUSTER, **fields, **shown)
    if api == DESCRIBE_CLUSTER:
        brokers = listeners_as_brokers(item_class(kind, "brokers"), "broker_id", places)
        shown = {"brokers": brokers, "cluster_id": CLUSTER}
        shown |= {"controller_id": COORDINATOR_ID, "error_message": None}
        return make(kind, error_code=ErrorCode.none, **fields, **shown)
    if api == FIND_COORDINATOR:
        return make(kind, **fields, **_no_coordinators(request, kind))
    if api in SPLIT:
        return make(kind, error_code=ErrorCode.none, **fields, **_no_configs(request, kind))
    raise FrameRefused("no broker", f"call {api}: {NO_BROKER}")


def refuse_without_broker(head: Head) -> Any:
    """Return the response to ApiVersions of an unknown version, as brokers answer it.

    Raises `FrameRefused` for other calls.
    """
    if head.api != API_VERSIONS:
        raise FrameRefused("no broker", f"call {head.api}: {NO_BROKER}")
    kind = response_class(API_VERSIONS, 0)
    return make(kind, error_code=ErrorCode.unsupported_version, **_versions(kind))


def _versions(kind: Any) -> dict[str, Any]:
    item = item_class(kind, "api_keys")
    ranges = ((api, *RANGES[api]) for api in OFFERED)
    return {
        "api_keys": tuple(
            make(item, api_key=api, min_version=first, max_version=last)
            for api, first, last in ranges
        )
    }


def _missing_topics(request: Request, kind: Any) -> Any:
    item = item_class(kind, "topics")
    for each in request.message.topics or ():
        name, topic_id = getattr(each, "name", None), getattr(each, "topic_id", None)
        is_by_id = name is None
        error = ErrorCode.unknown_topic_id if is_by_id else ErrorCode.unknown_topic_or_partition
        named = {"name": name, "topic_id": topic_id, "is_internal": False, "partitions": ()}
        yield make(item, error_code=error, **named)


def _no_coordinators(request: Request, kind: Any) -> dict[str, Any]:
    refusal = {**NOBODY, "error_code": ErrorCode.invalid_request, "error_message": NO_BROKER}
    if request.head.version < MANY_KEYS:
        return refusal
    item = item_class(kind, "coordinators")
    keys = request.message.coordinator_keys
    return {"coordinators": tuple(make(item, key=key, **refusal) for key in keys)}


def _no_configs(request: Request, kind: Any) -> dict[str, Any]:
    if request.head.api == LIST_CONFIG_RESOURCES:
        return {"config_resources": ()}
    field = "results" if request.head.api == DESCRIBE_CONFIGS else "responses"
    item = item_class(kind, field)
    refusal = {"error_code": ErrorCode.invalid_request, "error_message": NO_BROKER, "configs": ()}
    return {
        field: tuple(
            make(
                item, resource_type=each.resource_type, resource_name=each.resource_name, **refusal
            )
            for each in request.message.resources
        )
    }
