"""Conversations with a real broker over sockets: the listener answers group calls as it did."""
# pyright: basic

import asyncio
from pathlib import Path

from fairlead_tests.conformance.cases import Case
from fairlead_tests.kafka_listener.replay import WireReplay
from fairlead_tests.kafka_listener.served import listening

PLAYED = "raw-classic-", "java-classic-", "aiokafka-", "kafka-python-"
"""What is played; in the others are members of KIP-848's protocol, offsets, or two sessions that
end within a millisecond of something else.
"""


def test_the_listener_answers_classic_members_as_a_broker_does(
    conversation: Case, tmp_path: Path
) -> None:
    if not conversation.case_id.startswith(PLAYED):
        return

    async def play() -> None:
        async with listening(tmp_path) as served:
            compared = await WireReplay(served).play(conversation)
            assert compared
            differ = [each for each in compared if each.ours != each.theirs]
            assert [(each.told["api"], each.theirs, each.ours) for each in differ] == []

    asyncio.run(play())
