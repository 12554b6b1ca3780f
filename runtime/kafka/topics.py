"""Which topics the brokers have, as the groups are told: their ids, and how many partitions.

The brokers are looked at once a second, and at once where a client names what is not known: it may
have been created a moment ago. A process of groups is told whenever there is anything new, and
when it is another process than before.
"""
# pyright: basic

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Final
from uuid import UUID

from kio.schema.errors import ErrorCode

from ...actors.messages.consumers import ConsumerGroupHeartbeat
from ...actors.messages.errors import Error
from ...actors.messages.groups import HostCall, TellTopics
from ...actors.messages.offsets import OffsetCommit
from ...events.kafka.consumers import Topic
from ...events.kafka.topic_names import is_topic_name
from .amend import HostPort
from .client.reply_taker import Lost
from .counts import Counts
from .line import ShardLine
from .upstream import BrokerAway, Upstream
from .wire.bounds import FrameRefused
from .wire.served import METADATA

VERSION: Final = 12
"""Of Metadata: the first that tells the ids of topics, whatever is asked for."""
LOOK_SECONDS: Final = 1.0
ANSWER_SECONDS: Final = 10.0
"""How long a broker may take for an answer."""
WAIT_SECONDS: Final = 2.0
"""How long a call waits at most for a look at what it names."""
MOST_MISSING: Final = 10_000
PAUSE_SECONDS: Final = 0.1
"""How far apart two looks are at least, however often something unknown is named."""


class Topics:
    """The topics as they were seen last, and which process of groups knows them."""

    def __init__(
        self, lines: Sequence[ShardLine], bootstrap: Sequence[HostPort], counts: Counts
    ) -> None:
        self._lines, self._bootstrap, self._counts = lines, bootstrap, counts
        self._upstream = Upstream(bootstrap)
        self._topics: Mapping[str, Topic] | None = None
        """By name; None: no broker has told them yet."""
        self._told: dict[ShardLine, tuple[int, Mapping[str, Topic]]] = {}
        """What each line was told last, and under which epoch of its process."""
        self._missing: set[str] = set()
        """What was named and is not there: nobody looks for it at once another time."""
        self._is_wanted = asyncio.Event()
        self._looked = asyncio.Condition()

    async def watch(self) -> None:
        """Look, and tell; without end."""
        while True:
            try:
                self._is_wanted.clear()
                topics = await self._look()
                if topics != self._topics:
                    self._topics = topics
                    self._missing.clear()
            except (BrokerAway, FrameRefused, OSError, EOFError, TimeoutError) as error:
                self._upstream.close()
                self._upstream = Upstream(self._bootstrap)
                self._counts.complain("the topics cannot be seen:", str(error))
            await self._tell()
            async with self._looked:
                self._looked.notify_all()
            await asyncio.sleep(PAUSE_SECONDS)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_wanted.wait(), LOOK_SECONDS - PAUSE_SECONDS)

    async def see_those_of(self, call: HostCall) -> None:
        """See that what a call names is known to its group, unless there is no such topic."""
        if self._topics is None or self._missing.issuperset(_unknown(self._topics, call)):
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(WAIT_SECONDS), self._looked:
                self._is_wanted.set()
                await self._looked.wait()
        missing = [*islice(_unknown(self._topics, call), MOST_MISSING)]
        if len(self._missing) + len(missing) > MOST_MISSING:
            self._missing.clear()
        self._missing.update(missing)

    def close(self) -> None:
        """Let go of the broker."""
        self._upstream.close()

    async def _look(self) -> Mapping[str, Topic]:
        """Return the topics of the brokers; raises `BrokerAway` and others of the connection."""
        told = {"topics": None, "allow_auto_topic_creation": False}
        told |= {"include_topic_authorized_operations": False}
        async with asyncio.timeout(ANSWER_SECONDS):
            return _topics_of(await self._upstream.ask(METADATA, VERSION, **told))

    async def _tell(self) -> None:
        topics = self._topics
        if topics is None:
            return
        new = [each for each in self._lines if self._told.get(each) != (each.epoch, topics)]
        await asyncio.gather(*(self._tell_line(each, topics) for each in new))

    async def _tell_line(self, line: ShardLine, topics: Mapping[str, Topic]) -> None:
        with suppress(Lost):  # it is told at the next look
            reply = await line.ask(TellTopics(topics))
            if reply.error is Error.NONE:
                self._told[line] = line.epoch, topics


def _topics_of(message: Any) -> Mapping[str, Topic]:
    return {
        each.name: Topic((each.topic_id or UUID(int=0)).hex, len(each.partitions))
        for each in message.topics
        if each.name is not None and each.error_code is ErrorCode.none
    }


def _unknown(topics: Mapping[str, Topic], call: HostCall) -> Iterator[str]:
    """Yield the topics that a call names, or names a partition of, and that are not seen yet.

    What no topic can be called is never looked for.
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
