"""Who has a seat, and what is refused because no log can hold it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from fairlead.actors.group.group_shard import CoordinatorProcess, GroupShard
from fairlead.actors.group.kind import WORKERS
from fairlead.actors.group.members.commit import OffsetLedger
from fairlead.actors.messages.commands import CommandReply, GroupCommand
from fairlead.actors.messages.computing import Install, InstallReply, Prepare
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import (
    CommitOffsets,
    CommitReply,
    Heartbeat,
    HeartbeatReply,
    PutTaskConfigs,
    ReportStatus,
    StatusUpdate,
)
from fairlead.actors.messages.orders import DeleteConnector, PutConnector
from fairlead.events.commits import Advance, Commit, CommitId, Document, Manifest
from fairlead.events.group import token_of
from fairlead.events.model import RunState, Token
from fairlead_tests.coordination.driver import (
    HEARTBEAT_MS,
    REBALANCE_MS,
    SESSION_MS,
    CoordinatorDriver,
    told,
)
from fairlead_tests.decider import COOPERATIVE, resource

HALF = "caf\udce9"
"""A file's name that is no UTF-8, as Python reads it: a lone surrogate, which is not encodable."""
FOREIGN = Heartbeat(
    "connect", "", 0, rebalance_timeout_ms=REBALANCE_MS, assignors=COOPERATIVE, owned=()
)
MANIFEST = Manifest("/out", "_fairlead/staging/A-0", rows=1, bytes=1, files=1)


def token(driver: CoordinatorDriver, name: str) -> Token:
    """The token of what `m` runs."""
    found = token_of(driver.group, "m", resource(name))
    assert found is not None
    return found


def running(driver: CoordinatorDriver) -> CoordinatorDriver:
    """Bring `m` to where it runs connector A and its one task."""
    driver.put("A")
    driver.asks(driver.joining("m"))
    driver.compute("m")
    driver.asks(driver.joining("m"))
    driver.asks(driver.full("m", "A"))
    driver.split("m", "A", 1)
    driver.compute("m")
    driver.asks(driver.full("m", "A"))
    driver.asks(driver.full("m", "A A-0"))
    assert set(map(str, driver.group.members["m"].current.assigned)) == {"A", "A-0"}
    return driver


# -- seats


def test_a_held_join_does_not_bring_back_a_member_whose_session_expired(
    driver: CoordinatorDriver,
) -> None:
    driver.put("A")
    driver.asks(driver.joining("m"))
    assert driver.asks(driver.joining("m")) == [], "held"
    assert driver.passes(SESSION_MS + 1_000) == []
    assert driver.group.members == {}
    assert driver.passes(HEARTBEAT_MS) == []
    assert driver.group.members == {}


def test_whoever_sits_after_a_session_expired_has_a_session_that_can_expire(
    driver: CoordinatorDriver,
) -> None:
    driver.put("A")
    driver.asks(driver.joining("m"))
    driver.asks(driver.joining("m"))
    driver.passes(SESSION_MS + 1_000)
    driver.asks(driver.joining("n"))
    for _ in range(2 * SESSION_MS // HEARTBEAT_MS):
        driver.passes(HEARTBEAT_MS)
        driver.asks(driver.joining("n"))
    assert set(driver.group.members) == {"n"}


def names(driver: CoordinatorDriver) -> Callable[[], str]:
    """Have the group name members that leave it to the group: n1, n2, and so on."""
    given = iter(f"n{number}" for number in range(1, 100))

    def name() -> str:
        return next(given)

    ledger = OffsetLedger(driver.offsets)
    driver.coordinator = GroupShard(
        driver.group,
        WORKERS,
        driver.settings,
        ledger,
        driver.now_ms,
        CoordinatorProcess(new_id=name),
    )
    return name


def joins(driver: CoordinatorDriver) -> HeartbeatReply:
    """Have a client without an id join; returns what it hears."""
    (said,) = driver.asks(FOREIGN)
    assert isinstance(said.reply, HeartbeatReply)
    return said.reply


def test_a_client_without_an_id_is_given_one(driver: CoordinatorDriver) -> None:
    names(driver)
    driver.put("A")
    assert joins(driver).member_id == "n1"
    assert set(driver.group.members) == {"n1"}


def test_two_clients_without_an_id_do_not_share_a_seat(driver: CoordinatorDriver) -> None:
    names(driver)
    driver.put("A")
    driver.put("B")
    assert joins(driver).member_id == "n1"
    driver.compute("n1")
    (held,) = driver.asks(replace(FOREIGN, member_id="n1"))
    assert isinstance(held.reply, HeartbeatReply)
    assert set(map(str, held.reply.assignment or ())) == {"A", "B"}
    driver.asks(FOREIGN)
    assert set(driver.group.members) == {"n1", "n2"}
    assert set(driver.group.members["n2"].current.assigned) == set()


# -- what no log can hold


def put_task_configs(driver: CoordinatorDriver) -> GroupCommand:
    """A split whose configs cannot be written down."""
    return PutTaskConfigs("connect", "m", "A", token(driver, "A"), ({"file": HALF},))


def report_status(driver: CoordinatorDriver) -> GroupCommand:
    """A report whose reason cannot be written down."""
    update = StatusUpdate(resource("A-0"), token(driver, "A-0"), RunState.FAILED, 1, HALF)
    return ReportStatus("connect", "m", (update,))


def put_connector(_: CoordinatorDriver) -> GroupCommand:
    """An order by somebody whose name cannot be written down."""
    return PutConnector("connect", "B", {"x": "y"}, principal=HALF)


def delete_connector(_: CoordinatorDriver) -> GroupCommand:
    """A deletion by somebody whose name cannot be written down."""
    return DeleteConnector("connect", "A", principal=HALF)


def beats_on(driver: CoordinatorDriver) -> None:
    """Assert that the group goes on: it takes a connector, computes, and grants it."""
    driver.put("Z")
    driver.compute("m")
    said = told(driver.asks(driver.full("m", "A A-0")))
    assert said["m"][0] == "NONE"
    assert resource("Z") in driver.group.members["m"].current.assigned
    end = driver.group.end
    assert driver.control.end == end
    driver.open()
    assert driver.group.end == end


@pytest.mark.parametrize(
    "build",
    [put_task_configs, report_status, put_connector, delete_connector],
    ids=lambda build: build.__name__,
)
def test_a_command_that_no_log_can_hold_is_refused_and_changes_nothing(
    driver: CoordinatorDriver, build: Callable[[CoordinatorDriver], GroupCommand]
) -> None:
    running(driver)
    end, epoch = driver.group.end, driver.group.group_epoch
    (said,) = driver.send(build(driver))
    assert isinstance(said.reply, CommandReply)
    assert said.reply.error is Error.INVALID_REQUEST
    assert "cannot be written down" in said.reply.message
    assert (driver.group.end, driver.control.end, driver.group.group_epoch) == (end, end, epoch)
    assert set(driver.group.connectors) == {"A"}
    beats_on(driver)


def test_half_a_character_in_the_words_of_a_failed_attempt_is_spelled_out(
    driver: CoordinatorDriver,
) -> None:
    running(driver)
    driver.put("B")
    epoch = driver.group.members["m"].current.member_epoch
    driver.send(Prepare("connect", "m", epoch))
    install = Install("connect", "m", epoch, driver.group.group_epoch, None, f"boom {HALF}")
    assert driver.send(install)[0].reply == InstallReply(Error.NONE)
    target = driver.group.target
    assert (target.error, target.failures) == (ascii(f"boom {HALF}").strip("'"), 1)


@pytest.mark.parametrize("said_wrong", [{"url": f"http://{HALF}"}, {"incarnation": HALF}])
def test_a_heartbeat_that_no_log_can_hold_is_refused_and_changes_nothing(
    driver: CoordinatorDriver, said_wrong: dict[str, str]
) -> None:
    running(driver)
    end = driver.group.end
    joining = driver.joining("x")
    request = replace(
        joining,
        url=said_wrong.get("url", joining.url),
        incarnation=said_wrong.get("incarnation", joining.incarnation),
    )
    (said,) = driver.asks(request)
    assert isinstance(said.reply, HeartbeatReply)
    assert said.reply.error is Error.INVALID_REQUEST
    assert (driver.group.end, set(driver.group.members)) == (end, {"m"})
    beats_on(driver)


def batch(driver: CoordinatorDriver, partition: Document, end: Document, number: int = 0) -> Commit:
    """A batch of A-0 that moves one partition's offset."""
    commit_id = CommitId("A", 0, token(driver, "A-0"), number)
    return Commit(commit_id, (Advance(partition, None, end),), MANIFEST, 1)


def commits(driver: CoordinatorDriver, *batches: Commit, number: int = 0) -> CommitReply:
    """Have batches committed together."""
    (said,) = driver.send(CommitOffsets("connect", "m", batches, number=number))
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
    driver: CoordinatorDriver, partition: Document, end: Document
) -> None:
    running(driver)
    bad = batch(driver, partition, end)
    reply = commits(driver, bad, number=7)
    assert [(each.commit_id, each.error) for each in reply.verdicts] == [
        (bad.commit_id, Error.FENCED)
    ]
    assert (reply.number, driver.offsets.end) == (7, 0)
    good = commits(driver, batch(driver, {"file": "x"}, {"n": 1}), number=8)
    assert ([each.error for each in good.verdicts], good.number) == ([Error.NONE], 8)


def test_a_deletion_waits_for_a_commit_that_is_accepted_in_the_same_flush(
    driver: CoordinatorDriver,
) -> None:
    running(driver)
    last = batch(driver, {"file": "x"}, {"n": 1})
    driver.send(DeleteConnector("connect", "A"))
    driver.compute("m")
    driver.asks(driver.full("m", "A A-0"))
    driver.coordinator.submit(CommitOffsets("connect", "m", (last,)), "m", driver.now)
    driver.coordinator.submit(driver.full("m", ""), "m", driver.now)
    driver.coordinator.run_timers(driver.now)
    assert set(driver.group.connectors) == {"A"}, "its config is needed to publish"
    assert driver.offsets.end == 0
    driver.flush()
    assert driver.offsets.end > 0, "the commit counts"
    published = CommitOffsets("connect", "m", (), (last.commit_id,))
    driver.coordinator.submit(published, "m", driver.now)
    driver.coordinator.run_timers(driver.now)
    assert "A" in driver.group.connectors, "the tombstone is not durable yet"
