"""Polls the topics of the brokers (ids and numbers of partitions), and sends them to the shards.

They are polled once a second, and at once if a client names an unknown topic, which may have been
created a moment ago. A shard gets them when they have changed, and when its process is a new one.
"""
# pyright: basic

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, Final
from uuid import UUID

from kio.schema.errors import ErrorCode

from ...actors.messages.consumers import ConsumerGroupHeartbeat
from ...actors.messages.errors import Error
from ...actors.messages.groups import HostCall, TellTopics
from ...actors.messages.offsets import OffsetCommit
from ...actors.transport.ports import HostPort
from ...events.model import is_topic_name
from ...events.records import Topic
from .broker.login import UNPROTECTED, BrokerSecurity
from .broker.upstream import BrokerUnavailable, Upstream
from .client.reply_handler import CallLost
from .counts import Counts
from .shard_connection import ShardConnection
from .wire.bounds import FrameRefused
from .wire.served import METADATA
from .wire.terms import NO_TOPIC_IDS, TopicIds

VERSION: Final = 12
"""The first version of Metadata with topic ids in the response to any kind of request."""
REFRESH_SECONDS: Final = 1.0
"""The polling interval."""
ANSWER_SECONDS: Final = 10.0
"""The timeout of the broker's response."""
WAIT_SECONDS: Final = 2.0
"""The longest time that a call waits for a refresh because of an unknown topic."""
MOST_MISSING: Final = 10_000
"""The maximum number of remembered names of missing topics."""
PAUSE_SECONDS: Final = 0.1
"""The minimum interval of polls, however many unknown topics clients name (debounce)."""


class Topics:
    """The topics as of the last poll, and the shards that know them."""

    def __init__(
        self,
        shards: Sequence[ShardConnection],
        bootstrap: Sequence[HostPort],
        counts: Counts,
        security: BrokerSecurity = UNPROTECTED,
    ) -> None:
        self._shards, self._counts, self._bootstrap = shards, counts, bootstrap
        self._connect = partial(Upstream, bootstrap, security)
        self._upstream = self._connect()
        self._topics: Mapping[str, Topic] | None = None
        """By name; None: no poll has succeeded yet."""
        self.ids = NO_TOPIC_IDS
        """The ids of these topics."""
        self._sent: dict[ShardConnection, tuple[int, Mapping[str, Topic]]] = {}
        """The topics last sent to each shard, with the epoch of its process then."""
        self._missing: set[str] = set()
        """Named topics that did not exist: they do not cause an immediate poll again."""
        self._refresh_wanted = asyncio.Event()
        """Set to poll at once."""
        self._refreshed = asyncio.Condition()
        """Notified after each poll."""

    async def watch(self) -> None:
        """Poll the topics, and send them to the shards; runs until it is cancelled.

        Without brokers nothing is known of topics, and no group takes any for deleted.
        """
        if not self._bootstrap:
            return
        while True:
            try:
                self._refresh_wanted.clear()
                topics = await self._fetch_topics()
                if topics != self._topics:
                    self._topics, self.ids = topics, TopicIds(topics)
                    self._missing.clear()
            except (BrokerUnavailable, FrameRefused, OSError, EOFError, TimeoutError) as error:
                self._upstream.close()
                self._upstream = self._connect()
                self._counts.warn("the topics cannot be seen:", str(error))
            await self._send_topics()
            async with self._refreshed:
                self._refreshed.notify_all()
            await asyncio.sleep(PAUSE_SECONDS)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._refresh_wanted.wait(), REFRESH_SECONDS - PAUSE_SECONDS)

    async def wait_until_known(self, call: HostCall) -> None:
        """Wait until the shards know the topics that a call names, unless they do not exist."""
        await self._wait(lambda topics: _unknown(topics, call))

    async def wait_for_ids(self, unknown: Collection[str]) -> None:
        """Wait for a poll because of unknown topic ids, unless they were unknown to it before."""
        await self._wait(lambda _: unknown)

    async def _wait(self, find_missing: Callable[[Mapping[str, Topic]], Iterable[str]]) -> None:
        if self._topics is None or self._missing.issuperset(find_missing(self._topics)):
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(WAIT_SECONDS), self._refreshed:
                self._refresh_wanted.set()
                await self._refreshed.wait()
        missing = [*islice(find_missing(self._topics), MOST_MISSING)]
        if len(self._missing) + len(missing) > MOST_MISSING:
            self._missing.clear()
        self._missing.update(missing)

    def close(self) -> None:
        """Close the connection to the broker."""
        self._upstream.close()

    async def _fetch_topics(self) -> Mapping[str, Topic]:
        """Return the topics of the brokers; raises `BrokerUnavailable`, and I/O errors."""
        fields = {"topics": None, "allow_auto_topic_creation": False}
        fields |= {"include_topic_authorized_operations": False}
        async with asyncio.timeout(ANSWER_SECONDS):
            return _topics_of(await self._upstream.ask(METADATA, VERSION, **fields))

    async def _send_topics(self) -> None:
        topics = self._topics
        if topics is None:
            return
        new = [each for each in self._shards if self._sent.get(each) != (each.epoch, topics)]
        await asyncio.gather(*(self._send_to(each, topics) for each in new))

    async def _send_to(self, shard: ShardConnection, topics: Mapping[str, Topic]) -> None:
        with suppress(CallLost):  # the next poll sends them again
            reply = await shard.ask(TellTopics(topics))
            if reply.error is Error.NONE:
                self._sent[shard] = shard.epoch, topics


def _topics_of(message: Any) -> Mapping[str, Topic]:
    return {
        each.name: Topic((each.topic_id or UUID(int=0)).hex, len(each.partitions))
        for each in message.topics
        if each.name is not None and each.error_code is ErrorCode.none
    }


def _unknown(topics: Mapping[str, Topic], call: HostCall) -> Iterator[str]:
    """Yield the topics in a call that are unknown, or have an unknown partition there.

    Invalid topic names are skipped.
    """
    if isinstance(call, ConsumerGroupHeartbeat):
        named = ((name, 0) for name in call.subscribed_topic_names or ())
    elif isinstance(call, OffsetCommit):
        named = ((each.topic, each.partition) for each in call.offsets)
    else:
        return
    for name, partition in named:
        topic = topics.get(name)
        if (topic is None or partition >= topic.partitions) and is_topic_name(name):
            yield name
