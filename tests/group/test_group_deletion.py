"""The end of a group, and its next life (PROTOCOL §8, §11; `leave_and_delete` of the data)."""

from dataclasses import replace

import pytest

from fairlead.actors.messages.commands import CommandReply, ExpireSession
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat, ReportStatus, StatusUpdate
from fairlead.actors.messages.orders import (
    ConfigureGroup,
    Cordon,
    DeleteGroup,
    PutConnector,
    SetPlacement,
)
from fairlead.events.group import Group, token_of
from fairlead.events.model import GroupState, Resource, RunState, Token
from fairlead.events.records import (
    ConnectorConfig,
    ConnectorsTasksMetadata,
    GroupConfiguration,
    GroupDeletion,
    GroupMetadata,
    Operator,
    OwnerBegan,
    TargetAssignment,
    TaskConfigs,
    TaskStatus,
    Tombstone,
)
from fairlead_tests.decider import JOIN, Decider, resource

NOW_MS = 5_000
DELETE = DeleteGroup("connect", "ann")


@pytest.fixture
def decider() -> Decider:
    """A group that has everything but members, at group epoch 5."""
    decider = Decider()
    decider.configure("A A-0")
    decider.join("W1")
    decider.settle()
    update = StatusUpdate(Resource("A", 0), Token(1, 1), RunState.RUNNING, 0)
    decider.carry_out(ReportStatus("connect", "W1", (update,)))
    decider.carry_out(ConfigureGroup("connect", {"group.max.size": "9"}))
    decider.carry_out(Cordon("connect", "w1"))
    decider.settle()
    decider.carry_out(SetPlacement("connect", resource("A"), weight=9))
    decider.settle()
    decider.carry_out(Heartbeat("connect", "W1", -1, "1"))
    assert (decider.group.group_epoch, decider.group.state) == (4, GroupState.EMPTY)
    decider.now_ms = NOW_MS
    return decider


def test_everything_gets_its_tombstone_in_the_protocols_order(decider: Decider) -> None:
    decision = decider.carry_out(DELETE)
    assert decision.records == (
        GroupDeletion(4, NOW_MS, "ann"),
        Tombstone(TargetAssignment, ()),
        Tombstone(TaskStatus, ("A", 0)),
        Tombstone(TaskConfigs, ("A",)),
        Tombstone(ConnectorConfig, ("A",)),
        Tombstone(ConnectorsTasksMetadata, ()),
        Tombstone(Operator, ("resource", "A", -1)),
        Tombstone(Operator, ("worker", "http://w1", -1)),
        Tombstone(GroupConfiguration, ()),
        Tombstone(GroupMetadata, ()),
    )
    assert decision.reply == CommandReply(Error.NONE, log_offset=decider.group.end)


def test_the_node_that_owned_the_group_owns_it_still(decider: Decider) -> None:
    owner = OwnerBegan(1, "n1")
    decider.write(owner)
    decider.carry_out(DELETE)
    assert (decider.group.ownership, decider.group.exists) == (owner, False)


def test_nothing_stays_but_how_far_the_epochs_came(decider: Decider) -> None:
    decider.carry_out(DELETE)
    assert decider.group == Group(
        "connect",
        end=decider.group.end,
        group_epoch=4,
        deletion=GroupDeletion(4, NOW_MS, "ann"),
    )
    assert decider.soft.settings.max_size == 1 << 31
    decider.witness.compacted(decider.group)


def test_a_deleted_group_is_dead_until_somebody_joins(decider: Decider) -> None:
    states: list[GroupState] = []
    for command in (
        DELETE,
        PutConnector("connect", "B", {}),
        replace(JOIN, member_id="W2"),
        Heartbeat("connect", "W2", -1, "1"),
    ):
        decider.carry_out(command)
        states.append(decider.group.state)
    dead, assigning, empty = GroupState.DEAD, GroupState.ASSIGNING, GroupState.EMPTY
    assert states == [dead, dead, assigning, empty]


def test_a_deleted_group_is_not_found_by_its_members(decider: Decider) -> None:
    decider.carry_out(DELETE)
    for epoch in (4, -1):
        reply = decider.heartbeat(Heartbeat("connect", "W1", epoch, "1"))
        assert reply.error is Error.GROUP_ID_NOT_FOUND


def test_a_group_with_members_is_not_deleted() -> None:
    decider = Decider()
    decider.join("W1")
    assert decider.command(DELETE) == CommandReply(
        Error.NON_EMPTY_GROUP, "members in the group: 1; delete it once they have left"
    )


def test_there_is_no_group_to_delete_that_never_was_or_is_dead(decider: Decider) -> None:
    decider.carry_out(DELETE)
    for each in (decider, Decider()):
        assert each.command(DELETE) == CommandReply(
            Error.GROUP_ID_NOT_FOUND, "there is no group 'connect' to delete"
        )


def test_what_was_put_into_a_dead_group_can_be_deleted_again(decider: Decider) -> None:
    decider.carry_out(DELETE)
    decider.carry_out(PutConnector("connect", "B", {}))
    assert decider.command(DELETE).error is Error.NONE
    assert (decider.group.connectors, decider.group.group_epoch) == ({}, 4)


def test_no_token_of_a_deleted_group_comes_again(decider: Decider) -> None:
    """The next life begins with another shape of the same names, and the epochs go on."""
    decider.carry_out(DELETE)
    decider.configure("A A-0")
    decider.join("W1", replace(JOIN, incarnation="2"))
    assert decider.group.group_epoch == 5
    rejoin = replace(JOIN, member_id="W1", incarnation="2", url="http://w1")
    while decider.heartbeat(rejoin).error is Error.COMPUTE_ASSIGNMENT:
        decider.compute()
    assert token_of(decider.group, "W1", Resource("A", 0)) == Token(5, 1)


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_group_may_be_deleted_time_and_again(decider: Decider, *, is_restarted: bool) -> None:
    decider.carry_out(DELETE)
    for life in range(1, 4):
        decider.join("W1")
        assert decider.group.group_epoch == 3 + 2 * life
        decider.carry_out(ExpireSession("W1"))
        decider.carry_out(DELETE)
        decider.witness.compacted(decider.group)
        if is_restarted:
            decider.restart()
