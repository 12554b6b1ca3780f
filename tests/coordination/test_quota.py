"""A member beyond its rate: it is answered, heard, and told to wait (ThrottleTimeMs)."""

from dataclasses import replace

from fairlead.actors.group.members.request_filter import BURST
from fairlead.actors.messages.commands import AddressedReply
from fairlead.actors.messages.members import HeartbeatReply
from fairlead.actors.messages.orders import ConfigureGroup
from fairlead.events.model import MemberState
from fairlead_tests.coordination.driver import HEARTBEAT_MS, SESSION_MS, SETTINGS, CoordinatorDriver


def limited(driver: CoordinatorDriver, rate: int = 1) -> None:
    """Open the group again, on a node that has a rate."""
    driver.settings = replace(SETTINGS, requests_per_second=rate)
    driver.open()


def throttles(said: list[AddressedReply]) -> list[int]:
    """How long each answered member is to wait."""
    replies = [answer.reply for answer in said]
    return [each.throttle_time_ms for each in replies if isinstance(each, HeartbeatReply)]


def state_of(driver: CoordinatorDriver, member: str) -> MemberState:
    """How far a member has come."""
    return driver.group.members[member].current.state


def settled(driver: CoordinatorDriver) -> None:
    """Have `a` join a group of its own, at rest, and its bucket be full again."""
    driver.asks(driver.joining("a"))
    driver.compute("a")
    driver.beat("a")
    driver.passes(HEARTBEAT_MS)
    for _ in range(2):
        driver.beat("a")
        driver.passes(HEARTBEAT_MS)


def test_a_member_beyond_its_rate_is_answered_at_once_and_told_to_wait(
    driver: CoordinatorDriver,
) -> None:
    limited(driver)
    settled(driver)
    said = [throttles(driver.beat("a")) for _ in range(BURST + 3)]
    assert said == [[]] * BURST + [[2_000], [3_000], [3_000]]
    assert throttles(driver.beat("a")) == [HEARTBEAT_MS], "no wait outlasts the interval"


def test_who_waits_as_told_is_held_again(driver: CoordinatorDriver) -> None:
    limited(driver)
    settled(driver)
    while not throttles(driver.beat("a")):
        pass
    assert driver.passes(1_000) == []
    driver.passes(1_000)
    assert driver.beat("a") == []
    assert throttles(driver.passes(HEARTBEAT_MS)) == [0]


def test_a_request_beyond_the_rate_keeps_the_session_alive(driver: CoordinatorDriver) -> None:
    limited(driver)
    settled(driver)
    while not throttles(driver.beat("a")):
        pass
    driver.passes(SESSION_MS - 1)
    assert set(driver.group.members) == {"a"}
    assert driver.beat("a") == []
    while not throttles(driver.beat("a")):
        pass
    driver.passes(SESSION_MS - 1)
    assert set(driver.group.members) == {"a"}


def test_what_a_request_beyond_the_rate_says_counts(driver: CoordinatorDriver) -> None:
    limited(driver)
    settled(driver)
    driver.put("A")
    driver.put("B")
    driver.compute("a")
    driver.beat("a")
    driver.asks(driver.joining("b"))
    driver.compute("a")
    while not any(throttles(driver.asks(driver.full("a", "A B")))):
        pass
    assert state_of(driver, "a") is MemberState.UNREVOKED
    (kept,) = [each.connector for each in driver.group.target_of["a"]]
    said = driver.asks(driver.full("a", kept))
    assert throttles(said)[0] > 0
    assert state_of(driver, "a") is MemberState.STABLE
    driver.asks(driver.request("a", -1))
    assert set(driver.group.members) == {"b"}


def test_a_member_that_comes_anew_has_a_full_bucket(driver: CoordinatorDriver) -> None:
    limited(driver)
    settled(driver)
    while not throttles(driver.beat("a")):
        pass
    driver.asks(driver.request("a", -1))
    assert throttles(driver.asks(driver.joining("a"))) == [0]


def test_the_rate_may_be_the_groups_own(driver: CoordinatorDriver) -> None:
    settled(driver)
    driver.send(ConfigureGroup("connect", {"member.request.rate": "1"}))
    assert throttles(driver.beat("a")) == [0], "it hears of the settings at once"
    said = [throttles(driver.beat("a")) for _ in range(BURST)]
    assert said == [[]] * (BURST - 1) + [[2_000]]
    driver.send(ConfigureGroup("connect", {"member.request.rate": None}))
    assert throttles(driver.beat("a")) == [0]
    assert driver.beat("a") == []


def test_strangers_are_not_counted(driver: CoordinatorDriver) -> None:
    limited(driver)
    for _ in range(BURST + 3):
        assert throttles(driver.asks(driver.request("x", 7))) == [0]
