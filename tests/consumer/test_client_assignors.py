"""Consumers that bring assignors of their own compute for their group, as Connect's workers do."""

from fairlead.actors.messages.computing import Assignment, Install, Prepare
from fairlead.actors.messages.errors import Error
from fairlead.events.model import ClientAssignor, Resource
from fairlead_tests.consumer.driver import ConsumerDriver, topic

MINE = (ClientAssignor("mine", metadata=b"x"),)
TOPICS = {"a": topic("a", 2), "b": topic("b", 1)}


def share(text: str) -> frozenset[Resource]:
    named = (each.split("-") for each in text.split())
    return frozenset(Resource(name, int(number)) for name, number in named)


def test_the_member_that_is_asked_computes_within_what_each_subscribes_to() -> None:
    driver = ConsumerDriver(topics=TOPICS)
    told = driver.joins("A", "a", "b", client_assignors=MINE)
    assert told.error is Error.COMPUTE_ASSIGNMENT
    driver.joins("B", "b", client_assignors=MINE)
    epoch = driver.group.members["A"].current.member_epoch
    prepared = driver.asks_plain(Prepare("g", "A", epoch))
    snapshot = prepared.snapshot
    assert {each: view.topics for each, view in snapshot.members.items()} == {
        "A": {"a", "b"},
        "B": {"b"},
    }
    for shares, error in (
        ({"A": share("b-0"), "B": share("a-0 a-1")}, Error.INVALID_ASSIGNMENT),
        ({"A": share("a-0 a-1"), "B": share("b-0")}, Error.NONE),
    ):
        install = Install("g", "A", epoch, snapshot.group_epoch, Assignment(shares))
        told = driver.asks_plain(install)
        assert told.error is error
        if error is Error.INVALID_ASSIGNMENT:
            assert "which does not subscribe to its topic" in told.message
            driver.passes(5_000)
            driver.beats("A")
            driver.beats("B")
            driver.passes(1_000)
            driver.beats("A")
            epoch = driver.group.members["A"].current.member_epoch
            snapshot = driver.asks_plain(Prepare("g", "A", epoch)).snapshot
    driver.settles()
    assert driver.holds() == {"A": "a-0 a-1", "B": "b-0"}
    assert (driver.group.target.assignor, driver.group.target.computed_by) == ("mine", "A")


def test_where_one_brings_none_the_group_computes_by_itself() -> None:
    driver = ConsumerDriver(topics=TOPICS)
    driver.joins("A", "a", "b", client_assignors=MINE)
    driver.joins("B", "b")
    driver.beats("A")
    driver.settles()
    assert driver.group.target.assignor == "uniform"
    assert driver.holds() == {"A": "a-0 a-1", "B": "b-0"}


def test_the_server_assignor_is_the_one_that_most_members_name() -> None:
    driver = ConsumerDriver(topics={"a": topic("a", 3), "c": topic("c", 3)})
    driver.joins("A", "a", "c", server_assignor="range")
    driver.joins("B", "a", "c", server_assignor="range")
    driver.settles()
    assert driver.group.target.assignor == "range"
    assert driver.holds() == {"A": "a-0 a-1 c-0 c-1", "B": "a-2 c-2"}
