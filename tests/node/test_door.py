"""What a group's process answers while another node owns the group, or none."""
# pyright: basic

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from thespian.actors import ActorAddress

from fairlead.actors.group.group_shard import GroupShard
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.commands import (
    CommandReply,
    CopiesView,
    NodeHeartbeat,
    RequestedCommand,
)
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.orders import EndMember, PutConnector
from fairlead.actors.shards import host_actor
from fairlead.actors.shards.host_actor import EXIT_LOG, GroupOpened, OpenGroup
from fairlead.actors.timing import Now
from fairlead.actors.transport.actor import Failure
from fairlead.actors.transport.ports import HostPort
from fairlead.events.log.errors import LogError
from fairlead.events.records import OwnerResigned
from fairlead.events.stores.opening import StoreSpec
from fairlead.events.stores.port import Claimant, StoreAwayError, StoreOwner
from fairlead.runtime.cluster.kafka_security import NODES_UNSET
from fairlead.runtime.cluster.messages import (
    DescribeOwnership,
    GroupGivenUp,
    OwnerAt,
    OwnershipView,
    Undecided,
)
from fairlead.runtime.node.door.actor import BeatToOwner, ClusterGroupActor, Door
from fairlead.runtime.node.door.claims import ClaimRule, RoleTracker
from fairlead.runtime.node.door.connection import LineAnswer
from fairlead.runtime.node.door.delivery import AnswersAhead, LogEnds
from fairlead.runtime.node.door.following import CopiesMoved, OwnerSeen, StoreLost
from fairlead.runtime.node.door.line import OwnerLine
from fairlead.runtime.node.door.line_opening import LineOpening
from fairlead_tests.log.memory_store import MemoryEngine, MemoryStore

PUT = RequestedCommand(PutConnector("connect", "a", {"name": "a"}), "r1")
REST, SUPERVISOR = ActorAddress("rest"), ActorAddress("supervisor")
NOBODY = Undecided("no node owns the group at this moment: ask again")


class Store:
    """Logs of an owner; their store is away, or answers."""

    is_stored, is_away = True, False
    control = SimpleNamespace(epoch=7)

    def beat(self) -> None:
        if self.is_away:
            raise StoreAwayError("no answer")


def claimed_by(node: str, epoch: int = 7) -> StoreOwner:
    return StoreOwner(epoch, Claimant(node, f"{node}:9094", f"folder of {node}"), 0.1)


class Line:
    """Keeps what is sent to the owner; `lost` ends it all."""

    carries = staticmethod(OwnerLine.carries)

    def __init__(self) -> None:
        self.sent: list[tuple[object, object]] = []
        self.lost: list[LineAnswer] = []

    def move(self, owner: HostPort | None) -> None:
        """There is one line."""

    def send(self, message: object, sender: object) -> None:
        self.sent.append((message, sender))

    def answers(self) -> list[LineAnswer]:
        answers, self.lost = self.lost, []
        return answers


class DoorHere(Door):
    """The door of the node n2, without copies and a store."""

    def __init__(self, line: Line, actor: ClusterGroupActor) -> None:
        self.order = OpenGroup("connect", Path(), GroupSettings())
        self.store = StoreSpec("postgres", "fairlead", node="n2", folder="folder of n2")
        self.lines = LineOpening(None, Path())
        self.line = cast("Any", line)
        self.copies = cast("Any", SimpleNamespace(control=SimpleNamespace(end=0)))
        self.role = RoleTracker(ClaimRule("n2", "folder of n2", 3.0))
        self.owner = None
        self.answers = AnswersAhead[LineAnswer](LogEnds())
        self._actor = actor
        self._following = cast("Any", SimpleNamespace(flaw=""))

    def ends(self) -> LogEnds:
        return LogEnds()

    def describe_copies(self) -> CopiesView:
        return CopiesView(0, 0, None)

    def _last_record(self) -> tuple[None, int]:
        return None, 0


class Process(ClusterGroupActor):
    """The process of the group at n2; keeps what it says."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[tuple[object, object]] = []
        self._supervisor = SUPERVISOR
        self.line = Line()
        self._door = DoorHere(self.line, self)

    def send(self, to: object, message: object) -> None:
        self.said.append((to, message))

    def wake_after(self, seconds: float, payload: object = None) -> None:
        """Never wake."""

    def hears(self, *answers: LineAnswer) -> None:
        self.line.lost += answers
        self.readable([0])

    def sees(self, owner: StoreOwner | None) -> None:
        self.receive(OwnerSeen(owner, is_whole=False), None)

    def tells_supervisor(self) -> list[object]:
        """Return what it has told the supervisor since the last call, but for clients' places."""
        said, self.said = self.said, []
        return [each for to, each in said if to is SUPERVISOR and not isinstance(each, OwnerAt)]


@pytest.fixture
def process() -> Process:
    return Process()


@pytest.mark.parametrize("owner", [None, claimed_by("n2")], ids=["nobody", "a former process here"])
def test_while_nobody_owns_the_group_a_sender_hears_that_nothing_was_sent(
    process: Process, owner: StoreOwner | None
) -> None:
    process.sees(owner)
    process.said.clear()
    process.receive(PUT, REST)
    assert (process.said, process.line.sent) == ([(REST, NOBODY)], [])


def test_a_sender_hears_whether_the_owner_may_have_what_it_did_not_answer(process: Process) -> None:
    process.sees(claimed_by("n1"))
    process.said.clear()
    process.receive(PUT, REST)
    assert (process.said, process.line.sent) == ([], [(PUT, REST)])
    process.hears(
        LineAnswer(REST, None, why="nobody listens", is_sent=False),
        LineAnswer(REST, None, why="it hung up"),
        LineAnswer(REST, None),
        LineAnswer(REST, CommandReply(Error.NONE, log_offset=0)),
    )
    lost = "the owner of the group did not answer"
    assert process.said == [
        (REST, Undecided(f"{lost}: nobody listens")),
        (REST, Undecided(f"{lost}: it hung up", is_sent=True)),
        (REST, CommandReply(Error.NONE, log_offset=0)),
    ]


def test_a_node_without_a_line_says_that_and_not_that_there_is_no_owner(process: Process) -> None:
    process.sees(claimed_by("n1"))
    process.said.clear()
    cast("Any", process)._door.line = None
    process.receive(PUT, REST)
    why = f"this node has no line to n1 at n1:9094, which owns the group: {NODES_UNSET}"
    assert process.said == [(REST, Undecided(why))]


@pytest.mark.parametrize("is_reached", [False, True])
def test_a_door_claims_nothing_of_another_node_unless_others_reach_this_one(
    process: Process, is_reached: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StoreSpec, "open", lambda *_: MemoryStore(MemoryEngine()))
    monkeypatch.setattr(process, "post", lambda _: None, raising=False)
    store = StoreSpec("postgres", "fairlead", node="n2", folder="folder of n2")
    order = OpenGroup("connect", tmp_path, GroupSettings(), store=store)
    lines = SimpleNamespace(open=lambda: None, is_set=is_reached)
    door = Door(order, store, cast("Any", lines), process)
    silent = claimed_by("n1")._replace(silent_seconds=60.0)
    claims = door.take_sight(OwnerSeen(silent, is_whole=True))
    door.stop_following()
    door.copies.close()
    assert (claims is not None) is is_reached


def test_a_line_that_could_not_be_opened_is_tried_with_each_heartbeat(process: Process) -> None:
    door = cast("Any", process)._door
    lines = [process.line, None]
    door.line, door.lines = None, SimpleNamespace(open=lines.pop)
    process._store = replace(door.store, cluster="id of the key")
    process.sees(claimed_by("n1"))
    process.woken(BeatToOwner())
    assert (door.line, process.line.sent) == (None, [])
    process.woken(BeatToOwner())
    (sent,) = (each for each, _ in process.line.sent)
    assert isinstance(sent, NodeHeartbeat)
    assert sent.node.cluster == "id of the key"


def test_who_is_refused_is_told_that_the_store_is_not_followed(process: Process) -> None:
    assert process._door is not None
    process._door._following = cast("Any", SimpleNamespace(flaw="PostgreSQL: no route to host"))
    process.receive(PUT, REST)
    process.receive(DescribeOwnership("connect"), REST)
    why = f"{NOBODY.reason}; this node does not follow the store: PostgreSQL: no route to host"
    (_, refused), (_, view) = process.said
    assert refused == Undecided(why)
    assert process.opened(process._door.order).flaw == "PostgreSQL: no route to host"
    assert isinstance(view, OwnershipView)
    assert view.flaw == "PostgreSQL: no route to host"


def test_an_error_of_a_log_is_told_in_its_words_alone(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes: list[int] = []
    monkeypatch.setattr(process, "die", codes.append)
    process.failed(LogError("log.store.url cannot be read"), PUT, REST)
    assert (process.said, codes) == ([(REST, Failure("log.store.url cannot be read"))], [EXIT_LOG])


def test_the_supervisor_is_told_why_the_process_of_a_group_that_was_given_up_ends(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    resigned = OwnerResigned(7, "n1", to="n2", time_ms=1)
    shard = GroupShard.__new__(GroupShard)
    monkeypatch.setattr(GroupShard, "group", SimpleNamespace(ownership=resigned), raising=False)
    process._door, process._group_host, process._logs = None, shard, cast("Any", Store())
    process._look_for_resignation()
    why = "this node has given the group up, to n2"
    assert process.said == [(SUPERVISOR, GroupGivenUp(why))]


def test_what_no_group_understands_is_refused_for_good(process: Process) -> None:
    process.sees(claimed_by("n1"))
    process.said.clear()
    process.receive("a word", REST)
    assert process.said == [(REST, Failure("a group does not understand str"))]


def test_what_the_supervisor_reports_is_answered_as_undecided_as_well(process: Process) -> None:
    report = EndMember("connect", "W1", "i1")
    process.receive(report, SUPERVISOR)
    process.sees(claimed_by("n1"))
    process.said.clear()
    process.hears(LineAnswer(SUPERVISOR, None, why="it hung up"))
    process.receive(report, SUPERVISOR)
    lost = Undecided("the owner of the group did not answer: it hung up", is_sent=True)
    assert (process.tells_supervisor(), process.line.sent) == ([lost], [(report, SUPERVISOR)])


@pytest.mark.parametrize("news", [StoreLost(), CopiesMoved(), OwnerSeen(None, is_whole=False)])
def test_the_supervisor_hears_of_each_owner_also_of_the_first(
    process: Process, news: object
) -> None:
    is_open = GroupOpened("connect", 0, os.getpid(), is_owner=False)
    process.receive(news, None)
    assert process.tells_supervisor() == [is_open], "before it knows an owner"
    for epoch, told in ((7, [is_open]), (7, []), (8, [is_open])):
        process.sees(claimed_by("n1", epoch))
        assert process.tells_supervisor() == told


def test_an_owner_that_does_not_reach_the_store_owns_nothing_once_another_node_may_claim(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ms, store = 0, Store()
    monkeypatch.setattr(host_actor, "clocks", lambda: Now(0, now_ms))
    monkeypatch.setattr(process, "send_answers", lambda _: None)
    own = StoreSpec("postgres", "fairlead", node="n1", address="n1:9094", silence_seconds=3.0)
    process._door, process._store, process._logs = None, own, cast("Any", store)
    owns = OwnershipView(*("postgres", "n1", "n1:9094", ""), "n1", "n1:9094", owner_epoch=7)
    nobody = replace(owns, owner="", owner_address="", owner_epoch=0)

    def described() -> object:
        process._beat()
        process.receive(DescribeOwnership("connect"), REST)
        return process.said.pop()[1]

    now_ms += 750
    assert described() == owns
    store.is_away, now_ms = True, now_ms + 2_999
    assert described() == replace(owns, silent_ms=2_999)
    assert not process.said
    now_ms += 1
    assert described() == replace(nobody, silent_ms=3_000)
    why = "the store has not confirmed for 3.0 s that this node owns the group"
    assert process.said == [(SUPERVISOR, GroupGivenUp(why))]
    now_ms += 1
    described()
    assert len(process.said) == 1, "that is said once"
