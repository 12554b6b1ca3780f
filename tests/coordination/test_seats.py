"""Who has a seat, and what is refused because no log can hold it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fairlead.actors.group.coordinator import Coordinator
from fairlead.actors.group.work.ledger import OffsetLedger
from fairlead.actors.messages.commands import CommandReply, GroupCommand
from fairlead.actors.messages.computing import Install, InstallReply, Prepare
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.heartbeat import Heartbeat, HeartbeatReply
from fairlead.actors.messages.work import (
    CommitOffsets,
    CommitReply,
    DeleteConnector,
    PutConnector,
    PutTaskConfigs,
    ReportStatus,
    StatusUpdate,
)
from fairlead.events.group import token_of
from fairlead.events.model import (
    Advance,
    Commit,
    CommitId,
    Document,
    Manifest,
    RunState,
    Token,
)
from fairlead_tests.coordination.office import HEARTBEAT_MS, REBALANCE_MS, SESSION_MS, Office, told
from fairlead_tests.decider import COOPERATIVE, resource

HALF = "caf\udce9"
"""A file's name that is no UTF-8, as Python reads it: a lone surrogate, which is not encodable."""
FOREIGN = Heartbeat(
    "connect", "", 0, rebalance_timeout_ms=REBALANCE_MS, assignors=COOPERATIVE, owned=()
)
MANIFEST = Manifest("/out", "_fairlead/staging/A-0", rows=1, bytes=1, files=1)


def token(office: Office, name: str) -> Token:
    """The token of what `m` runs."""
    found = token_of(office.group, "m", resource(name))
    assert found is not None
    return found


def running(office: Office) -> Office:
    """Bring `m` to where it runs connector A and its one task."""
    office.put("A")
    office.asks(office.joining("m"))
    office.compute("m")
    office.asks(office.joining("m"))
    office.asks(office.full("m", "A"))
    office.split("m", "A", 1)
    office.compute("m")
    office.asks(office.full("m", "A"))
    office.asks(office.full("m", "A A-0"))
    assert set(map(str, office.group.members["m"].current.assigned)) == {"A", "A-0"}
    return office


# -- seats


def test_a_held_join_does_not_bring_back_a_member_whose_session_expired(office: Office) -> None:
    office.put("A")
    office.asks(office.joining("m"))
    assert office.asks(office.joining("m")) == [], "held"
    assert office.passes(SESSION_MS + 1_000) == []
    assert office.group.members == {}
    assert office.passes(HEARTBEAT_MS) == []
    assert office.group.members == {}


def test_whoever_sits_after_a_session_expired_has_a_session_that_can_expire(
    office: Office,
) -> None:
    office.put("A")
    office.asks(office.joining("m"))
    office.asks(office.joining("m"))
    office.passes(SESSION_MS + 1_000)
    office.asks(office.joining("n"))
    for _ in range(2 * SESSION_MS // HEARTBEAT_MS):
        office.passes(HEARTBEAT_MS)
        office.asks(office.joining("n"))
    assert set(office.group.members) == {"n"}


def names(office: Office) -> Callable[[], str]:
    """Have the group name members that leave it to the group: n1, n2, and so on."""
    given = iter(f"n{number}" for number in range(1, 100))

    def name() -> str:
        return next(given)

    ledger = OffsetLedger(office.offsets)
    office.coordinator = Coordinator(office.group, office.settings, ledger, office.now_ms, name)
    return name


def joins(office: Office) -> HeartbeatReply:
    """Have a client without an id join; returns what it hears."""
    (said,) = office.asks(FOREIGN)
    assert isinstance(said.reply, HeartbeatReply)
    return said.reply


def test_a_client_without_an_id_is_given_one(office: Office) -> None:
    names(office)
    office.put("A")
    assert joins(office).member_id == "n1"
    assert set(office.group.members) == {"n1"}


def test_two_clients_without_an_id_do_not_share_a_seat(office: Office) -> None:
    names(office)
    office.put("A")
    office.put("B")
    assert joins(office).member_id == "n1"
    office.compute("n1")
    (held,) = office.asks(replace(FOREIGN, member_id="n1"))
    assert isinstance(held.reply, HeartbeatReply)
    assert set(map(str, held.reply.assignment or ())) == {"A", "B"}
    office.asks(FOREIGN)
    assert set(office.group.members) == {"n1", "n2"}
    assert set(office.group.members["n2"].current.assigned) == set()


# -- what no log can hold


def put_task_configs(office: Office) -> GroupCommand:
    """A split whose configs cannot be written down."""
    return PutTaskConfigs("connect", "m", "A", token(office, "A"), ({"file": HALF},))


def report_status(office: Office) -> GroupCommand:
    """A report whose reason cannot be written down."""
    update = StatusUpdate(resource("A-0"), token(office, "A-0"), RunState.FAILED, 1, HALF)
    return ReportStatus("connect", "m", (update,))


def put_connector(_: Office) -> GroupCommand:
    """An order by somebody whose name cannot be written down."""
    return PutConnector("connect", "B", {"x": "y"}, principal=HALF)


def delete_connector(_: Office) -> GroupCommand:
    """A deletion by somebody whose name cannot be written down."""
    return DeleteConnector("connect", "A", principal=HALF)


def beats_on(office: Office) -> None:
    """Assert that the group goes on: it takes a connector, computes, and grants it."""
    office.put("Z")
    office.compute("m")
    said = told(office.asks(office.full("m", "A A-0")))
    assert said["m"][0] == "NONE"
    assert resource("Z") in office.group.members["m"].current.assigned
    end = office.group.end
    assert office.control.end == end
    office.open()
    assert office.group.end == end


@pytest.mark.parametrize(
    "build",
    [put_task_configs, report_status, put_connector, delete_connector],
    ids=lambda build: build.__name__,
)
def test_a_command_that_no_log_can_hold_is_refused_and_changes_nothing(
    office: Office, build: Callable[[Office], GroupCommand]
) -> None:
    running(office)
    end, epoch = office.group.end, office.group.group_epoch
    (said,) = office.send(build(office))
    assert isinstance(said.reply, CommandReply)
    assert said.reply.error is Error.INVALID_REQUEST
    assert "cannot be written down" in said.reply.message
    assert (office.group.end, office.control.end, office.group.group_epoch) == (end, end, epoch)
    assert set(office.group.connectors) == {"A"}
    beats_on(office)


def test_half_a_character_in_the_words_of_a_failed_attempt_is_spelled_out(
    office: Office,
) -> None:
    running(office)
    office.put("B")
    epoch = office.group.members["m"].current.member_epoch
    office.send(Prepare("connect", "m", epoch))
    install = Install("connect", "m", epoch, office.group.group_epoch, None, f"boom {HALF}")
    assert office.send(install)[0].reply == InstallReply(Error.NONE)
    target = office.group.target
    assert (target.error, target.failures) == (ascii(f"boom {HALF}").strip("'"), 1)


@pytest.mark.parametrize("said_wrong", [{"url": f"http://{HALF}"}, {"incarnation": HALF}])
def test_a_heartbeat_that_no_log_can_hold_is_refused_and_changes_nothing(
    office: Office, said_wrong: dict[str, str]
) -> None:
    running(office)
    end = office.group.end
    joining = office.joining("x")
    request = replace(
        joining,
        url=said_wrong.get("url", joining.url),
        incarnation=said_wrong.get("incarnation", joining.incarnation),
    )
    (said,) = office.asks(request)
    assert isinstance(said.reply, HeartbeatReply)
    assert said.reply.error is Error.INVALID_REQUEST
    assert (office.group.end, set(office.group.members)) == (end, {"m"})
    beats_on(office)


def batch(office: Office, partition: Document, end: Document, number: int = 0) -> Commit:
    """A batch of A-0 that moves one partition's offset."""
    commit_id = CommitId("A", 0, token(office, "A-0"), number)
    return Commit(commit_id, (Advance(partition, None, end),), MANIFEST, 1)


def commits(office: Office, *batches: Commit, number: int = 0) -> CommitReply:
    """Have batches committed together."""
    (said,) = office.send(CommitOffsets("connect", "m", batches, number=number))
    assert isinstance(said.reply, CommitReply)
    return said.reply


@pytest.mark.parametrize(
    ("partition", "end"),
    [
        ({"file": 1 << 64}, {"n": 1}),
        ({"file": HALF}, {"n": 1}),
        ({"file": "x"}, {"n": 1 << 64}),
        ({"file": "x"}, {"name": HALF}),
    ],
    ids=["a great partition", "half a partition", "a great offset", "half an offset"],
)
def test_a_commit_that_no_log_can_hold_is_fenced_and_changes_nothing(
    office: Office, partition: Document, end: Document
) -> None:
    running(office)
    bad = batch(office, partition, end)
    reply = commits(office, bad, number=7)
    assert [(each.commit_id, each.error) for each in reply.verdicts] == [
        (bad.commit_id, Error.FENCED)
    ]
    assert (reply.number, office.offsets.end) == (7, 0)
    good = commits(office, batch(office, {"file": "x"}, {"n": 1}), number=8)
    assert ([each.error for each in good.verdicts], good.number) == ([Error.NONE], 8)


def test_a_deletion_waits_for_a_commit_that_is_accepted_in_the_same_flush(office: Office) -> None:
    running(office)
    last = batch(office, {"file": "x"}, {"n": 1})
    office.send(DeleteConnector("connect", "A"))
    office.compute("m")
    office.asks(office.full("m", "A A-0"))
    office.coordinator.take(CommitOffsets("connect", "m", (last,)), "m", office.now)
    office.coordinator.take(office.full("m", ""), "m", office.now)
    office.coordinator.pass_time(office.now)
    assert set(office.group.connectors) == {"A"}, "its config is needed to publish"
    assert office.offsets.end == 0
    office.flush()
    assert office.offsets.end > 0, "the commit counts"
    published = CommitOffsets("connect", "m", (), (last.commit_id,))
    office.coordinator.take(published, "m", office.now)
    office.coordinator.pass_time(office.now)
    assert "A" in office.group.connectors, "the tombstone is not durable yet"
