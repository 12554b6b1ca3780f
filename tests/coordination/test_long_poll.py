"""A heartbeat without news waits at the group until there is some (PROTOCOL §3)."""

from fairlead.actors.messages.commands import CommandReply
from fairlead.events.model import GroupState
from fairlead_tests.coordination.driver import (
    HEARTBEAT_MS,
    SESSION_MS,
    CoordinatorDriver,
    sequences,
    told,
)

COMPUTE, NONE = "COMPUTE_ASSIGNMENT", "NONE"


def pair(driver: CoordinatorDriver) -> CoordinatorDriver:
    """Two members at epoch 2, both with a request that waits; `a` is the one who computes."""
    driver.asks(driver.joining("a"))
    driver.beat("a")
    driver.compute("a")
    driver.asks(driver.joining("b"))
    for _ in range(2):
        driver.beat("a")
        driver.beat("b")
    driver.compute("a")
    assert (driver.beat("a"), driver.beat("b")) == ([], [])
    assert driver.group.state is GroupState.STABLE
    return driver


def test_a_new_target_is_told_at_once_to_all_whom_it_concerns(driver: CoordinatorDriver) -> None:
    driver.asks(driver.joining("a"))
    assert driver.beat("a") == []
    assert told(driver.compute("a")) == {"a": (NONE, "")}


def test_the_member_that_is_to_compute_hears_of_it_at_once_and_only_once(
    driver: CoordinatorDriver,
) -> None:
    pair(driver)
    reply, compute = driver.put("A")
    assert isinstance(reply.reply, CommandReply)
    assert told([compute]) == {"a": (COMPUTE, None)}
    assert driver.beat("a") == [], "it knows, and works on it"
    assert told(driver.passes(HEARTBEAT_MS)) == {"a": (COMPUTE, None), "b": (NONE, None)}


def test_a_new_task_reaches_its_worker_without_any_interval(driver: CoordinatorDriver) -> None:
    pair(driver)
    driver.put("A")
    driver.beat("a")
    assert told(driver.compute("a")) == {"a": (NONE, "A"), "b": (NONE, None)}
    assert told(driver.split("a", "A", 2)) == {}
    assert told(driver.beat("a")) == {"a": (COMPUTE, None)}
    driver.beat("a")
    driver.beat("b")
    said = told(driver.compute("a"))
    assert {len((share or "").split()) for _, share in said.values()} == {1, 2}


def test_what_one_member_lets_go_reaches_its_next_owner_at_once(driver: CoordinatorDriver) -> None:
    driver.asks(driver.joining("a"))
    driver.put("A")
    driver.put("B")
    driver.compute("a")
    assert told(driver.beat("a")) == {"a": (NONE, "A B")}
    driver.asks(driver.full("a", "A B"))
    driver.asks(driver.joining("b"))
    driver.compute("a")
    (kept,) = map(str, driver.group.target_of["a"])
    (given_up,) = map(str, driver.group.target_of["b"])
    for _ in range(2):
        driver.beat("b")
    assert driver.beat("b") == [], "it waits for what a still holds"
    assert told(driver.asks(driver.full("a", "A B"))) == {"a": (NONE, kept)}
    said = driver.asks(driver.full("a", kept))
    assert told(said) == {"a": (NONE, kept), "b": (NONE, given_up)}


def test_a_superseded_request_is_never_answered(driver: CoordinatorDriver) -> None:
    pair(driver)
    driver.beat("b")
    newest = driver.sequences["b"]
    said = driver.passes(HEARTBEAT_MS)
    assert [each for each in sequences(said) if each[0] == "b"] == [("b", newest)]
    assert driver.passes(HEARTBEAT_MS) == []


def test_a_full_request_that_supersedes_another_may_wait_as_well(driver: CoordinatorDriver) -> None:
    pair(driver)
    assert driver.asks(driver.full("b")) == []
    assert told(driver.passes(HEARTBEAT_MS))["b"] == (NONE, "")


def test_a_full_request_that_supersedes_nothing_is_answered_at_once(
    driver: CoordinatorDriver,
) -> None:
    pair(driver)
    driver.passes(HEARTBEAT_MS)
    assert told(driver.asks(driver.full("b"))) == {"b": (NONE, "")}


def test_without_news_the_answer_comes_after_a_heartbeat_interval(
    driver: CoordinatorDriver,
) -> None:
    pair(driver)
    driver.passes(HEARTBEAT_MS)
    driver.beat("b")
    assert driver.passes(HEARTBEAT_MS - 1) == []
    assert told(driver.passes(1)) == {"b": (NONE, None)}


def test_a_request_that_supersedes_a_held_one_is_answered_when_that_was_due(
    driver: CoordinatorDriver,
) -> None:
    """Else a member that gives up sooner than the group answers is never told a thing."""
    pair(driver)
    driver.passes(HEARTBEAT_MS - 1)
    driver.beat("b")
    newest = driver.sequences["b"]
    said = driver.passes(1)
    assert told(said) == {"a": (NONE, None), "b": (NONE, None)}
    assert ("b", newest) in sequences(said)


def test_a_request_after_an_answered_one_is_held_a_whole_interval_from_its_own_arrival(
    driver: CoordinatorDriver,
) -> None:
    pair(driver)
    driver.passes(HEARTBEAT_MS)
    assert driver.passes(HEARTBEAT_MS // 2) == []
    assert driver.beat("b") == []
    assert driver.passes(HEARTBEAT_MS - 1) == []
    assert told(driver.passes(1)) == {"b": (NONE, None)}


def test_an_older_request_than_the_newest_is_dropped_without_an_answer(
    driver: CoordinatorDriver,
) -> None:
    pair(driver)
    older, newer = driver.request("b"), driver.request("b")
    assert driver.asks(newer) == []
    assert driver.asks(older) == []
    assert driver.asks(newer) == [], "nor is a copy any news"
    assert sequences(driver.passes(HEARTBEAT_MS))[-1] == ("b", newer.sequence)


def test_a_member_that_is_removed_hears_of_it_at_once(driver: CoordinatorDriver) -> None:
    pair(driver)
    driver.passes(SESSION_MS - HEARTBEAT_MS)
    said = driver.asks(driver.request("b", -1))
    assert told(said)["b"] == (NONE, None)
    driver.asks(driver.request("a"))
    assert set(driver.group.members) == {"a"}


def test_news_of_one_turn_reach_those_who_asked_in_the_same_turn(driver: CoordinatorDriver) -> None:
    """Requests that arrive together are decided together, and nobody waits for the next."""
    pair(driver)
    said = driver.asks(driver.joining("c"), driver.request("a"))
    assert told(said) == {"c": (NONE, ""), "a": (COMPUTE, None)}
