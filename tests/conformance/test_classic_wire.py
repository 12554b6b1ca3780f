"""Conversations of classic members with a real broker: the group answers as the broker did."""
# pyright: basic

from fairlead_tests.classic.replay import Replay
from fairlead_tests.conformance.cases import Case

OF_BOTH_PROTOCOLS = {
    "librdkafka-live-migration",
    "raw-migration-classic-to-consumer-and-back",
    "raw-mixed-errors",
}
"""Conversations in which members of KIP-848's protocol are in the same group."""

REFUSED_HERE = {"raw-garbage"}
"""Conversations with bytes that a broker takes, and then waits for without end."""

LATER_THERE = {("connect-sessioned-two-workers", "Heartbeat", 31.587)}
"""Where a session is over here to the millisecond, and at the broker a moment later."""


def test_a_group_answers_classic_members_as_a_broker_does(conversation: Case) -> None:
    if conversation.case_id in OF_BOTH_PROTOCOLS:
        return
    replay = Replay(delay_ms=0)
    differ = [
        each
        for each in replay.play(conversation)
        if each.ours != each.theirs
        and (conversation.case_id, each.told["api"], each.told["t"]) not in LATER_THERE
    ]
    if conversation.case_id in REFUSED_HERE:
        assert [each.ours for each in differ] == [
            {**each.theirs, "ErrorCode": 23, "MemberId": ""} for each in differ
        ]
        assert all(driver.coordinator.is_empty for driver in replay.groups.values())
    else:
        assert differ == []
