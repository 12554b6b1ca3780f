"""A heartbeat that led to nothing leads to nothing again: until anything in its group changes."""

from dataclasses import replace

from fairlead.actors.consumer.repeats import RepeatedHeartbeats
from fairlead.actors.messages.consumers import ConsumerGroupHeartbeat, ConsumerGroupHeartbeatReply
from fairlead.actors.messages.errors import Error
from fairlead.events.group import Group
from fairlead_tests.consumer.driver import SESSION_MS, ConsumerDriver

JOIN = ConsumerGroupHeartbeat(
    "g",
    "m",
    0,
    rebalance_timeout_ms=20_000,
    subscribed_topic_names=("t4",),
    topic_partitions={},
)
BEAT = ConsumerGroupHeartbeat("g", "m", 2)


def joined() -> ConsumerDriver:
    driver = ConsumerDriver()
    assert driver.asks(JOIN).member_epoch == 2
    return driver


def test_the_same_heartbeat_is_answered_the_same_and_writes_nothing() -> None:
    driver = joined()
    first, end = driver.asks(BEAT), driver.group.end
    again = driver.asks(BEAT)
    assert replace(again, number=0) == replace(first, number=0)
    assert (first.error, first.assignment, driver.group.end) == (Error.NONE, None, end)


def test_it_keeps_its_member_alive() -> None:
    driver = joined()
    for _ in range(4):
        driver.asks(BEAT)
        driver.passes(SESSION_MS - 1)
    assert driver.group.members.keys() == {"m"}
    driver.passes(SESSION_MS + 1)
    assert driver.group.members == {}


def test_it_hears_of_what_has_changed_meanwhile() -> None:
    driver = joined()
    driver.asks(BEAT)
    driver.asks(BEAT)
    driver.asks(replace(JOIN, member_id="n"))
    told = driver.asks(BEAT)
    assert told.assignment is not None, "it is to give up what the other is to have"
    assert driver.asks(replace(BEAT, member_epoch=9)).error is Error.FENCED_MEMBER_EPOCH


def test_an_answer_is_not_kept_that_was_given_before_the_group_changed() -> None:
    group = Group("g")
    repeats = RepeatedHeartbeats(group)
    reply = ConsumerGroupHeartbeatReply(Error.NONE, "m", 2)
    repeats.note(BEAT, group.end - 1, reply)
    assert repeats.reply_to(BEAT) is None
    repeats.note(BEAT, group.end, reply)
    assert repeats.reply_to(BEAT) is reply
    assert repeats.reply_to(replace(BEAT, client_host="/elsewhere")) is None
    group.end += 1
    assert repeats.reply_to(BEAT) is None
