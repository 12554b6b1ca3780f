"""A classic leader assigns as an assignor of users' says, in the steps that the protocol allows."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from fairlead.actors.assignors.classic.protocol import VERSIONS, ReceivedAssignment
from fairlead.actors.classic.bytes.connect import (
    WorkerMetadata,
    decode_assignment,
    encode_metadata,
)
from fairlead.actors.messages.assignors import ComputeAssignmentReply
from fairlead.actors.messages.classic import (
    ClassicCall,
    JoinedMember,
    JoinGroupReply,
    SyncGroup,
)
from fairlead.actors.messages.computing import Assignment
from fairlead.actors.messages.errors import Error
from fairlead.actors.worker.classic.lead import Configs, Lead
from fairlead.actors.worker.classic.membership import COMPUTE_MS, ClassicMembership
from fairlead.actors.worker.instructions import ComputeRound, Identity, SendCall, Timing
from fairlead.events.model import Resource

A, B = Resource("A"), Resource("B")
CONFIGS = Configs(7, frozenset({A, B}))
Steps = Mapping[str, tuple[set[Resource], set[Resource]]]


def metadata_of(name: str, owned: set[Resource]) -> WorkerMetadata:
    allocation = ReceivedAssignment(tuple(sorted(owned)), leader="w1", leader_url="http://w1/")
    return WorkerMetadata(f"http://{name}/", 7, allocation)


def generation(protocol: str, number: int = 1, **owned: set[Resource]) -> JoinGroupReply:
    """Return what the leader w1 is told of members with what they own."""
    version = VERSIONS[protocol]
    members = tuple(
        JoinedMember(name, None, encode_metadata(metadata_of(name, owns), version))
        for name, owns in owned.items()
    )
    return JoinGroupReply(Error.NONE, "w1", number, "connect", protocol, "w1", members)


def steps(lead: Lead, told: JoinGroupReply, shares: Mapping[str, set[Resource]] | None) -> Steps:
    """Return what each member is given and is to give up."""
    computed = shares and Assignment({name: frozenset(each) for name, each in shares.items()})
    made = lead.assign(told, CONFIGS, 0, 0, computed or None)
    version = VERSIONS[told.protocol or ""]
    shown = {name: decode_assignment(share, version) for name, share in made.items()}
    return {name: (set(each.assigned), set(each.revoked)) for name, each in shown.items()}


def test_the_snapshot_has_the_members_with_what_they_own() -> None:
    snapshot = Lead(0, "mine").snapshot_of(generation("sessioned", w1={A}, w2=set()), CONFIGS)
    assert snapshot is not None
    assert (snapshot.assignor, snapshot.group_epoch) == ("mine", 1)
    assert snapshot.configured == {A, B}
    views = {name: (each.url, set(each.owned)) for name, each in snapshot.members.items()}
    assert views == {"w1": ("http://w1/", {A}), "w2": ("http://w2/", set())}
    behind = replace(CONFIGS, offset=6)
    assert Lead(0, "mine").snapshot_of(generation("sessioned", w1=set()), behind) is None
    assert Lead(0).snapshot_of(generation("sessioned", w1=set()), CONFIGS) is None


def test_what_another_has_is_given_up_in_one_generation_and_given_in_the_next() -> None:
    lead, shares = Lead(0, "mine"), {"w1": {A}, "w2": {B}}
    told = generation("sessioned", 1, w1={A, B}, w2=set())
    assert steps(lead, told, shares) == {"w1": (set(), {B}), "w2": (set(), set())}
    told = generation("sessioned", 2, w1={A}, w2=set())
    assert steps(lead, told, shares) == {"w1": (set(), set()), "w2": ({B}, set())}


def test_in_the_eager_protocol_all_is_given_at_once() -> None:
    told = generation("default", w1=set(), w2=set())
    shares = {"w1": {A}, "w2": {B}}
    assert steps(Lead(0, "mine"), told, shares) == {"w1": ({A}, set()), "w2": ({B}, set())}


@pytest.mark.parametrize(
    "shares",
    [
        {"w1": {A, B}, "w2": {B}},
        {"w1": {A, B}, "nobody": set[Resource]()},
        {"w1": {A, B, Resource("C")}},
        None,
    ],
)
def test_without_a_sound_answer_connects_own_assign(
    shares: Mapping[str, set[Resource]] | None,
) -> None:
    told = generation("sessioned", w1=set(), w2=set())
    made = steps(Lead(0, "mine"), told, shares)
    assert [len(given) for given, _ in made.values()] == [1, 1]


def leading() -> tuple[ClassicMembership, int]:
    """Return a leader that waits for its assignor, and the number of its generation."""
    timing = Timing(rebalance_timeout_ms=20_000)
    worker = ClassicMembership(
        Identity("g", "w1", "w1", "http://w1/"), timing, "sessioned", 0, "mine"
    )
    (join,) = [each for each in worker.join(0) if isinstance(each, SendCall)]
    told = generation("sessioned", 4, w1=set(), w2=set())
    assert worker.handle_reply(replace(told, number=join.call.number), 1) == []
    (asked,) = worker.set_configured(CONFIGS.configured, CONFIGS.offset, 2)
    assert isinstance(asked, ComputeRound)
    return worker, asked.snapshot.group_epoch


def synced(calls: list[object]) -> list[ClassicCall]:
    found = (each.call for each in calls if isinstance(each, SendCall))
    return [each for each in found if isinstance(each, SyncGroup)]


def test_a_leader_syncs_once_its_assignor_has_answered_and_not_by_an_older_answer() -> None:
    worker, number = leading()
    assignment = Assignment({"w1": CONFIGS.configured})
    assert worker.take_assignment(ComputeAssignmentReply(number - 1, assignment), 3) == []
    said = worker.take_assignment(ComputeAssignmentReply(number, assignment), 4)
    (sync,) = synced([*said])
    assert isinstance(sync, SyncGroup)
    shares = {name: decode_assignment(each, 2) for name, each in sync.assignments.items()}
    assert {name: set(each.assigned) for name, each in shares.items()} == {
        "w1": {A, B},
        "w2": set(),
    }
    assert worker.take_assignment(ComputeAssignmentReply(number, assignment), 5) == []


def test_a_leader_whose_assignor_is_late_assigns_as_connects_do() -> None:
    worker, _ = leading()
    due_ms = 2 + COMPUTE_MS
    assert (worker.next_tick_ms() or 0) <= due_ms
    early = [each for at_ms in range(100, due_ms, 700) for each in worker.tick(at_ms)]
    assert synced([*early]) == []
    (sync,) = synced([*worker.tick(due_ms)])
    assert isinstance(sync, SyncGroup)
    shares = {name: decode_assignment(each, 2) for name, each in sync.assignments.items()}
    assert [len(each.assigned) for each in shares.values()] == [1, 1]
