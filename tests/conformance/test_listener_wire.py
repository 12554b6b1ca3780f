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
    "librdkafka-live-migration": "its group is converted while it has members",
    "raw-migration-classic-to-consumer-and-back": "its group is converted while it has members",
    "raw-mixed-errors": "its groups have members of both protocols",
}

IN_OUR_WORDS = "ErrorMessage"
"""What people read is told in other words: with what was kept, and what to do."""

REFUSED_HERE = {"raw-garbage": {"ErrorCode": 23, "MemberId": ""}}
"""Conversations with bytes that a broker takes, and then waits for without end."""

LATER_THERE = {("connect-sessioned-two-workers", "Heartbeat", 31.587)}
"""Where a session is over here to the millisecond, and at the broker a moment later."""

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
        if (case, each.told["api"], each.told["t"]) not in LATER_THERE
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
    """Return the groups that both know."""
    common = {each["GroupId"] for each in compared.ours["Groups"]}
    theirs = [each for each in compared.theirs["Groups"] if each["GroupId"] in common]
    return compared._replace(theirs={**compared.theirs, "Groups": theirs})


def plain(fields: Any) -> Any:
    """Return an answer with only whether it has a message; None: the connection was closed."""
    if fields is None or IN_OUR_WORDS not in fields:
        return fields
    return {**fields, IN_OUR_WORDS: fields[IN_OUR_WORDS] is not None}
