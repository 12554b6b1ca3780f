"""What a group's process answers while another node owns the group, or none."""
# pyright: basic

from types import SimpleNamespace
from typing import Any, cast

import pytest
from thespian.actors import ActorAddress

from fairlead.actors.messages.commands import CommandReply, RequestedCommand
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.orders import PutConnector
from fairlead.actors.transport.actor import Failure
from fairlead.events.stores.port import Claimant, StoreOwner
from fairlead.runtime.cluster.messages import Undecided
from fairlead.runtime.node.door.actor import ClusterGroupActor
from fairlead.runtime.node.door.connection import LineAnswer
from fairlead.runtime.node.door.delivery import AnswersAhead, LogEnds
from fairlead.runtime.node.door.line import OwnerLine

PUT = RequestedCommand(PutConnector("connect", "a", {"name": "a"}), "r1")
REST, SUPERVISOR = ActorAddress("rest"), ActorAddress("supervisor")
NOBODY = Undecided("no node owns the group at this moment: ask again")


def claimed_by(node: str, epoch: int = 7) -> StoreOwner:
    return StoreOwner(epoch, Claimant(node, f"{node}:9094", f"folder of {node}"), 0.1)


class Line:
    """Keeps what is sent to the owner; `lost` ends it all."""

    carries = staticmethod(OwnerLine.carries)

    def __init__(self) -> None:
        self.sent: list[tuple[object, object]] = []
        self.lost: list[LineAnswer] = []

    def send(self, message: object, sender: object) -> None:
        self.sent.append((message, sender))

    def answers(self) -> list[LineAnswer]:
        answers, self.lost = self.lost, []
        return answers


class DoorOf(ClusterGroupActor):
    """The process of the node n2; keeps what it says."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[tuple[object, object]] = []
        self._supervisor = SUPERVISOR
        self.line = Line()
        self._door = cast(
            "Any",
            SimpleNamespace(
                line=self.line,
                owner=None,
                store=SimpleNamespace(folder="folder of n2"),
                answers=AnswersAhead[LineAnswer](LogEnds()),
            ),
        )

    def send(self, to: object, message: object) -> None:
        self.said.append((to, message))

    def knows(self, owner: StoreOwner | None) -> None:
        cast("Any", self._door).owner = owner

    def hears(self, *answers: LineAnswer) -> None:
        self.line.lost += answers
        self.readable([0])


@pytest.fixture
def door() -> DoorOf:
    return DoorOf()


@pytest.mark.parametrize("owner", [None, claimed_by("n2")], ids=["nobody", "a former process here"])
def test_while_nobody_owns_the_group_a_sender_hears_that_nothing_was_sent(
    door: DoorOf, owner: StoreOwner | None
) -> None:
    door.knows(owner)
    door.receive(PUT, REST)
    assert (door.said, door.line.sent) == ([(REST, NOBODY)], [])


def test_a_sender_hears_whether_the_owner_may_have_what_it_did_not_answer(door: DoorOf) -> None:
    door.knows(claimed_by("n1"))
    door.receive(PUT, REST)
    assert (door.said, door.line.sent) == ([], [(PUT, REST)])
    door.hears(
        LineAnswer(REST, None, why="nobody listens", is_sent=False),
        LineAnswer(REST, None, why="it hung up"),
        LineAnswer(REST, None),
        LineAnswer(REST, CommandReply(Error.NONE, log_offset=0)),
    )
    lost = "the owner of the group did not answer"
    assert door.said == [
        (REST, Undecided(f"{lost}: nobody listens")),
        (REST, Undecided(f"{lost}: it hung up", is_sent=True)),
        (REST, CommandReply(Error.NONE, log_offset=0)),
    ]


def test_what_no_group_understands_is_refused_for_good(door: DoorOf) -> None:
    door.knows(claimed_by("n1"))
    door.receive("a word", REST)
    assert door.said == [(REST, Failure("a group does not understand str"))]
