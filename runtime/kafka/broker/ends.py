"""Asks brokers for the ends of partitions: the offset that the next record gets.

A partition's end is known to its leader alone. So the brokers are asked first who leads what, and
then each leader for all of its partitions at once. Partitions without a leader, and those of
topics that do not exist, have no end.
"""
# pyright: basic

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from kio.schema.errors import ErrorCode

from ....actors.transport.ports import HostPort
from ...cluster.kafka_security import UpstreamSpec
from ...security.followed_files import FileRefused
from ..wire.bounds import FrameRefused
from ..wire.frames import item_class, make, request_class
from ..wire.served import LIST_OFFSETS, METADATA
from .login import BrokerSecurity, open_broker_security
from .upstream import BrokerUnavailable, Upstream

METADATA_VERSION: Final = 9
OFFSETS_VERSION: Final = 6
LATEST: Final = -1
"""The timestamp that stands for the end."""
CONSUMER: Final = -1
"""The replica id of whoever is no broker."""

Partition = tuple[str, int]
"""A topic and the number of a partition."""


class BrokersSilent(Exception):  # noqa: N818  # says what happened
    """No broker answers; the message says why."""


def read_ends(
    brokers: Sequence[tuple[str, int]],
    upstream: Mapping[str, Any],
    partitions: Collection[Partition],
    seconds: float,
) -> dict[Partition, int]:
    """Return the ends of those partitions that have one; raises `BrokersSilent`.

    `upstream` has the fields of an `UpstreamSpec`. `seconds` is the most time that all of it takes.
    """
    places = [HostPort(*each) for each in brokers]
    try:
        security = open_broker_security(UpstreamSpec(**upstream))
        return asyncio.run(asyncio.wait_for(_read(places, security, partitions), seconds))
    except TimeoutError:
        named = ", ".join(f"{host}:{port}" for host, port in places)
        raise BrokersSilent(f"{named} did not answer in {seconds:g} s") from None
    except (BrokerUnavailable, FrameRefused, FileRefused, OSError, EOFError) as error:
        raise BrokersSilent(str(error)) from None


async def _read(
    places: Sequence[HostPort], security: BrokerSecurity, partitions: Collection[Partition]
) -> dict[Partition, int]:
    async with _connected(places, security) as bootstrap:
        leaders = await _find_leaders(bootstrap, partitions)
    asked = (_ask_leader(place, security, led) for place, led in leaders.items())
    ends: dict[Partition, int] = {}
    for each in await asyncio.gather(*asked):
        ends |= each
    return ends


@asynccontextmanager
async def _connected(
    places: Sequence[HostPort], security: BrokerSecurity
) -> AsyncGenerator[Upstream]:
    upstream = Upstream(places, security)
    try:
        yield upstream
    finally:
        upstream.close()


async def _find_leaders(
    bootstrap: Upstream, partitions: Collection[Partition]
) -> Mapping[HostPort, list[Partition]]:
    """Return the partitions that each broker leads."""
    kind = item_class(request_class(METADATA, METADATA_VERSION), "topics")
    answer = await bootstrap.ask(
        METADATA,
        METADATA_VERSION,
        topics=tuple(kind(name=topic) for topic in sorted({topic for topic, _ in partitions})),
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )
    places = {each.node_id: HostPort(each.host, each.port) for each in answer.brokers}
    wanted, leaders = {*partitions}, defaultdict[HostPort, list[Partition]](list)
    for topic in answer.topics:
        for each in topic.partitions:
            if (topic.name, each.partition_index) in wanted and each.leader_id in places:
                leaders[places[each.leader_id]].append((topic.name, each.partition_index))
    return leaders


async def _ask_leader(
    place: HostPort, security: BrokerSecurity, partitions: Collection[Partition]
) -> dict[Partition, int]:
    of_topic = defaultdict[str, list[int]](list)
    for topic, number in partitions:
        of_topic[topic].append(number)
    request = request_class(LIST_OFFSETS, OFFSETS_VERSION)
    kind = item_class(request, "topics")
    item = item_class(kind, "partitions")
    topics = tuple(
        kind(
            name=topic,
            partitions=tuple(make(item, partition_index=n, timestamp=LATEST) for n in numbers),
        )
        for topic, numbers in of_topic.items()
    )
    async with _connected([place], security) as leader:
        fields = {"replica_id": CONSUMER, "isolation_level": 0, "topics": topics}
        return dict(_ends_of(await leader.ask(LIST_OFFSETS, OFFSETS_VERSION, **fields)))


def _ends_of(answer: Any) -> Iterator[tuple[Partition, int]]:
    for topic in answer.topics:
        for each in topic.partitions:
            if each.error_code is ErrorCode.none:
                yield (topic.name, each.partition_index), each.offset
