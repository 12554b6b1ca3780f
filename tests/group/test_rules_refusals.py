"""A refusal says what happened, what was kept, and what to do."""

from dataclasses import replace

import pytest

from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.commands import Command
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat, PutTaskConfigs, ReportStatus
from fairlead.actors.messages.orders import DeleteConnector, PutConnector
from fairlead.events.model import Token
from fairlead_tests.decider import JOIN, Decider

BEAT = Heartbeat("connect", "W1", 1, "1")


@pytest.fixture
def decider() -> Decider:
    """W1 runs A and A-0 at epoch 1, in a group that takes no second member."""
    decider = Decider(GroupSettings(max_size=1))
    decider.configure("A A-0")
    decider.join("W1")
    decider.settle()
    return decider


HEARTBEATS: dict[str, tuple[Heartbeat, Error, str]] = {
    "not-served": (
        replace(BEAT, group_id="other"),
        Error.GROUP_ID_NOT_FOUND,
        "group 'other' is not served here: ask its own coordinator",
    ),
    "flawed": (
        replace(BEAT, member_epoch=-3),
        Error.INVALID_REQUEST,
        "MemberEpoch is -3: it must be from -2 to 9223372036854775807; nothing was changed",
    ),
    "stranger": (
        replace(BEAT, member_id="W9"),
        Error.UNKNOWN_MEMBER_ID,
        "W9 is no member: stop everything, and join with epoch 0",
    ),
    "taken": (
        replace(BEAT, incarnation="2"),
        Error.UNRELEASED_INSTANCE_ID,
        "W1 is the seat of another process, which keeps it: join under a member id of your own",
    ),
    "fenced": (
        replace(BEAT, member_epoch=4),
        Error.FENCED_MEMBER_EPOCH,
        "epoch 4 is not the member's 1: its seat is kept; stop everything, and rejoin with epoch 0",
    ),
    "full": (
        replace(JOIN, member_id="W2"),
        Error.GROUP_MAX_SIZE_REACHED,
        "the group has as many members as group.max.size = 1 allows: raise it, or ask again once"
        " one has left",
    ),
}


@pytest.mark.parametrize(("request_", "error", "message"), HEARTBEATS.values(), ids=HEARTBEATS)
def test_a_heartbeat_that_is_refused_changes_nothing_and_is_told_what_to_do(
    decider: Decider, request_: Heartbeat, error: Error, message: str
) -> None:
    before = (decider.group.end, decider.soft, decider.member("W1"))
    reply = decider.heartbeat(request_)
    assert (reply.error, reply.message) == (error, message)
    assert (decider.group.end, decider.soft, decider.member("W1")) == before


def test_a_heartbeat_to_a_group_that_is_not_there_is_told_how_to_make_it() -> None:
    reply = Decider().heartbeat(BEAT)
    assert (reply.error, reply.message) == (
        Error.GROUP_ID_NOT_FOUND,
        "there is no group 'connect': join it with epoch 0",
    )


COMMANDS: dict[str, tuple[Command, Error, str]] = {
    "nameless": (
        PutConnector("connect", " ", {}),
        Error.INVALID_CONFIG,
        "the connector's name is empty; nothing was changed",
    ),
    "there-already": (
        PutConnector("connect", "A", {"x": "2"}, create_only=True),
        Error.ALREADY_EXISTS,
        "connector A already exists and stays as it is: put its config to change it",
    ),
    "nothing-to-delete": (
        DeleteConnector("connect", "B"),
        Error.UNKNOWN_CONNECTOR,
        "there is no connector B to delete, or no longer; nothing was changed",
    ),
    "split-by-another": (
        PutTaskConfigs("connect", "W2", "A", Token(1, 1), ({},)),
        Error.FENCED,
        f"W2 does not run connector A under {Token(1, 1)}; its tasks stay as they were: stop it",
    ),
    "report-of-a-stranger": (
        ReportStatus("connect", "W9", ()),
        Error.UNKNOWN_MEMBER_ID,
        "W9 is no member: its report is not kept; join, and report then",
    ),
}


@pytest.mark.parametrize(("command", "error", "message"), COMMANDS.values(), ids=COMMANDS)
def test_a_command_that_is_refused_changes_nothing_and_says_what_to_do(
    decider: Decider, command: Command, error: Error, message: str
) -> None:
    end = decider.group.end
    reply = decider.command(command)
    assert (reply.error, reply.message, decider.group.end) == (error, message, end)


def test_a_connector_that_is_being_deleted_is_told_so(decider: Decider) -> None:
    decider.carry_out(DeleteConnector("connect", "A"))
    said = [
        decider.command(each).message
        for each in (
            PutConnector("connect", "A", {"x": "2"}),
            PutTaskConfigs("connect", "W1", "A", Token(1, 1), ({},)),
        )
    ]
    assert said == [
        "connector A is being deleted: create it once it is gone",
        "connector A is being deleted; its tasks stay as they were: stop it",
    ]
