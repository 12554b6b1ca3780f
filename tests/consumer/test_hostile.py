"""Whatever a client says, it is answered, and the group stays one that agrees with its log."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.actors.messages.consumers import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatReply
from fairlead.actors.messages.offsets import OffsetCommit, OffsetCommitReply, TopicOffset
from fairlead.events.entries.codec import restore
from fairlead.runtime.simulation.invariants.group import consistent, same
from fairlead_tests.consumer.driver import ConsumerDriver

TEXTS = st.sampled_from(["", "A", "B", "t4", "t4#0", "\0", "\udc80", "x" * 300, "(", ".*", "ä"])
NUMBERS = st.sampled_from([-3, -2, -1, 0, 1, 2, 3, 1 << 31, 1 << 63, 1 << 70])
MEMBERS = st.sampled_from(["A", "A", "B", "", "\udc80"])
HEARTBEATS = st.builds(
    ConsumerGroupHeartbeat,
    st.sampled_from(["g", "g", "g", "", "other"]),
    MEMBERS,
    NUMBERS,
    st.none() | TEXTS,
    st.none() | TEXTS,
    NUMBERS,
    st.none() | st.lists(TEXTS, max_size=3).map(tuple),
    st.none() | TEXTS,
    st.none() | st.sampled_from(["uniform", "range", "mine"]),
    st.none() | st.dictionaries(TEXTS, st.lists(NUMBERS, max_size=3).map(tuple), max_size=2),
    TEXTS,
    TEXTS,
)
OFFSETS = st.builds(TopicOffset, TEXTS, NUMBERS, NUMBERS, NUMBERS, TEXTS)
COMMITS = st.builds(
    OffsetCommit,
    st.just("g"),
    st.lists(OFFSETS, max_size=3).map(tuple),
    MEMBERS,
    NUMBERS,
    st.none() | TEXTS,
)


@given(st.lists(HEARTBEATS | COMMITS, max_size=12))
@settings(max_examples=150, deadline=None)
def test_anything_is_answered_and_leaves_a_group_that_agrees_with_itself(said: list[Any]) -> None:
    driver = ConsumerDriver()
    driver.joins("A", "t4")
    for request in said:
        assert isinstance(driver.asks(request), ConsumerGroupHeartbeatReply | OffsetCommitReply)
        consistent(driver.group)
    entries = driver.control.entries
    same(driver.group, restore("g", entries, len(entries)))
