"""Conversations with a real broker over sockets: the listener answers group calls as it did.

What may differ stands in `allowed`, each with its reason; all else is the same, field by field.
"""
# pyright: basic

import asyncio
from dataclasses import replace
from pathlib import Path

from fairlead.actors.messages.groups import TellTopics
from fairlead.runtime.kafka.wire.terms import TopicIds
from fairlead_tests.conformance.allowed import Allowed, older_groups
from fairlead_tests.conformance.cases import Case
from fairlead_tests.conformance.conversations import Compared
from fairlead_tests.conformance.topics import topics_in
from fairlead_tests.kafka_listener.replay import WireReplay
from fairlead_tests.kafka_listener.served import listening
from fairlead_tests.shards.driver import AT_ONCE

AS_SHIPPED = replace(AT_ONCE, assignment_interval_ms=1_000)
"""With Kafka's `consumer.assignment.interval.ms`."""


def test_the_listener_answers_group_calls_as_a_broker_does(
    conversation: Case, tmp_path: Path
) -> None:
    compared, taken_over = asyncio.run(played(conversation, tmp_path))
    allowed = Allowed(conversation, older_groups(conversation), taken_over)
    assert allowed.differ(compared) == []


async def played(conversation: Case, folder: Path) -> tuple[list[Compared], set[str]]:
    """Return what is to be compared, and the groups that were taken over while they were empty."""
    async with listening(folder, settings=AS_SHIPPED) as served:
        if topics := topics_in(conversation):
            await served.shard.ask(TellTopics(topics))
            served.topics.ids = TopicIds(topics)
        replay = WireReplay(served)
        return await replay.play(conversation), replay.epochs.anew


def test_the_listener_closes_connections_that_a_broker_closes(
    conversation: Case, tmp_path: Path
) -> None:
    sent = [each for each in conversation.told["exchanges"] if each.get("then") == "closed"]
    assert [each for each in asyncio.run(answered(sent, tmp_path)) if each] == []


async def answered(sent: list[dict[str, str]], folder: Path) -> list[bytes]:
    """Return what is answered to bytes that are sent, each on a connection of its own."""
    found: list[bytes] = []
    async with listening(folder) as served:
        for each in sent:
            client = await served.dial()
            client.writer.write(bytes.fromhex(each["sent"]))
            client.writer.write_eof()
            found.append(await client.receive())
    return found
