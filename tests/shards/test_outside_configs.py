"""Groups of workers that have their configs elsewhere: the members say what is to run."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairlead.actors.classic.bytes.connect import decode_assignment, decode_metadata
from fairlead.actors.messages.classic import (
    ClassicHeartbeat,
    JoinGroupReply,
    SyncGroup,
    SyncGroupReply,
)
from fairlead.actors.messages.consumers import ConsumerGroupHeartbeat
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.groups import ConnectCall, DescribeGroup, HostCall, ListGroups
from fairlead.actors.messages.members import Heartbeat, HeartbeatReply, ReadConfigs
from fairlead.events.group import Group
from fairlead.events.model import GroupType, Resources, Why
from fairlead_tests.classic.workers import as_worker, told
from fairlead_tests.decider import resources
from fairlead_tests.shards.driver import ShardDriver, joining

CREW = "crew"
VERSION = 2
A, AB = resources("A A-0 A-1"), resources("A A-0 A-1 B B-0")


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[ShardDriver]:
    driver = ShardDriver(tmp_path)
    yield driver
    driver.close()


def ask(driver: ShardDriver, call: HostCall) -> Any:
    (reply,) = driver.asks(call)
    return reply


def group_of(driver: ShardDriver) -> Group:
    return driver.groups._groups[CREW].shard.group


def beat(
    driver: ShardDriver,
    member_id: str,
    epoch: int,
    owned: Resources | None = None,
    configs: ReadConfigs | None = None,
) -> HeartbeatReply:
    """Send a heartbeat of a client without an incarnation."""
    request = Heartbeat(CREW, member_id, epoch, configs=configs)
    if owned is not None:
        request = replace(request, owned=tuple(sorted(owned)))
    if epoch == 0:
        url = f"http://{member_id}/"
        request = replace(
            request, url=url, rebalance_timeout_ms=60_000, server_assignor="uniform", owned=()
        )
    reply = ask(driver, ConnectCall(request))
    assert isinstance(reply, HeartbeatReply)
    return reply


def settle(driver: ShardDriver, **epochs: int) -> dict[str, Resources]:
    """Let members beat until all have their share; return what each runs."""
    runs = {each: frozenset(group_of(driver).members[each].current.assigned) for each in epochs}
    for _ in range(6):
        for each, epoch in [*epochs.items()]:
            reply = beat(driver, each, epoch, runs[each])
            assert reply.error is Error.NONE, reply
            epochs[each] = reply.member_epoch
            if reply.assignment is not None:
                runs[each] = reply.assignment
    return runs


def test_a_member_says_what_is_to_run_and_the_group_shares_it_out(driver: ShardDriver) -> None:
    joined = beat(driver, "m1", 0, configs=ReadConfigs(A, 5))
    assert (joined.error, joined.assignment, joined.config_offset) == (Error.NONE, A, 5)
    second = beat(driver, "m2", 0)
    assert (second.assignment, second.config_offset) == (frozenset(), 5)
    runs = settle(driver, m1=1, m2=second.member_epoch)
    assert runs["m1"] | runs["m2"] == A
    assert all(runs.values())
    assert not runs["m1"] & runs["m2"]


def test_the_group_follows_whoever_has_read_further(driver: ShardDriver) -> None:
    beat(driver, "m1", 0, configs=ReadConfigs(A, 5))
    epoch = group_of(driver).group_epoch
    beat(driver, "m1", 1, A, ReadConfigs(AB, 5))
    beat(driver, "m1", 1, A, ReadConfigs(AB, 4))
    assert group_of(driver).configured == A, "it is not read further"
    assert group_of(driver).group_epoch == epoch
    told_more = beat(driver, "m1", 1, A, ReadConfigs(AB, 6))
    assert (told_more.assignment, told_more.config_offset) == (AB, 6)
    assert group_of(driver).bump is not None
    assert group_of(driver).bump.cause == (Why.CONNECTOR_ADDED, "B")  # type: ignore[union-attr]
    same = beat(driver, "m1", told_more.member_epoch, AB, ReadConfigs(AB, 9))
    assert same.member_epoch == told_more.member_epoch, "nothing else is to run"
    assert group_of(driver).config_offset == 9
    less = beat(driver, "m1", same.member_epoch, AB, ReadConfigs(A, 10))
    assert less.assignment == A
    assert settle(driver, m1=less.member_epoch) == {"m1": A}


def test_what_is_to_run_outlives_the_process_and_the_members(driver: ShardDriver) -> None:
    joined = beat(driver, "m1", 0, configs=ReadConfigs(AB, 7))
    driver.close()
    driver.open()
    assert (group_of(driver).configured, group_of(driver).config_offset) == (AB, 7)
    beat(driver, "m1", -1, frozenset())
    again = beat(driver, "m2", 0)
    assert (again.assignment, again.config_offset) == (AB, 7)
    assert again.member_epoch > joined.member_epoch


def test_an_empty_connect_group_stays_one_over_a_restart(driver: ShardDriver) -> None:
    beat(driver, "m1", 0, configs=ReadConfigs(A, 5))
    beat(driver, "m1", -1, frozenset())
    driver.close()
    driver.open()
    (listed,) = ask(driver, ListGroups()).groups
    assert (listed.group_id, listed.group_type, listed.state) == (CREW, "connect", "Empty")
    assert beat(driver, "m2", 0).assignment == A


def test_a_connect_group_is_described_in_the_bytes_of_connect(driver: ShardDriver) -> None:
    beat(driver, "m1", 0, configs=ReadConfigs(A, 5))
    described = ask(driver, DescribeGroup(CREW))
    assert (described.error, described.state) == (Error.NONE, "Stable")
    assert (described.protocol_type, described.protocol) == ("connect", "sessioned")
    (member,) = described.members
    assert member.member_id == "m1"
    assert {*decode_assignment(member.assignment, VERSION).assigned} == A
    metadata = decode_metadata(member.protocols[0].metadata, VERSION)
    assert (metadata.url, metadata.config_offset) == ("http://m1/", 5)


def test_a_member_that_runs_more_than_its_bytes_hold_is_described_without(
    driver: ShardDriver,
) -> None:
    many = resources(" ".join(f"{'c' * 200}{number}" for number in range(6_000)))
    assert beat(driver, "m1", 0, configs=ReadConfigs(many, 5)).assignment == many
    (member,) = ask(driver, DescribeGroup(CREW)).members
    assert member.assignment == b""


@pytest.mark.parametrize(
    "configured",
    [
        resources("A-3") | {next(iter(resources("B")))._replace(task=-2)},
        frozenset({next(iter(resources("B")))._replace(connector="")}),
        frozenset({next(iter(resources("B")))._replace(connector="b" * 250)}),
    ],
    ids=["a task below 0", "no name", "a long name"],
)
def test_configs_that_no_log_takes_are_refused(driver: ShardDriver, configured: Resources) -> None:
    beat(driver, "m1", 0, configs=ReadConfigs(A, 5))
    reply = beat(driver, "m1", 1, A, ReadConfigs(configured, 6))
    assert reply.error is Error.INVALID_REQUEST
    assert "Configured" in reply.message
    assert group_of(driver).configured == A


def test_a_late_copy_is_given_up_and_a_heartbeat_without_a_coordinator_is_taken(
    driver: ShardDriver,
) -> None:
    join = Heartbeat(CREW, "m1", 0, "p", 2, rebalance_timeout_ms=9_000, server_assignor="uniform")
    assert ask(driver, ConnectCall(replace(join, owned=()))).error is Error.NONE
    assert driver.groups.take_given_up() == []
    assert driver.asks(ConnectCall(Heartbeat(CREW, "m1", 1, "p", 2))) == []
    ((host, _),) = driver.groups.take_given_up()
    assert host == 1
    assert ask(driver, ConnectCall(Heartbeat(CREW, "m1", 1, "p", 3))).error is Error.NONE


def test_a_group_of_consumers_is_no_connect_group(driver: ShardDriver) -> None:
    call = ConsumerGroupHeartbeat(CREW, "c", 0, None, None, 20_000, ("t",), topic_partitions={})
    ask(driver, call)
    reply = beat(driver, "m1", 0)
    assert reply.error is Error.GROUP_ID_NOT_FOUND
    assert group_of(driver).members.keys() == {"c"}


# -- beside classic workers


class StockWorker:
    """A classic worker, with what a leader of Connect would assign."""

    def __init__(self, driver: ShardDriver, url: str, member_id: str = "") -> None:
        self.driver, self.url, self.member_id = driver, url, member_id
        self.generation = -1
        self.runs: Resources = frozenset()

    def joins(self, config_offset: int = 1) -> JoinGroupReply:
        said = as_worker(self.url, *map(str, sorted(self.runs)), config_offset=config_offset)
        call = replace(joining(CREW, self.member_id), **said)  # type: ignore[arg-type]
        (reply,) = [each for each in self.driver.asks(call) if isinstance(each, JoinGroupReply)]
        if reply.error is Error.NONE:
            self.member_id, self.generation = reply.member_id, reply.generation
        return reply

    def syncs(self, assigned: Sequence[str] | None = None, **more: Any) -> SyncGroupReply:
        given = {} if assigned is None else {self.member_id: told(assigned, (), **more)}
        call = SyncGroup(CREW, self.member_id, self.generation, assignments=given)
        reply = ask(self.driver, call)
        assert isinstance(reply, SyncGroupReply)
        if reply.error is Error.NONE:
            decoded = decode_assignment(reply.assignment, VERSION)
            self.runs = (self.runs - {*decoded.revoked}) | {*decoded.assigned}
        return reply

    def beats(self) -> Error:
        error: Error = ask(
            self.driver, ClassicHeartbeat(CREW, self.member_id, self.generation)
        ).error
        return error


def names(found: Resources) -> list[str]:
    return sorted(map(str, found))


def upgraded(driver: ShardDriver) -> StockWorker:
    """Return a worker that leads a classic group with A, to which a modern member has come."""
    worker = StockWorker(driver, "http://old/")
    worker.joins()
    worker.syncs(names(A))
    assert worker.runs == A
    joined = beat(driver, "m1", 0)
    assert (joined.error, joined.assignment) == (Error.NONE, frozenset())
    return worker


def asked(driver: ShardDriver, config_offset: int = 4) -> StockWorker:
    """Return such a worker, which has read its configs and is asked to lead a round of its own."""
    worker = upgraded(driver)
    for _ in range(4):
        assert worker.beats() is Error.REBALANCE_IN_PROGRESS
        if worker.joins(config_offset).leader:
            return worker
        worker.syncs()
    raise AssertionError("it is not asked")


def epoch_of(driver: ShardDriver) -> int:
    return group_of(driver).group_epoch


def test_an_upgrade_begins_with_what_the_classic_members_hold(driver: ShardDriver) -> None:
    upgraded(driver)
    group = group_of(driver)
    assert group.type is GroupType.CONNECT
    assert (group.configured, group.config_offset) == (A, -1)


def test_the_classic_leader_says_what_is_to_run_in_a_round_of_its_own(driver: ShardDriver) -> None:
    worker = asked(driver)
    joined, before = worker.joins(config_offset=4), worker.generation
    assert (joined.leader, joined.generation) == (worker.member_id, before)
    (alone,) = joined.members
    metadata = decode_metadata(alone.metadata, VERSION)
    assert (metadata.allocation, metadata.config_offset) == (None, 4)
    assert worker.syncs(names(AB), config_offset=4).error is Error.REBALANCE_IN_PROGRESS
    assert (group_of(driver).configured, group_of(driver).config_offset) == (AB, 4)
    modern = beat(driver, "m1", 2, frozenset(group_of(driver).members["m1"].current.assigned))
    for _ in range(8):
        if worker.beats() is Error.REBALANCE_IN_PROGRESS:
            assert worker.joins(config_offset=4).leader == ""
            worker.syncs()
        runs = frozenset(group_of(driver).members["m1"].current.assigned)
        modern = beat(driver, "m1", modern.member_epoch, runs)
    held = frozenset(group_of(driver).members["m1"].current.assigned)
    assert worker.generation > before
    assert worker.runs | held == AB
    assert all((worker.runs, held))
    assert not worker.runs & held
    assert worker.beats() is Error.NONE


@pytest.mark.parametrize("said", [{"delay_ms": 60_000}, {"error": 1}], ids=["a delay", "an error"])
def test_what_is_left_for_later_says_nothing_and_is_asked_again(
    driver: ShardDriver, said: dict[str, int]
) -> None:
    worker = asked(driver)
    before = epoch_of(driver)
    assert worker.syncs([], config_offset=4, **said).error is Error.REBALANCE_IN_PROGRESS
    assert (group_of(driver).configured, group_of(driver).config_offset) == (A, -1)
    assert epoch_of(driver) == before + 1, "it completes another generation in between"
    assert worker.joins(config_offset=4).leader == ""
    worker.syncs()
    assert worker.beats() is Error.REBALANCE_IN_PROGRESS
    assert worker.joins(config_offset=4).leader == worker.member_id
    worker.syncs(names(AB), config_offset=4)
    assert (group_of(driver).configured, group_of(driver).config_offset) == (AB, 4)


def test_the_same_work_read_further_raises_the_epoch_once(driver: ShardDriver) -> None:
    worker = asked(driver)
    before = epoch_of(driver)
    worker.syncs(names(A), config_offset=4)
    assert (epoch_of(driver), group_of(driver).config_offset) == (before + 1, 4)
    for _ in range(3):
        if worker.beats() is Error.REBALANCE_IN_PROGRESS:
            assert worker.joins(config_offset=4).leader == ""
            worker.syncs()
    assert worker.beats() is Error.NONE
    assert epoch_of(driver) == before + 1


def test_only_the_classic_leader_is_asked_and_listened_to(driver: ShardDriver) -> None:
    first = upgraded(driver)
    second = StockWorker(driver, "http://new/")
    second.joins(config_offset=4)
    leader, other = sorted((first, second), key=lambda each: each.member_id)
    for _ in range(4):
        other.joins(config_offset=4)
        said = other.syncs(names(AB), config_offset=9)
        assert said.error in {Error.NONE, Error.REBALANCE_IN_PROGRESS}
        leader.joins()
        leader.syncs()
    assert group_of(driver).configured == A
    assert other.joins(config_offset=4).leader == ""
    assert leader.joins(config_offset=4).leader == leader.member_id


def test_bytes_of_a_leader_that_nobody_reads_change_nothing(driver: ShardDriver) -> None:
    worker = asked(driver)
    before = epoch_of(driver)
    for data in (b"\0", told(["b" * 300], config_offset=4)):
        given = {worker.member_id: data}
        call = SyncGroup(CREW, worker.member_id, worker.generation, assignments=given)
        assert ask(driver, call).error is Error.INCONSISTENT_GROUP_PROTOCOL
    assert (group_of(driver).configured, epoch_of(driver)) == (A, before)


def test_after_a_downgrade_the_classic_leader_assigns(driver: ShardDriver) -> None:
    worker = asked(driver)
    worker.syncs(names(AB), config_offset=4)
    beat(driver, "m1", -1, frozenset())
    assert group_of(driver).type is GroupType.CLASSIC
    joined = worker.joins(config_offset=4)
    assert joined.leader == worker.member_id
    assert joined.generation > 0
