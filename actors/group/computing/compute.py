"""The one computation of a target in flight: which member does it, and for how long (PROTOCOL §5).

After each decision a target that is due is being computed by a member, or was computed by the
coordinator itself, or waits: because the last computation began too recently, or because a group
that was empty waits for more members.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ....events.evolve import evolve, evolve_copy
from ....events.group import Group
from ....events.model import Why
from ....events.records import (
    CurrentAssignment,
    GroupMetadata,
    MemberMetadata,
    Record,
    TargetAssignment,
    Tombstone,
)
from ...assignors.built_in.catalogue import FALLBACK, SERVER_ASSIGNORS, Computes
from ...messages.commands import EndInitialDelay, EndInterval, TimeOutAssignor
from ...messages.computing import Assignment, EndComputation, Snapshot
from ...messages.members import JOIN_EPOCH
from ..state.soft_state import Computation, Decision, InitialDelay, SoftState, bump
from .elect import Electorate, Preview, elect, may_run, preview_of, vote
from .install import flaw_in
from .snapshot import snapshot_of
from .target import ComputedAssignment, failed_attempt, target_records

COORDINATOR = "coordinator"
"""Who computed a target, if no member did."""

HOST = ""
"""Stands for the host in place of the id of a member that computes; no member's id is empty."""

LONGEST_COMPUTATION_MS = 60_000
"""How long a member without a rebalance timeout may compute."""


class ScheduledTarget(NamedTuple):
    """The soft state, the records of a target that the coordinator computed, and the group then.

    If nothing was computed it is the group as it was.
    """

    soft: SoftState
    records: tuple[Record, ...]
    group: Group


def is_due(group: Group) -> bool:
    """Return whether the group needs a new target."""
    return group.group_epoch > group.assignment_epoch and bool(group.members)


def ask(soft: SoftState, member_id: str, group_epoch: int) -> tuple[SoftState, bool, bool]:
    """Return the soft state, whether this member has to compute, and whether that is news to it."""
    computation = soft.computation
    if computation is None or computation.member_id != member_id:
        return soft, False, False
    first = is_news(soft, group_epoch)
    if computation.announced_epoch != group_epoch:
        soft = replace(soft, computation=replace(computation, announced_epoch=group_epoch))
    return soft, True, first


def is_news(soft: SoftState, group_epoch: int) -> bool:
    """Return whether a COMPUTE_ASSIGNMENT would be the first for this group epoch.

    A member that has its snapshot is computing; it sends a heartbeat when it has installed.
    """
    computation = soft.computation
    return (
        computation is not None
        and computation.snapshot is None
        and computation.announced_epoch != group_epoch
    )


def schedule_target(
    group: Group, soft: SoftState, records: Sequence[Record], now_ms: int
) -> ScheduledTarget:
    """Compute the target that these records make due, or choose the member that computes it.

    The records are not written yet, and the group stays as it is.
    """
    bumps = any(type(record) is GroupMetadata for record in records)
    if not bumps and _is_scheduled(group, soft, records):
        return ScheduledTarget(soft, (), group)
    if bumps and soft.timed_out:
        soft = replace(soft, timed_out=frozenset())
    preview = preview_of(group, records)
    soft = _time_initial_delay(preview, soft, records)
    if soft.initial_delay is not None or not preview.is_due:
        return ScheduledTarget(soft.without_computation(), (), group)
    assignor = preview.electorate.server_assignor(soft.server_assignors)
    if is_of_users(assignor) and _has_failed(group, records):
        assignor = FALLBACK
    if not assignor:
        if (asking := _ask_a_member(preview, soft)) is not None:
            return ScheduledTarget(asking, (), group)
        assignor = FALLBACK
    soft = soft if _is_at_host(soft) else soft.without_computation()
    if soft.computation is not None or soft.is_in_interval:
        return ScheduledTarget(soft, (), group)  # the next one begins once that is over
    return _compute_at_host(group, soft, records, preview, assignor, now_ms)


def _is_at_host(soft: SoftState) -> bool:
    """Return whether the host is computing beside its loop."""
    return soft.computation is not None and soft.computation.member_id == HOST


def without_host(soft: SoftState) -> SoftState:
    """Return the soft state without the host's computation, whose result is then ignored."""
    return soft.without_computation() if _is_at_host(soft) else soft


def _compute_at_host(
    group: Group,
    soft: SoftState,
    records: Sequence[Record],
    preview: Preview,
    assignor: str,
    now_ms: int,
) -> ScheduledTarget:
    """Compute a target with a server assignor, or let the host begin to, beside its loop.

    The first members of a group do not wait for that: without a target they would have epoch 0.
    """
    ahead = evolve_copy(group, records)
    if soft.offloads and group.members and group.assignment_epoch:
        snapshot = snapshot_of(ahead, assignor, now_ms)
        begun = Computation(HOST, assignor, soft.begun + 1, LONGEST_COMPUTATION_MS)
        return ScheduledTarget(_begin(soft, replace(begun, snapshot=snapshot)), (), group)
    is_awaiting = preview.is_awaiting_assignor(soft.server_assignors)
    again_at_ms = ahead.schedule.again_at_ms if is_awaiting else 0
    made = serve(ahead, soft, assignor, now_ms, again_at_ms)
    for record in made:
        evolve(ahead, record, ahead.end)
    return ScheduledTarget(_begin(soft, None), tuple(made), ahead)


def serve(
    group: Group, soft: SoftState, assignor: str, now_ms: int, again_at_ms: int = 0
) -> Sequence[Record]:
    """Compute a target with a server assignor; return its records, or that of a failed attempt.

    At `again_at_ms` moves are due that a member left for later; 0: none are. An assignor that
    raises fails the attempt, not the group. One of users has failed for its epoch alone: the next
    one follows at once, and the group's own assignor computes.
    """
    snapshot = snapshot_of(group, assignor, now_ms)
    assignment, error = run_assignor(assignor, soft.server_assignors[assignor], snapshot)
    if assignment is None:
        failed = failed_attempt(group, soft.settings, group.group_epoch, error, now_ms)
        if not is_of_users(assignor):
            return [failed]
        failure = failed, bump(group, Why.ASSIGNOR_RETRY, assignor, now_ms)
        ahead = evolve_copy(group, failure)
        return [*failure, *serve(ahead, soft, FALLBACK, now_ms, again_at_ms)]
    assignment = replace(assignment, again_at_ms=again_at_ms)
    return list(
        target_records(group, ComputedAssignment(snapshot, assignment, COORDINATOR), now_ms)
    )


def is_of_users(assignor: str) -> bool:
    """Return whether a server assignor is one of users' own, and not built in."""
    return bool(assignor) and assignor not in SERVER_ASSIGNORS


def _has_failed(group: Group, records: Sequence[Record]) -> bool:
    """Return whether the last computation failed; the next one is by the group's own assignor."""
    targets = [each for each in records if isinstance(each, TargetAssignment)]
    return bool((targets[-1] if targets else group.target).error)


def run_assignor(
    name: str, computes: Computes, snapshot: Snapshot
) -> tuple[Assignment | None, str]:
    """Return a server assignor's assignment; without a valid one None, and why."""
    try:
        assignment = computes(snapshot)
        found = flaw_in(assignment, snapshot)
    except Exception as error:  # noqa: BLE001 - it goes into the log with the attempt
        return None, f"{name}: {type(error).__name__}: {error}"
    return (None, f"{name}: {found}") if found else (assignment, "")


def end_computation(
    group: Group, soft: SoftState, command: EndComputation, now_ms: int
) -> Decision:
    """Install the host's computed target, unless it is outdated."""
    computation = soft.computation
    if computation is None or computation.number != command.number or not computation.snapshot:
        return Decision(soft)
    soft, snapshot = soft.without_computation(), computation.snapshot
    if command.assignment is None:
        epoch, why = snapshot.group_epoch, command.error
        failed = failed_attempt(group, soft.settings, epoch, why, now_ms)
        name = computation.assignor
        if not is_of_users(name) or group.group_epoch > epoch or not group.members:
            return Decision(soft, (failed,))
        return Decision(soft, (failed, bump(group, Why.ASSIGNOR_RETRY, name, now_ms)))
    computed = ComputedAssignment(snapshot, command.assignment, COORDINATOR)
    return Decision(soft, tuple(target_records(group, computed, now_ms)))


def _is_scheduled(group: Group, soft: SoftState, records: Sequence[Record]) -> bool:
    """Return whether there is nothing to schedule: no target is due, or one is being computed."""
    if group.group_epoch <= group.target.assignment_epoch:
        return True
    has_delay = soft.is_in_interval or soft.initial_delay is not None
    is_under_way = soft.computation is not None or has_delay
    return is_under_way and not any(map(_matters, records))


def _time_initial_delay(preview: Preview, soft: SoftState, records: Sequence[Record]) -> SoftState:
    """Begin, extend or end the initial rebalance delay of a group that was empty (KIP-134)."""
    members, delay = preview.group.members, soft.initial_delay
    newcomers = [
        record
        for record in records
        if isinstance(record, MemberMetadata) and record.member_id not in members
    ]
    if not preview.is_due:
        delay = None
    elif not members and newcomers and soft.settings.connect_initial_delay_ms:
        delay = InitialDelay(len(newcomers), _longest_ms(newcomers[0]))
    elif delay is not None and newcomers:
        delay = replace(delay, newcomers=delay.newcomers + len(newcomers))
    return soft if delay is soft.initial_delay else replace(soft, initial_delay=delay)


def _matters(record: Record) -> bool:
    """Return whether a record may change which member computes."""
    if type(record) is CurrentAssignment:
        return record.member_epoch < JOIN_EPOCH  # it left for a while
    return type(record) in {MemberMetadata, TargetAssignment, Tombstone}


def _ask_a_member(preview: Preview, soft: SoftState) -> SoftState | None:
    """Return the soft state with a member that computes, or will after the interval; or None.

    If the member was removed, another takes over the same computation, without an interval.
    """
    if _stands(preview, soft) or (soft.is_in_interval and soft.computation is None):
        return soft
    return choose(preview, soft)


def with_target(group: Group, decision: Decision, now_ms: int) -> Decision:
    """Return the decision with the target that it makes due, if the coordinator computes that."""
    soft, made, _ = schedule_target(group, decision.soft, decision.records, now_ms)
    if not made:
        return decision if soft is decision.soft else replace(decision, soft=soft)
    return replace(decision, soft=soft, records=(*decision.records, *made), news=True)


def choose(preview: Preview, soft: SoftState) -> SoftState | None:
    """Return the soft state with a member chosen to compute; None if none can."""
    voters = preview.voters()
    found = elect(_finalists(preview, voters, soft), voters, soft.last_chosen, soft.timed_out)
    if found is None:
        return None
    assignor, metadata = found
    chosen = metadata.member_id
    computation = Computation(chosen, assignor, soft.begun + 1, _longest_ms(metadata))
    return replace(_begin(soft, computation), last_chosen=chosen)


def _longest_ms(member: MemberMetadata) -> int:
    timeout_ms = member.rebalance_timeout_ms
    return timeout_ms if timeout_ms > 0 else LONGEST_COMPUTATION_MS


def _finalists(preview: Preview, voters: Electorate, soft: SoftState) -> list[MemberMetadata]:
    """Return the members among which the election is decided."""
    fit = voters.fit()
    finalists: list[MemberMetadata] = []
    last = preview.metadata(soft.last_chosen)
    if last is not None and preview.is_present(soft.last_chosen):
        finalists.append(last)
    for each in preview.eligible(fit.get(vote(voters.ballots, fit), ())):
        finalists.append(each)
        if each.member_id not in soft.timed_out:
            break
    return finalists


def _begin(soft: SoftState, computation: Computation | None) -> SoftState:
    has_interval = soft.settings.assignment_interval_ms > 0
    begun = soft.begun + 1
    return replace(soft, computation=computation, begun=begun, is_in_interval=has_interval)


def _stands(preview: Preview, soft: SoftState) -> bool:
    """Return whether the chosen member is still present and able, with the elected assignor.

    Once it has its snapshot, another vote counts for the next computation only.
    """
    computation = soft.computation
    if computation is None or not preview.is_present(computation.member_id):
        return False
    voters = preview.voters()
    member, fit = preview.metadata(computation.member_id), voters.fit()
    if computation.snapshot is None and vote(voters.ballots, fit) != computation.assignor:
        return False
    return member is not None and may_run(member, fit.get(computation.assignor, ()))


def end_interval(_: Group, soft: SoftState, __: EndInterval, ___: int) -> Decision:
    """End the assignment interval: the next computation is scheduled after this decision."""
    return Decision(replace(soft, is_in_interval=False))


def end_initial_delay(_: Group, soft: SoftState, __: EndInitialDelay, ___: int) -> Decision:
    """End the initial rebalance delay: the first target is scheduled after this decision."""
    return Decision(replace(soft, initial_delay=None))


def time_out_assignor(
    group: Group, soft: SoftState, command: TimeOutAssignor, now_ms: int
) -> Decision:
    """Choose another member to compute; if all have timed out, the attempt has failed."""
    computation = soft.computation
    if computation is None or computation.number != command.number:
        return Decision(soft)
    timed_out = soft.timed_out | {computation.member_id}
    chosen = choose(preview_of(group, ()), replace(soft, timed_out=timed_out))
    if chosen is not None and chosen.last_chosen not in timed_out:
        return Decision(chosen)
    epoch = computation.snapshot.group_epoch if computation.snapshot else group.group_epoch
    soft = replace(soft, computation=None, timed_out=frozenset(), last_chosen="")
    error = "no member computed an assignment in time"
    return Decision(soft, (failed_attempt(group, soft.settings, epoch, error, now_ms),))
