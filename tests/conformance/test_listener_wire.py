"""Conversations with a real broker over sockets: the listener answers group calls as it did.

What may differ stands here, each with its reason; all else is the same, field by field.
"""
# pyright: basic

import asyncio
from pathlib import Path
from typing import Any

from fairlead.actors.messages.groups import TellTopics
from fairlead_tests.conformance.cases import Case
from fairlead_tests.consumer.replay import topics_in
from fairlead_tests.kafka_listener.replay import Compared, WireReplay
from fairlead_tests.kafka_listener.served import listening

NOT_PLAYED = {
    "connect-eager-worker-joins-sessioned": "its group was there before, and other groups with it",
    "java-admin-tools": "its groups were there before",
}

IN_OUR_WORDS = "ErrorMessage"
"""What people read is told in other words: with what was kept, and what to do."""

REFUSED_HERE = {"raw-garbage": {"ErrorCode": 23, "MemberId": ""}}
"""Conversations with bytes that a broker takes, and then waits for without end."""

LATER_THERE = {("connect-sessioned-two-workers", "Heartbeat", 31.587)}
"""Where a session is over here to the millisecond, and at the broker a moment later."""

SOONER_HERE = {
    ("librdkafka-live-migration", "Heartbeat", 20.064),
    ("raw-mixed-errors", "ListGroups", 0.012),
}
"""Where a target is computed here at once, and there once its interval is over."""

OTHER_PARTITIONS = {
    ("librdkafka-live-migration", "ConsumerGroupHeartbeat", 47.185),
    ("librdkafka-live-migration", "SyncGroup", 47.211),
    ("raw-mixed-errors", "ConsumerGroupHeartbeat", 0.004),
    ("raw-migration-classic-to-consumer-and-back", "ConsumerGroupHeartbeat", 2.424),
    ("raw-migration-classic-to-consumer-and-back", "JoinGroup", 2.431),
    ("raw-migration-classic-to-consumer-and-back", "SyncGroup", 2.431),
    ("raw-migration-classic-to-consumer-and-back", "DescribeGroups", 2.533),
}
"""Where `uniform` has members give up others of as many partitions; hand-made members go on to name
those that they were to have at the broker, and are waited for here."""

COUNTS_ON = {
    ("raw-mixed-errors", "JoinGroup", 0.007),
    ("raw-mixed-errors", "ConsumerGroupHeartbeat", 0.008),
    ("raw-mixed-errors", "JoinGroup", 0.011),
    ("raw-mixed-errors", "SyncGroup", 0.011),
    ("raw-mixed-errors", "JoinGroup", 1.114),
}
"""Where a group that was emptied is of the other type: no epoch goes back here. A hand-made member
names the generation that it had there."""

NAMES_ITSELF = {("raw-migration-classic-to-consumer-and-back", "JoinGroup", 2.429)}
"""Where a refused member is told the id that it came with."""

MAY_DIFFER = {*LATER_THERE, *SOONER_HERE, *OTHER_PARTITIONS, *COUNTS_ON, *NAMES_ITSELF}

OF_OTHERS = "ListGroups"
"""Its answers name groups of other conversations as well: only those of this one are compared."""


def test_the_listener_answers_group_calls_as_a_broker_does(
    conversation: Case, tmp_path: Path
) -> None:
    case = conversation.case_id
    if case in NOT_PLAYED:
        return
    compared = asyncio.run(played(conversation, tmp_path))
    differ = [
        (each.told["api"], each.told["t"], plain(each.theirs), plain(each.ours))
        for each in compared
        if (case, each.told["api"], each.told["t"]) not in MAY_DIFFER
        and plain({**each.theirs, **REFUSED_HERE.get(case, {})}) != plain(each.ours)
    ]
    assert differ == []
    assert bool(compared) is (case != "raw-hostile"), "which has no call that is answered"


async def played(conversation: Case, folder: Path) -> list[Compared]:
    async with listening(folder) as served:
        if topics := topics_in(conversation):
            await served.line.ask(TellTopics(topics))
        compared = await WireReplay(served).play(conversation)
        return [only_common(each) if each.told["api"] == OF_OTHERS else each for each in compared]


def only_common(compared: Compared) -> Compared:
    """Return the groups that both know, in the order of names."""
    both = [{each["GroupId"]: each for each in told["Groups"]} for told in compared[1:]]
    theirs, ours = (
        {**told, "Groups": [groups[name] for name in sorted(both[0].keys() & both[1].keys())]}
        for told, groups in zip(compared[1:], both, strict=True)
    )
    return compared._replace(theirs=theirs, ours=ours)


def plain(fields: Any) -> Any:
    """Return an answer with only whether it has a message; None: the connection was closed."""
    if fields is None or IN_OUR_WORDS not in fields:
        return fields
    return {**fields, IN_OUR_WORDS: fields[IN_OUR_WORDS] is not None}
