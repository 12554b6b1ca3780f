"""A heartbeat without news waits at the group until there is some (PROTOCOL §3)."""

from fairlead.actors.messages.commands import CommandReply
from fairlead.events.model import GroupState
from fairlead_tests.coordination.office import HEARTBEAT_MS, SESSION_MS, Office, sequences, told

COMPUTE, NONE = "COMPUTE_ASSIGNMENT", "NONE"


def pair(office: Office) -> Office:
    """Two members at epoch 2, both with a request that waits; `a` is the one who computes."""
    office.asks(office.joining("a"))
    office.beat("a")
    office.compute("a")
    office.asks(office.joining("b"))
    for _ in range(2):
        office.beat("a")
        office.beat("b")
    office.compute("a")
    assert (office.beat("a"), office.beat("b")) == ([], [])
    assert office.group.state is GroupState.STABLE
    return office


def test_a_new_target_is_told_at_once_to_all_whom_it_concerns(office: Office) -> None:
    office.asks(office.joining("a"))
    assert office.beat("a") == []
    assert told(office.compute("a")) == {"a": (NONE, "")}


def test_the_member_that_is_to_compute_hears_of_it_at_once_and_only_once(office: Office) -> None:
    pair(office)
    reply, compute = office.put("A")
    assert isinstance(reply.reply, CommandReply)
    assert told([compute]) == {"a": (COMPUTE, None)}
    assert office.beat("a") == [], "it knows, and works on it"
    assert told(office.passes(HEARTBEAT_MS)) == {"a": (COMPUTE, None), "b": (NONE, None)}


def test_a_new_task_reaches_its_worker_without_any_interval(office: Office) -> None:
    pair(office)
    office.put("A")
    office.beat("a")
    assert told(office.compute("a")) == {"a": (NONE, "A"), "b": (NONE, None)}
    assert told(office.split("a", "A", 2)) == {}
    assert told(office.beat("a")) == {"a": (COMPUTE, None)}
    office.beat("a")
    office.beat("b")
    said = told(office.compute("a"))
    assert {len((share or "").split()) for _, share in said.values()} == {1, 2}


def test_what_one_member_lets_go_reaches_the_heir_at_once(office: Office) -> None:
    office.asks(office.joining("a"))
    office.put("A")
    office.put("B")
    office.compute("a")
    assert told(office.beat("a")) == {"a": (NONE, "A B")}
    office.asks(office.full("a", "A B"))
    office.asks(office.joining("b"))
    office.compute("a")
    (kept,) = map(str, office.group.target_of["a"])
    (given_up,) = map(str, office.group.target_of["b"])
    for _ in range(2):
        office.beat("b")
    assert office.beat("b") == [], "it waits for what a still holds"
    assert told(office.asks(office.full("a", "A B"))) == {"a": (NONE, kept)}
    said = office.asks(office.full("a", kept))
    assert told(said) == {"a": (NONE, kept), "b": (NONE, given_up)}


def test_a_superseded_request_is_never_answered(office: Office) -> None:
    pair(office)
    office.beat("b")
    newest = office.sequences["b"]
    said = office.passes(HEARTBEAT_MS)
    assert [each for each in sequences(said) if each[0] == "b"] == [("b", newest)]
    assert office.passes(HEARTBEAT_MS) == []


def test_a_full_request_that_supersedes_another_may_wait_as_well(office: Office) -> None:
    pair(office)
    assert office.asks(office.full("b")) == []
    assert told(office.passes(HEARTBEAT_MS))["b"] == (NONE, "")


def test_a_full_request_that_supersedes_nothing_is_answered_at_once(office: Office) -> None:
    pair(office)
    office.passes(HEARTBEAT_MS)
    assert told(office.asks(office.full("b"))) == {"b": (NONE, "")}


def test_without_news_the_answer_comes_after_a_heartbeat_interval(office: Office) -> None:
    pair(office)
    office.passes(HEARTBEAT_MS)
    office.beat("b")
    assert office.passes(HEARTBEAT_MS - 1) == []
    assert told(office.passes(1)) == {"b": (NONE, None)}


def test_a_request_that_supersedes_a_held_one_is_answered_when_that_was_due(
    office: Office,
) -> None:
    """Else a member that gives up sooner than the group answers is never told a thing."""
    pair(office)
    office.passes(HEARTBEAT_MS - 1)
    office.beat("b")
    newest = office.sequences["b"]
    said = office.passes(1)
    assert told(said) == {"a": (NONE, None), "b": (NONE, None)}
    assert ("b", newest) in sequences(said)


def test_a_request_after_an_answered_one_is_held_a_whole_interval_from_its_own_arrival(
    office: Office,
) -> None:
    pair(office)
    office.passes(HEARTBEAT_MS)
    assert office.passes(HEARTBEAT_MS // 2) == []
    assert office.beat("b") == []
    assert office.passes(HEARTBEAT_MS - 1) == []
    assert told(office.passes(1)) == {"b": (NONE, None)}


def test_an_older_request_than_the_newest_is_dropped_without_an_answer(office: Office) -> None:
    pair(office)
    older, newer = office.request("b"), office.request("b")
    assert office.asks(newer) == []
    assert office.asks(older) == []
    assert office.asks(newer) == [], "nor is a copy any news"
    assert sequences(office.passes(HEARTBEAT_MS))[-1] == ("b", newer.sequence)


def test_a_member_that_is_removed_hears_of_it_at_once(office: Office) -> None:
    pair(office)
    office.passes(SESSION_MS - HEARTBEAT_MS)
    said = office.asks(office.request("b", -1))
    assert told(said)["b"] == (NONE, None)
    office.asks(office.request("a"))
    assert set(office.group.members) == {"a"}


def test_news_of_one_turn_reach_those_who_asked_in_the_same_turn(office: Office) -> None:
    """Requests that arrive together are decided together, and nobody waits for the next."""
    pair(office)
    said = office.asks(office.joining("c"), office.request("a"))
    assert told(said) == {"c": (NONE, ""), "a": (COMPUTE, None)}
