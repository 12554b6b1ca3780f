"""Classic members of a connect group, and conversion of groups, as the data's cases tell them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairlead.actors.messages.classic import JoinGroupReply, Leaver, SyncGroup, SyncGroupReply
from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.orders import ConfigureGroup
from fairlead.events.group import Member
from fairlead.events.log.space import RESERVE_BYTES, DiskSpace
from fairlead.events.model import (
    Cause,
    ClassicMetadata,
    GroupType,
    MemberState,
    Resource,
    Why,
)
from fairlead.events.records import (
    ClassicGroup,
    CurrentAssignment,
    GroupMetadata,
    MemberMetadata,
    Record,
    TargetAssignment,
    Tombstone,
)
from fairlead_tests.classic.driver import offers
from fairlead_tests.conformance.cases import Case
from fairlead_tests.conformance.played import PLAYS
from fairlead_tests.decider import resources
from fairlead_tests.translation.driver import (
    CLASSIC_REBALANCE_MS,
    CLASSIC_SESSION_MS,
    MixedDriver,
    given,
    held,
)

Play = Callable[[MixedDriver, Any], None]
M1, M2 = "A-0 A-1 A-2 B-0 B-1", "A-3 A-4 A-5 B-2"
GIVEN = Cause(Why.OPERATOR, "given")
WRITTEN: dict[tuple[str, str], Play] = {}


def plays(section: str, case_id: str) -> Callable[[Play], Play]:
    """Register a function that plays a case on an empty group."""

    def register(play: Play) -> Play:
        WRITTEN[section, case_id] = play
        PLAYS[section, case_id] = play  # type: ignore[assignment]
        return play

    return register


def play_translation(case: Case, driver: MixedDriver) -> None:
    """Play a case; one without a function fails with its name."""
    found = WRITTEN.get((case.section, case.case_id))
    assert found is not None, f"nobody plays {case.section} / {case.case_id}: {case.told}"
    found(driver, case.told.get("expect", case.told))


def set_up(
    driver: MixedDriver,
    classic: Mapping[str, str],
    modern: Mapping[str, str] = {},
    mode: str = "sessioned",
    **metadata: Any,
) -> None:
    """Write a connect group at epoch 10 with STABLE members that run this."""
    everything = {**classic, **modern}
    driver.configure(" ".join(everything.values()))
    records: list[Record] = []
    for member_id, runs in everything.items():
        call = driver.join_call(member_id, runs, mode)
        told = ClassicMetadata(call.protocols, call.protocols[0].name, call.protocols[0].name)
        session_ms = CLASSIC_SESSION_MS if member_id in classic else 0
        records.append(
            MemberMetadata(
                member_id,
                "" if member_id in classic else f"i-{member_id}",
                1,
                CLASSIC_REBALANCE_MS,
                server_assignor=None if member_id in classic else "uniform",
                url=f"http://{member_id}/",
                session_timeout_ms=session_ms,
                classic=told if member_id in classic else None,
                **metadata.get(member_id, {}),
            )
        )
    shares = {member_id: resources(runs) for member_id, runs in everything.items()}
    driver.write(*records, GroupMetadata(10, GIVEN, 0), TargetAssignment(10, shares, "uniform"))
    for member_id, share in shares.items():
        grants = dict.fromkeys(share, 10)
        driver.write(CurrentAssignment(member_id, 10, 9, MemberState.STABLE, grants, {}))
    driver.open()


def member(driver: MixedDriver, member_id: str) -> Member:
    return driver.group.members[member_id]


def at(driver: MixedDriver, member_id: str, **changes: Any) -> None:
    """Set the current assignment of a member."""
    driver.write(replace(member(driver, member_id).current, **changes))


def aims(driver: MixedDriver, **shares: str) -> None:
    """Set another target, of the next epoch."""
    epoch = driver.group.group_epoch + 1
    told = {**driver.group.target_of, **{each: resources(shares[each]) for each in shares}}
    driver.write(GroupMetadata(epoch, GIVEN, 0), TargetAssignment(epoch, told, "uniform"))


def syncs(driver: MixedDriver, member_id: str, runs: str = "", **told: Any) -> tuple[int, str, str]:
    """Let a member join and sync; return its generation, and the assigned and revoked resources."""
    reply = driver.joins(member_id, runs, **told)
    assert (reply.error, reply.leader, reply.members) == (Error.NONE, "", ())
    return (reply.generation, *given(driver.syncs(member_id, reply.generation)))


@plays("classic_translation", "eager-style-join")
def eager_style(driver: MixedDriver, _: Any) -> None:
    set_up(driver, {"m1": M1, "m2": M2}, mode="eager")
    driver.modern_joins("m3")
    assert driver.group.assignment_epoch == 11
    assert driver.classic_beat("m1", 10) is Error.REBALANCE_IN_PROGRESS
    generation, came, went = syncs(driver, "m1", mode="eager")
    assert (generation, went) == (11, "")
    assert resources(came) == driver.group.share_of("m1"), "as m1 keeps what it had before"
    third = driver.joins(mode="eager", url="http://m4/").member_id
    waits, came, _ = syncs(driver, third, mode="eager")
    assert member(driver, third).state is MemberState.UNRELEASED
    assert driver.classic_beat(third, waits) is Error.NONE, "what it awaits is not free"
    for each in ("m1", "m2"):
        syncs(driver, each, mode="eager")
    driver.beats("m3")
    driver.asks(driver.request("m3", owned=tuple(sorted(member(driver, "m3").current.assigned))))
    assert driver.classic_beat(third, waits) is Error.REBALANCE_IN_PROGRESS
    generation, came, _ = syncs(driver, third, mode="eager")
    assert (generation, resources(came)) == (waits, driver.group.share_of(third))
    assert member(driver, third).state is MemberState.STABLE


@plays("classic_translation", "cooperative-style-join")
def cooperative_style(driver: MixedDriver, _: Any) -> None:
    set_up(driver, {"m1": M1, "m2": M2})
    driver.modern_joins("m3")
    assert driver.classic_beat("m1", 10) is Error.REBALANCE_IN_PROGRESS
    generation, came, went = syncs(driver, "m1", M1)
    assert (generation, member(driver, "m1").state) == (10, MemberState.UNREVOKED)
    kept = held(driver, "m1")
    assert (came, resources(went)) == ("", resources(M1) - resources(kept))
    assert driver.classic_beat("m1", 10) is Error.REBALANCE_IN_PROGRESS
    assert syncs(driver, "m1", kept) == (11, "", "")
    assert member(driver, "m1").state in {MemberState.STABLE, MemberState.UNRELEASED}


@plays("classic_translation", "sync-errors")
def sync_errors(driver: MixedDriver, _: Any) -> None:
    set_up(driver, {"m1": M1, "m2": M2}, {"m3": ""}, m1={"instance_id": "i"})
    told = {"protocol_type": "connect", "protocol": "sessioned"}
    assert driver.syncs("m1", 9, **told).error is Error.ILLEGAL_GENERATION
    assert driver.syncs("m4", 10, **told).error is Error.UNKNOWN_MEMBER_ID
    assert driver.syncs("m2", 10, instance_id="i").error is Error.FENCED_INSTANCE_ID
    for said in ({"protocol": "compatible"}, {"protocol_type": "consumer"}):
        reply = driver.syncs("m1", 10, **{**told, **said})
        assert reply.error is Error.INCONSISTENT_GROUP_PROTOCOL
    assert driver.syncs("m3", 10, **told).error is Error.UNKNOWN_MEMBER_ID
    aims(driver, m1="A-0", m3="A-1 A-2 B-0 B-1")
    assert driver.syncs("m1", 10, **told).error is Error.REBALANCE_IN_PROGRESS
    for _ in range(5):
        assert driver.classic_beat("m1", 10, "i") is Error.REBALANCE_IN_PROGRESS
        driver.lives("m3", 4_100)
    assert "m1" not in driver.group.members, "its time to join ran from the sync on"


@plays("classic_translation", "heartbeat-matrix")
def heartbeat_matrix(driver: MixedDriver, _: Any) -> None:
    set_up(driver, {"m1": M1, "m2": M2}, {"m3": ""})
    assert driver.classic_beat("m1", 10) is Error.NONE
    assert driver.classic_beat("m1", 9) is Error.ILLEGAL_GENERATION
    assert driver.classic_beat("m3", 10) is Error.UNKNOWN_MEMBER_ID
    aims(driver, m1=f"{M1} A-3", m2="A-4 A-5 B-2")
    assert driver.classic_beat("m1", 10) is Error.REBALANCE_IN_PROGRESS
    at(driver, "m1", member_epoch=11, previous_epoch=10, state=MemberState.UNRELEASED)
    assert driver.classic_beat("m1", 11) is Error.NONE, "m2 has A-3"
    kept = dict.fromkeys(resources("A-4 A-5 B-2"), 10)
    pending = {Resource("A", 3): 10}
    at(driver, "m2", state=MemberState.UNREVOKED, assigned=kept, pending=pending)
    assert driver.classic_beat("m2", 10) is Error.REBALANCE_IN_PROGRESS
    at(driver, "m2", member_epoch=11, state=MemberState.STABLE, pending={})
    assert driver.classic_beat("m1", 11) is Error.REBALANCE_IN_PROGRESS
    driver.lives("m3", CLASSIC_SESSION_MS - 100)
    assert driver.classic_beat("m1", 11) is Error.REBALANCE_IN_PROGRESS
    driver.lives("m3", CLASSIC_SESSION_MS - 100)
    assert {"m1", "m3"} == driver.group.members.keys(), "that has begun its session anew"


@plays("classic_translation", "join-errors")
def join_errors(driver: MixedDriver, _: Any) -> None:
    set_up(driver, {"m1": M1, "m2": M2}, {"m3": ""})
    asked = driver.joins(asks_for_id=True)
    assert (asked.error, bool(asked.member_id)) == (Error.MEMBER_ID_REQUIRED, True)
    assert driver.joins("m9").error is Error.UNKNOWN_MEMBER_ID
    strange = driver.joins(protocols=offers("chess"))
    assert strange.error is Error.INCONSISTENT_GROUP_PROTOCOL
    assert driver.joins(session_timeout_ms=1).error is Error.INVALID_SESSION_TIMEOUT
    driver.send(ConfigureGroup("connect", {"group.max.size": "3"}))
    assert driver.joins().error is Error.GROUP_MAX_SIZE_REACHED
    assert driver.group.members.keys() == {"m1", "m2", "m3"}


@plays("classic_translation", "timers")
def timers(driver: MixedDriver, _: Any) -> None:
    set_up(driver, {"m1": M1, "m2": M2, "m4": "C-0"}, {"m3": ""})
    syncs(driver, "m2", M2)
    driver.joins("m4", "C-0")
    epoch = driver.group.group_epoch
    driver.lives("m3", 5_900)
    for each in ("m2", "m4"):
        driver.classic_beat(each)
    driver.lives("m3", 200)
    assert ("m1" in driver.group.members, driver.group.group_epoch) == (False, epoch + 1)
    for _ in range(5):
        for each in ("m2", "m4"):
            if each in driver.group.members:
                driver.classic_beat(each)
        driver.lives("m3", 5_000)
    assert driver.group.members.keys() == {"m3"}, "one has not joined, one has not synced"
    bumps = [each.cause for each in driver.records if isinstance(each, GroupMetadata)]
    assert sorted(map(str, bumps[1:])) == [
        "rebalance-expired http://c/",
        "rebalance-expired http://c/",
        "session-expired http://m1/",
    ]


@plays("classic_translation", "leave")
def leave(driver: MixedDriver, _: Any) -> None:
    set_up(driver, {"m1": M1, "m2": M2}, {"m3": ""})
    end, epoch = driver.group.end, driver.group.group_epoch
    reply = driver.leaves(Leaver("m8"), Leaver("m9"))
    assert {each.error for each in reply.leavers} == {Error.UNKNOWN_MEMBER_ID}
    assert driver.group.end == end
    reply = driver.leaves(Leaver("m1"), Leaver("m9"), Leaver("m2"))
    errors = [each.error for each in reply.leavers]
    assert errors == [Error.NONE, Error.UNKNOWN_MEMBER_ID, Error.NONE]
    assert (driver.group.group_epoch, {*driver.group.members}) == (epoch + 1, {"m3"})


# -- conversions


def seven(driver: MixedDriver) -> tuple[str, str]:
    """A classic group at generation 7: c1 runs A-0, c2 runs A-1."""
    driver.configure("A-0 A-1")
    one, two = driver.pair("A-0", "A-1")
    last = driver.group.classic
    assert last is not None
    driver.write(
        GroupMetadata(6, GIVEN, 0), replace(last, generation=7, cause=GIVEN, is_synced=True)
    )
    driver.open()
    return one, two


def policy(driver: MixedDriver, name: str) -> None:
    driver.send(ConfigureGroup("connect", {"group.migration.policy": name}))


@plays("migration", "upgrade-stable")
def upgrade_stable(driver: MixedDriver, expect: Any) -> None:
    one, two = seven(driver)
    begin = len(driver.records)
    driver.modern_joins("n1")
    written = driver.records[begin:]
    ids = {"c1": one, "c2": two}
    steps = [each for each in written if isinstance(each, CurrentAssignment)]
    for name, told in expect["new_group"]["members"].items():
        step = next(each for each in steps if each.member_id == ids[name])
        found = {
            "epoch": step.member_epoch,
            "previous_epoch": step.previous_epoch,
            "state": step.state.name,
            "assigned": sorted(map(str, step.assigned)),
        }
        assert found == told
    assert expect["new_group"]["group_epoch_after_conversion"] == 7
    assert driver.group.group_epoch == expect["group_epoch_after_join"]
    # The generation is the group epoch already, and the target is one record (PROTOCOL §16).
    assert [_spelled(each, {one: "c1", two: "c2"}) for each in written] == [
        "classic group tombstone",
        "member metadata c1",
        "member metadata c2",
        "target epoch 7",
        "current c1",
        "current c2",
        "member metadata n1",
        "group epoch 8",
        "target epoch 8",
        "current n1",
    ]
    for each in (one, two):
        assert driver.classic_beat(each, 7).name == expect["classic_members_next_heartbeat"]


def _spelled(record: Record, names: Mapping[str, str]) -> str:
    match record:
        case Tombstone(kind) if kind is ClassicGroup:
            return "classic group tombstone"
        case MemberMetadata(member_id):
            return f"member metadata {names.get(member_id, member_id)}"
        case GroupMetadata(epoch):
            return f"group epoch {epoch}"
        case TargetAssignment(epoch):
            return f"target epoch {epoch}"
        case CurrentAssignment(member_id):
            return f"current {names.get(member_id, member_id)}"
        case _:
            return type(record).__name__


@plays("migration", "upgrade-preparing-rebalance")
def upgrade_preparing(driver: MixedDriver, _: Any) -> None:
    one, two = seven(driver)
    waiting = driver.call(driver.join_call(one, "A-0"))
    driver.modern_joins("n1")
    reply = driver.said[waiting]
    assert isinstance(reply, JoinGroupReply)
    assert reply.error is Error.REBALANCE_IN_PROGRESS
    assert (held(driver, one), held(driver, two)) == ("A-0", "A-1")


@plays("migration", "upgrade-completing-rebalance")
def upgrade_completing(driver: MixedDriver, _: Any) -> None:
    one, two = seven(driver)
    driver.call(driver.join_call(one, "A-0"))
    driver.joins(two, "A-1")
    waiting = driver.call(SyncGroup("connect", two, 8))
    driver.modern_joins("n1")
    reply = driver.said[waiting]
    assert isinstance(reply, SyncGroupReply)
    assert reply.error is Error.REBALANCE_IN_PROGRESS
    assert (held(driver, one), held(driver, two)) == ("A-0", "A-1")


@plays("migration", "upgrade-empty-classic")
def upgrade_empty(driver: MixedDriver, _: Any) -> None:
    policy(driver, "disabled")
    driver.leaves(Leaver(driver.joins().member_id))
    begin = len(driver.records)
    assert driver.modern_joins("n1").error is Error.NONE
    assert driver.records[begin] == Tombstone(ClassicGroup, ())
    assert driver.group.type is GroupType.CONNECT


def stays_classic(driver: MixedDriver, expect: Any) -> None:
    end = driver.group.end
    assert driver.modern_joins("n1").error.name in str(expect)
    assert (driver.group.end, driver.group.type) == (end, GroupType.CLASSIC)


@plays("migration", "upgrade-policy-off")
def upgrade_off(driver: MixedDriver, expect: Any) -> None:
    seven(driver)
    for name in ("disabled", "downgrade"):
        policy(driver, name)
        stays_classic(driver, expect)


@plays("migration", "upgrade-wrong-protocol-type")
def upgrade_another_type(driver: MixedDriver, expect: Any) -> None:
    driver.joins(protocol_type="game", protocols=offers("chess"))
    stays_classic(driver, expect)


@plays("migration", "upgrade-too-big")
def upgrade_too_big(driver: MixedDriver, expect: Any) -> None:
    seven(driver)
    driver.send(ConfigureGroup("connect", {"group.max.size": "1"}))
    stays_classic(driver, expect)


@plays("migration", "upgrade-write-fails")
def upgrade_write_fails(driver: MixedDriver, _: Any) -> None:
    one, _two = seven(driver)
    driver.shard.set_disk_space(DiskSpace(Path(), 0, RESERVE_BYTES), driver.now)
    assert driver.asks(driver.joining("n1")) == []
    assert driver.group.type is GroupType.CLASSIC
    driver.shard.set_disk_space(DiskSpace(Path(), RESERVE_BYTES), driver.now)
    driver.shard.submit(driver.joining("n1"), "n1", driver.now)  # and its process ends
    driver.open()
    assert driver.group.type is GroupType.CLASSIC
    assert driver.group.group_epoch == 7
    assert driver.group.member(one) is not None


def ten(driver: MixedDriver, **metadata: Any) -> None:
    """A group at epoch 10 with c1 of the classic and n1 of the connect protocol."""
    set_up(driver, {"c1": "A-0"}, {"n1": "A-1"}, **metadata)


@plays("migration", "downgrade-last-new-leaves")
def downgrade_last(driver: MixedDriver, expect: Any) -> None:
    ten(driver)
    begin = len(driver.records)
    driver.heartbeat_reply(driver.request("n1", -1))
    *buried, generation = driver.records[begin:]
    assert {(each.kind, each.key) for each in buried if isinstance(each, Tombstone)} == {
        (kind, (member_id,))
        for member_id in ("c1", "n1")
        for kind in (CurrentAssignment, MemberMetadata)
    } | {(TargetAssignment, ())}, "the epochs go on, so their record stays"
    assert isinstance(generation, ClassicGroup)
    told = expect["classic"]
    assert generation.generation == told["generation"] == driver.group.group_epoch
    assert (generation.leader, generation.protocol) == ("c1", "sessioned")
    (c1,) = generation.members
    reply = SyncGroupReply(Error.NONE, "connect", "sessioned", c1.assignment)
    assert given(reply) == ("A-0", "")
    assert driver.classic_beat("c1", 10) is Error.REBALANCE_IN_PROGRESS, "a round has begun"
    assert driver.joins("c1", "A-0").generation == 11


@plays("migration", "downgrade-static-replacement")
def downgrade_static(driver: MixedDriver, _: Any) -> None:
    ten(driver, n1={"instance_id": "i"})
    reply = driver.joins(instance_id="i", url="http://n1/")
    assert (reply.error, reply.generation) == (Error.NONE, 10)
    assert driver.group.type is GroupType.CLASSIC
    assert driver.classic_beat("c1", 10) is Error.NONE
    assert given(driver.syncs(reply.member_id, 10, instance_id="i")) == ("A-1", "")


@plays("migration", "downgrade-policy-off")
def downgrade_off(driver: MixedDriver, _: Any) -> None:
    for name in ("disabled", "upgrade"):
        if not driver.group.members:
            ten(driver)
        policy(driver, name)
        if "n1" not in driver.group.members:
            driver.modern_joins("n1")
        epoch = driver.group.group_epoch
        driver.heartbeat_reply(driver.request("n1", -1))
        assert (driver.group.type, driver.group.group_epoch) == (GroupType.CONNECT, epoch + 1)
    assert syncs(driver, "c1", "A-0")[1:] == ("A-1", "")


@plays("migration", "downgrade-too-big")
def downgrade_too_big(driver: MixedDriver, _: Any) -> None:
    set_up(driver, {"c1": "A-0", "c2": "A-2"}, {"n1": "A-1"})
    driver.send(ConfigureGroup("connect", {"group.max.size": "1"}))
    driver.heartbeat_reply(driver.request("n1", -1))
    assert driver.group.type is GroupType.CONNECT


@plays("migration", "classic-leaves-mixed-group")
def classic_leaves(driver: MixedDriver, _: Any) -> None:
    ten(driver)
    driver.leaves(Leaver("c1"))
    assert (driver.group.type, driver.group.group_epoch) == (GroupType.CONNECT, 11)
    assert driver.group.members.keys() == {"n1"}


@plays("migration", "classic-join-on-empty-new-group")
def classic_on_empty(driver: MixedDriver, _: Any) -> None:
    driver.modern_joins("n1")
    driver.heartbeat_reply(driver.request("n1", -1))
    assert driver.joins().generation == 3
    assert (driver.group.type, driver.group.members) == (GroupType.CLASSIC, {})


@plays("static_membership", "classic-join-takes-over")
def takes_over(driver: MixedDriver, _: Any) -> None:
    set_up(driver, {"c1": "A-0"}, {"n1": "A-1", "n2": ""}, n1={"instance_id": "i"})
    successor = driver.joins(instance_id="i", url="http://n1/")
    assert (successor.error, held(driver, successor.member_id)) == (Error.NONE, "A-1")
    reply = driver.modern_joins("n3", instance_id="i")
    assert (reply.error, reply.assignment) == (Error.NONE, resources("A-1"))
    assert driver.group.members.keys() == {"c1", "n2", "n3"}
