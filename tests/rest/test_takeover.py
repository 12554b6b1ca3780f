"""A command while another node takes the group over: it waits for the owner as long as it may."""

import asyncio
from pathlib import Path

import pytest

from fairlead.actors.messages.commands import CommandReply, RequestedCommand
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.orders import PutConnector
from fairlead.runtime.cluster.messages import Undecided
from fairlead.runtime.interfaces.rest.commands import gateway
from fairlead.runtime.interfaces.rest.commands.connection import (
    UNKNOWN,
    Connection,
    Outcome,
)
from fairlead.runtime.interfaces.rest.server.errors import Unanswered

PUT = PutConnector("connect", "a", {"name": "a"})
NO_OWNER = Undecided("no node owns the group at this moment: ask again")
BROKEN = Undecided("the owner of the group did not answer: it hung up", is_sent=True)
AWAY = Unanswered("the group is not served at this moment: nothing was changed")
DONE = CommandReply(Error.NONE, log_offset=7)
REFUSED = (
    "no node that owns the group was reached within 10 s: nothing was changed, try again; no node"
    " owns the group at this moment: ask again"
)


class Door:
    """What the group's process of this node answers, one after the other; the last one for ever."""

    def __init__(self, *answers: CommandReply | Undecided | Unanswered) -> None:
        self.answers = [*answers]
        self.asked: list[bool] = []
        """Whether each time that it was asked is one after it may have been carried out."""

    def carry_out(self, *_: object, is_repeated: bool, **__: object) -> CommandReply | Undecided:
        self.asked.append(is_repeated)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Unanswered):
            raise answer
        return answer

    def hang_up(self) -> None:
        """Nothing is open."""


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(gateway, "COMMAND_SECONDS", gateway.LEAST_SECONDS + 0.05)


def asks(door: Door, monkeypatch: pytest.MonkeyPatch) -> Outcome | str:
    """Return how a command ends, or what is said of it."""
    monkeypatch.setattr(gateway, "Connection", lambda _: door)
    made = gateway.CommandGateway(Path())

    try:
        return asyncio.run(made.carry_out(PUT))
    except Unanswered as error:
        return str(error)
    finally:
        made.close()


def test_what_reached_no_owner_is_sent_until_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "PAUSE_SECONDS", 0.001)
    door = Door(*[NO_OWNER] * 30, DONE)
    assert asks(door, monkeypatch) == Outcome(DONE)
    assert door.asked == [False] * 31, "nothing was sent, so nothing is repeated"


@pytest.mark.usefixtures("brief")
def test_if_there_is_none_in_time_nothing_was_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asks(Door(NO_OWNER), monkeypatch) == REFUSED


def test_what_may_have_been_carried_out_is_repeated_once_and_waits_for_the_next_owner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gateway, "PAUSE_SECONDS", 0.001)
    door = Door(NO_OWNER, BROKEN, NO_OWNER, NO_OWNER, DONE)
    assert asks(door, monkeypatch) == Outcome(DONE, repeated=True)
    assert door.asked == [False, False, True, True, True]


@pytest.mark.usefixtures("brief")
def test_what_may_have_been_carried_out_is_never_told_as_unchanged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for then in (BROKEN, NO_OWNER, AWAY):
        assert asks(Door(BROKEN, then), monkeypatch) == UNKNOWN
    twice = Door(BROKEN)
    asks(twice, monkeypatch)
    assert twice.asked == [False, True]


def test_who_asks_a_group_that_does_not_open_is_told_where_the_reason_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = Connection(tmp_path)
    monkeypatch.setattr(connection, "_find_group", lambda *_: None)
    requested = RequestedCommand(PUT, "r1")
    for ask in (
        lambda: connection.carry_out(requested, 0.0),
        lambda: connection.ownership("connect", 0.0),
    ):
        with pytest.raises(Unanswered, match=r"try again; `fairlead status` says why"):
            ask()
