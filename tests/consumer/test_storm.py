"""Whatever is lost, whoever goes: no partition is read by two, and the group comes to rest."""

import pytest

from fairlead.events.model import GroupState, Resource
from fairlead_tests.consumer.storm import Storm

STEPS = 250


@pytest.mark.parametrize("seed", range(8))
def test_a_group_goes_through_a_storm_and_comes_to_rest(seed: int) -> None:
    storm = Storm(seed)
    for _ in range(STEPS):
        storm.step()
    recreate = storm.recreate_topics
    for change in (storm.settle, recreate, recreate, storm.swap_subscriptions):
        change()
        storm.settle()
        check(storm)


def check(storm: Storm) -> None:
    """Hold a group that has come to rest against what its clients want."""
    group = storm.driver.group
    assert group.state in {GroupState.STABLE, GroupState.EMPTY}
    assert {*group.members} == {*storm.clients}
    read_by = storm.read_by()
    topics = {name: storm.driver.topics[name] for name in read_by}
    assert {*group.owner} == {
        Resource(name, number) for name in topics for number in range(topics[name].partitions)
    }
    assert all(member_id in read_by[each.connector] for each, member_id in group.owner.items())
    owned = {
        (storm.driver.topics[each.connector].topic_id, each.task): member_id
        for each, member_id in group.owner.items()
    }
    assert owned == {
        each: client.member_id for client in storm.clients.values() for each in client.owned
    }
