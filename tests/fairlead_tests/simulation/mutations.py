# pyright: basic
"""Ways to switch the coordinator's safety rules off, one at a time.

The switches are here and nowhere else: each replaces what holds a rule while a simulation
runs. `rules.py` says which rule that is.
"""

from dataclasses import replace
from typing import Any

import pytest

from fairlead.actors.group import decide, timers
from fairlead.actors.group.computing import target
from fairlead.actors.group.members import (
    admission,
    commit,
    depart,
    heartbeat,
    reconcile,
    seats,
)
from fairlead.actors.group.members.request_filter import RequestFilter
from fairlead.actors.group.orders import connector_configs, lifecycle
from fairlead.actors.group.state.soft_state import Decision
from fairlead.actors.group.timers import MemberTimers
from fairlead.actors.messages.commands import (
    ContinueMoves,
    ExpireRebalance,
    ExpireSession,
    FinishStop,
    RecordAlteration,
)
from fairlead.actors.messages.members import JOIN_EPOCH
from fairlead.actors.messages.orders import PutConnectors, SetTargetState
from fairlead.events import folds
from fairlead.events.group import Group, token_of
from fairlead.events.model import MemberState, Resource, RunState
from fairlead.runtime.simulation.world import World

Patch = pytest.MonkeyPatch


def always(patch: Patch, owner: object, name: str, answer: object) -> None:
    """Return a function with a constant result."""
    patch.setattr(owner, name, lambda *_, **__: answer)


# -- §3: requests and answers


def admit_any_request(patch: Patch) -> None:
    original = RequestFilter.admits

    def admits(self: RequestFilter, request: Any) -> bool:
        original(self, request)
        return True

    patch.setattr(RequestFilter, "admits", admits)


def serve_any_process(patch: Patch) -> None:
    always(patch, RequestFilter, "is_stale", answer=False)


def admit_any_epoch(patch: Patch) -> None:
    always(patch, admission, "_flaw_in_epoch", "")


def take_any_claim(patch: Patch) -> None:
    always(patch, admission, "_flaw_in_owned", "")


def take_a_leave_at_its_word(patch: Patch) -> None:
    always(patch, admission, "_flaw_in_leave", "")


# -- §4: one member's next step


def grant_while_revoking(patch: Patch) -> None:
    original = reconcile._revoke

    def revoke(current: Any, goal: Any, drop: Any) -> Any:
        after = original(current, goal, drop)
        free = {r for r in goal.target if goal.owner.get(r) is None}
        granted = dict.fromkeys(free, goal.assignment_epoch)
        return replace(after, assigned={**granted, **after.assigned})

    patch.setattr(reconcile, "_revoke", revoke)


def revoke_at_once(patch: Patch) -> None:
    def revoke(current: Any, goal: Any, _: Any) -> Any:
        return reconcile._grant(current, goal)

    patch.setattr(reconcile, "_revoke", revoke)


def take_silence_for_an_acknowledgement(patch: Patch) -> None:
    original = reconcile.reconcile

    def step(current: Any, goal: Any, owned: Any) -> Any:
        if current.state is MemberState.UNREVOKED and owned is None:
            owned = frozenset[Any]()
        return original(current, goal, owned)

    patch.setattr(heartbeat, "reconcile", step)


def take_any_word_for_an_acknowledgement(patch: Patch) -> None:
    original = reconcile.reconcile

    def step(current: Any, goal: Any, owned: Any) -> Any:
        if current.state is MemberState.UNREVOKED and owned is not None:
            owned = owned - current.pending.keys()
        return original(current, goal, owned)

    patch.setattr(heartbeat, "reconcile", step)


def grant_what_others_hold(patch: Patch) -> None:
    original = reconcile.reconcile

    def step(current: Any, goal: Any, owned: Any) -> Any:
        return original(current, goal._replace(owner={}), owned)

    patch.setattr(heartbeat, "reconcile", step)


def be_blocked_by_oneself(patch: Patch) -> None:
    original = reconcile._grant

    def grant(current: Any, goal: Any) -> Any:
        owner = {r: f"not {who}" for r, who in goal.owner.items()}
        return original(current, goal._replace(owner=owner))

    patch.setattr(reconcile, "_grant", grant)


def time_no_revocation(patch: Patch) -> None:
    always(patch, MemberTimers, "time_revocation", None)


def time_no_revocation_anew(patch: Patch) -> None:
    always(patch, MemberTimers, "time_revocation_anew", None)


def expire_any_revocation(patch: Patch) -> None:
    original = depart.expire_rebalance

    def expire(group: Any, soft: Any, command: ExpireRebalance, now_ms: int) -> Any:
        member = group.members.get(command.member_id)
        offset = member.offset if member else command.offset
        return original(group, soft, replace(command, offset=offset), now_ms)

    patch.setitem(decide.RULES, ExpireRebalance, expire)


# -- §5, §7, §8: targets, seats and sessions


def keep_the_share_of_the_departed(patch: Patch) -> None:
    always(patch, folds, "drop_share", None)


def install_for_a_newer_seat(patch: Patch) -> None:
    def seat_of(group: Any, _: Any, member_id: str) -> str | None:
        return member_id if member_id in group.members else None

    patch.setattr(target, "_seat_of", seat_of)


def install_for_the_departed(patch: Patch) -> None:
    patch.setattr(target, "_seat_of", lambda _, __, member_id: member_id)


def expire_a_newer_seat(patch: Patch) -> None:
    original = depart.expire_session

    def expire(group: Any, soft: Any, command: ExpireSession, now_ms: int) -> Any:
        return original(group, soft, replace(command, joined_epoch=None), now_ms)

    patch.setitem(decide.RULES, ExpireSession, expire)


def make_no_more_moves(patch: Patch) -> None:
    patch.setitem(decide.RULES, ContinueMoves, lambda _, soft, __, ___: Decision(soft))


def resume_with_short_sessions(patch: Patch) -> None:
    original = MemberTimers.__init__

    def resume(self: MemberTimers, group: Any, settings: Any, steady_ms: int) -> None:
        original(self, group, settings, steady_ms - 8_000)

    patch.setattr(MemberTimers, "__init__", resume)


def forget_the_members_own_session(patch: Patch) -> None:
    patch.setattr(timers, "session_timeout_of", lambda _, settings: settings.session_timeout_ms)


def keep_grants_of_a_returning_seat(patch: Patch) -> None:
    """Restore the old grants of a returning member."""
    begin, step_away, grant = World.__init__, seats.step_away, reconcile._grant
    had: dict[Resource, int] = {}

    def begin_anew(self: World, *args: Any, **named: Any) -> None:
        had.clear()
        begin(self, *args, **named)

    def leave(current: Any) -> Any:
        had.update(current.assigned)
        return step_away(current)

    def keep(current: Any, goal: Any) -> Any:
        after = grant(current, goal)
        if current.member_epoch != JOIN_EPOCH or current.previous_epoch != JOIN_EPOCH:
            return after
        kept = {r: min(had.get(r, epoch), epoch) for r, epoch in after.assigned.items()}
        return replace(after, assigned=kept)

    patch.setattr(World, "__init__", begin_anew)
    patch.setattr(depart, "step_away", leave)
    patch.setattr(reconcile, "_grant", keep)


def count_no_returns(patch: Patch) -> None:
    original = seats._succession

    def succession(group: Any, away: Any) -> Any:
        return replace(original(group, away), returns=0)

    patch.setattr(seats, "_succession", succession)


# -- commits (DATA_PLANE §3)


def commit_under_any_token(patch: Patch) -> None:
    original = commit._find_flaw

    def flaw(group: Any, logged: Any, _: str, each: Any) -> str:
        holder = group.owner.get(Resource(*each.commit_id[:2]), "")
        current = token_of(group, holder, Resource(*each.commit_id[:2]))
        if current is not None:
            found = original(
                group,
                logged,
                holder,
                replace(each, commit_id=each.commit_id._replace(token=current)),
            )
            return found if " is logged at " in found else ""
        return ""

    patch.setattr(commit, "_find_flaw", flaw)


def commit_from_anywhere(patch: Patch) -> None:
    original = commit._find_flaw

    def flaw(group: Any, logged: Any, member_id: str, each: Any) -> str:
        found = original(group, logged, member_id, each)
        return "" if " is logged at " in found else found

    patch.setattr(commit, "_find_flaw", flaw)


# -- DATA_PLANE §1, §8: what people want of connectors


def answer_and_forget(patch: Patch) -> None:
    def forget(_: Any, soft: Any, __: Any, ___: int) -> Decision:
        return Decision(soft)

    patch.setitem(decide.RULES, SetTargetState, forget)


def put_what_is_not_refused(patch: Patch) -> None:
    def put(group: Group, soft: Any, command: PutConnectors, now_ms: int) -> Decision:
        configs = {
            name: config
            for name, config in command.configs.items()
            if connector_configs._refusal(group, name, config) is None
        }
        return connector_configs.put_connectors(
            group, soft, replace(command, configs=configs), now_ms
        )

    patch.setitem(decide.RULES, PutConnectors, put)


def stop_at_once(patch: Patch) -> None:
    def finish(group: Any, soft: Any, command: Any, _: int) -> Decision:
        wanted = group.target_states.get(command.connector)
        if wanted is None or not lifecycle.is_stopping(wanted):
            return Decision(soft)
        return Decision(soft, (replace(wanted, is_complete=True),))

    patch.setitem(decide.RULES, FinishStop, finish)


def alter_what_runs(patch: Patch) -> None:
    def is_stopped(group: Group, connector: str) -> bool:
        return group.target_state(connector) is RunState.STOPPED

    patch.setattr(Group, "is_stopped", is_stopped)


def leave_alterations_unrecorded(patch: Patch) -> None:
    def forget(_: Any, soft: Any, __: Any, ___: int) -> Decision:
        return Decision(soft)

    patch.setitem(decide.RULES, RecordAlteration, forget)
