# pyright: basic
"""The rules that keep a group safe, each with a way to switch it off.

The switches are here and nowhere else: a mutation replaces what holds the rule while a
simulation runs. `seeds` says within how many seeds the simulator must find that the rule is
gone; they were counted, with a margin, when runtime/simulation/MUTATIONS.md was written.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from fairlead.actors.group import decide
from fairlead.actors.group.computing import target
from fairlead.actors.group.members import admission, heartbeat, reconcile
from fairlead.actors.group.timing import deadlines, timers
from fairlead.actors.group.timing.deadlines import Deadlines as GroupDeadlines
from fairlead.actors.group.timing.gate import Gate
from fairlead.actors.group.work import commit
from fairlead.actors.messages import ExpireRebalance, ExpireSession
from fairlead.actors.worker.deadlines import Deadlines
from fairlead.actors.worker.membership import Membership
from fairlead.actors.worker.requests import Requests
from fairlead.actors.worker.states import State
from fairlead.events import evolve
from fairlead.events.model import MemberState, Resource
from fairlead.events.tokens import token_of

Patch = pytest.MonkeyPatch


@dataclass(frozen=True, slots=True)
class Mutation:
    """A rule, where the protocol states it, what switches it off, and how soon that shows."""

    name: str
    section: str
    rule: str
    switch_off: Callable[[Patch], None]
    seeds: int = 20


def _always(patch: Patch, owner: object, name: str, answer: object) -> None:
    patch.setattr(owner, name, lambda *_, **__: answer)


# -- §3: requests and answers


def admit_any_request(patch: Patch) -> None:
    original = Gate.admits

    def admits(self: Gate, request: Any) -> bool:
        original(self, request)
        return True

    patch.setattr(Gate, "admits", admits)


def take_any_answer(patch: Patch) -> None:
    original = Requests.answered

    def answered(self: Requests, reply: Any) -> Any:
        if self.sent is not None:
            reply = replace(reply, sequence=self.sent.request.sequence)
        return original(self, reply)

    patch.setattr(Requests, "answered", answered)


def say_little_when_superseding(patch: Patch) -> None:
    original = Requests.make

    def make(self: Requests, *args: Any) -> Any:
        self.sent = None
        return original(self, *args)

    patch.setattr(Requests, "make", make)


def admit_any_epoch(patch: Patch) -> None:
    _always(patch, admission, "_fence", "")


# -- §4: one member's next step


def grant_while_revoking(patch: Patch) -> None:
    original = reconcile._revoke

    def revoke(current: Any, goal: Any, drop: Any) -> Any:
        after = original(current, goal, drop)
        free = {r for r in goal.target if goal.holders.get(r) is None}
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
        return original(current, goal._replace(holders={}), owned)

    patch.setattr(heartbeat, "reconcile", step)


def be_blocked_by_oneself(patch: Patch) -> None:
    original = reconcile._grant

    def grant(current: Any, goal: Any) -> Any:
        holders = {r: f"not {who}" for r, who in goal.holders.items()}
        return original(current, goal._replace(holders=holders))

    patch.setattr(reconcile, "_grant", grant)


def time_no_revocation(patch: Patch) -> None:
    _always(patch, GroupDeadlines, "time_revocation", None)


def expire_any_revocation(patch: Patch) -> None:
    original = timers.expire_rebalance

    def expire(group: Any, desk: Any, command: ExpireRebalance, now_ms: int) -> Any:
        member = group.members.get(command.member_id)
        offset = member.offset if member else command.offset
        return original(group, desk, replace(command, offset=offset), now_ms)

    patch.setitem(decide.RULES, ExpireRebalance, expire)


# -- §5, §7, §8: targets, seats and sessions


def keep_the_share_of_the_departed(patch: Patch) -> None:
    _always(patch, evolve, "_drop_share", None)


def install_for_a_newer_seat(patch: Patch) -> None:
    def seat_of(group: Any, _: Any, member_id: str) -> str | None:
        return member_id if member_id in group.members else None

    patch.setattr(target, "_seat_of", seat_of)


def install_for_the_departed(patch: Patch) -> None:
    patch.setattr(target, "_seat_of", lambda _, __, member_id: member_id)


def expire_a_newer_seat(patch: Patch) -> None:
    original = timers.expire_session

    def expire(group: Any, desk: Any, command: ExpireSession, now_ms: int) -> Any:
        return original(group, desk, replace(command, joined_epoch=None), now_ms)

    patch.setitem(decide.RULES, ExpireSession, expire)


def resume_with_short_sessions(patch: Patch) -> None:
    original = GroupDeadlines.__init__

    def resume(self: GroupDeadlines, group: Any, settings: Any, steady_ms: int) -> None:
        original(self, group, settings, steady_ms - 8_000)

    patch.setattr(GroupDeadlines, "__init__", resume)


def forget_the_members_own_session(patch: Patch) -> None:
    patch.setattr(deadlines, "patience_ms", lambda _, settings: settings.session_timeout_ms)


def keep_grants_of_a_returning_seat(patch: Patch) -> None:
    original = reconcile._grant

    def grant(current: Any, goal: Any) -> Any:
        after = original(current, goal)
        kept = {r: current.assigned.get(r, epoch) for r, epoch in after.assigned.items()}
        return replace(after, assigned=kept)

    patch.setattr(reconcile, "_grant", grant)


# -- §8: what a member does by itself


def count_the_session_from_the_answer(patch: Patch) -> None:
    original = Membership._succeeded

    def succeeded(self: Membership, reply: Any, sent: Any, now_ms: int) -> Any:
        return original(self, reply, replace(sent, at_ms=now_ms), now_ms)

    patch.setattr(Membership, "_succeeded", succeeded)


def never_fence(patch: Patch) -> None:
    _always(patch, Deadlines, "overdue", "")


def never_kill(patch: Patch) -> None:
    _always(patch, Deadlines, "kill_is_due", answer=False)
    patch.setattr(Deadlines, "next_kill_ms", lambda _: None)


def let_a_late_answer_move_the_deadline(patch: Patch) -> None:
    original = Membership._succeeded

    def succeeded(self: Membership, reply: Any, sent: Any, now_ms: int) -> Any:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(self, "_overdue", lambda _: "")
            return original(self, reply, sent, now_ms)

    patch.setattr(Membership, "_succeeded", succeeded)


def call_a_fence_off(patch: Patch) -> None:
    """Take an answer that comes after the fence has begun, and go on as if nothing were."""
    fence, answered = Membership._fence, Membership.answered
    before: dict[Membership, tuple[Any, ...]] = {}

    def begin(self: Membership, reason: str, now_ms: int) -> Any:
        before[self] = (self._requests.sent, self.member_epoch, self._work.target)
        return fence(self, reason, now_ms)

    def take(self: Membership, reply: Any, now_ms: int) -> Any:
        sent, epoch, aimed = before.get(self, (None, 0, None))
        asked = sent.request.sequence if sent else None
        if self.state is State.FENCED and reply.sequence == asked and not reply.message:
            self._requests.sent, self.member_epoch = sent, epoch
            self._work.target = aimed
            self._machine.state = State.RECONCILING
            self._deadlines.stopped()
        return answered(self, reply, now_ms)

    patch.setattr(Membership, "_fence", begin)
    patch.setattr(Membership, "answered", take)


def keep_no_deadline_of_a_revocation(patch: Patch) -> None:
    original = Membership._aim

    def aim(self: Membership, *args: Any) -> Any:
        done = original(self, *args)
        self._deadlines.revoke_by_ms = None
        return done

    patch.setattr(Membership, "_aim", aim)


def take_stopped_for_acknowledged(patch: Patch) -> None:
    original = Membership.stopped

    def stopped(self: Membership, resources: Iterable[object], now_ms: int) -> Any:
        done = original(self, resources, now_ms)
        if not self._work.must_release:
            self._deadlines.revoke_by_ms = None
        return done

    patch.setattr(Membership, "stopped", stopped)


def rejoin_while_something_runs(patch: Patch) -> None:
    original = Membership._fence

    def fence(self: Membership, reason: str, now_ms: int) -> Any:
        done = original(self, reason, now_ms)
        if self.state is State.FENCED and self._goodbye is None:
            self._work.owned = frozenset()
            done += self._rejoin(now_ms)
        return done

    patch.setattr(Membership, "_fence", fence)


def hold_back_owned_while_leaving(patch: Patch) -> None:
    _always(patch, Requests, "repeat_owned", None)


# -- commits (DATA_PLANE §3)


def commit_under_any_token(patch: Patch) -> None:
    original = commit._flaw

    def flaw(group: Any, logged: Any, _: str, each: Any) -> str:
        holder = group.holders.get(Resource(*each.commit_id[:2]), "")
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

    patch.setattr(commit, "_flaw", flaw)


def commit_from_anywhere(patch: Patch) -> None:
    original = commit._flaw

    def flaw(group: Any, logged: Any, member_id: str, each: Any) -> str:
        found = original(group, logged, member_id, each)
        return "" if " is logged at " in found else found

    patch.setattr(commit, "_flaw", flaw)


MUTATIONS = (
    Mutation(
        "admit_any_request",
        "3 Identity",
        "The group drops a request that is not newer than the last one it saw of that process.",
        admit_any_request,
    ),
    Mutation(
        "take_any_answer",
        "3 Identity",
        "A member takes the answer to its latest request only.",
        take_any_answer,
    ),
    Mutation(
        "say_little_when_superseding",
        "3 Identity",
        "A request that is sent while another is unanswered is full.",
        say_little_when_superseding,
    ),
    Mutation(
        "admit_any_epoch",
        "3 Epoch check",
        "A request at another epoch than the member's is fenced.",
        admit_any_epoch,
    ),
    Mutation(
        "grant_while_revoking",
        "4 step 3",
        "Nothing new is granted in the step that revokes.",
        grant_while_revoking,
    ),
    Mutation(
        "revoke_at_once",
        "4 step 3",
        "What a member is to give up is held until it has (UNREVOKED).",
        revoke_at_once,
    ),
    Mutation(
        "take_silence_for_an_acknowledgement",
        "4 step 1",
        "UNREVOKED waits while the member does not say what it owns.",
        take_silence_for_an_acknowledgement,
    ),
    Mutation(
        "take_any_word_for_an_acknowledgement",
        "4 step 1",
        "UNREVOKED waits while the member owns what it is to give up.",
        take_any_word_for_an_acknowledgement,
    ),
    Mutation(
        "grant_what_others_hold",
        "4 step 4",
        "What others hold is not granted.",
        grant_what_others_hold,
    ),
    Mutation(
        "be_blocked_by_oneself",
        "4",
        "A member's own pending revocation never blocks it.",
        be_blocked_by_oneself,
    ),
    Mutation(
        "time_no_revocation",
        "4",
        "A revocation that is not acknowledged in time removes the member.",
        time_no_revocation,
    ),
    Mutation(
        "expire_any_revocation",
        "4",
        "A revocation's timer counts for the record that it was set by only.",
        expire_any_revocation,
    ),
    Mutation(
        "keep_the_share_of_the_departed",
        "8 Removal",
        "A removal drops the member's target entry.",
        keep_the_share_of_the_departed,
    ),
    Mutation(
        "install_for_a_newer_seat",
        "5 Install",
        "A member that left and joined anew is not whom the snapshot meant.",
        install_for_a_newer_seat,
    ),
    Mutation(
        "install_for_the_departed",
        "5 Install",
        "The departed are dropped from what is installed.",
        install_for_the_departed,
    ),
    Mutation(
        "expire_a_newer_seat",
        "8 Session timer",
        "A session's timer counts for the seat that it was set for only.",
        expire_a_newer_seat,
    ),
    Mutation(
        "resume_with_short_sessions",
        "8 Session timer",
        "After a recovery every member gets a full session, each revocation its full time.",
        resume_with_short_sessions,
    ),
    Mutation(
        "forget_the_members_own_session",
        "8 Session timer",
        "The group waits for the session that the member fences itself by, if that is longer.",
        forget_the_members_own_session,
    ),
    Mutation(
        "keep_grants_of_a_returning_seat",
        "8 Static members",
        "A static member that returns takes new grant epochs.",
        keep_grants_of_a_returning_seat,
    ),
    Mutation(
        "count_the_session_from_the_answer",
        "8 Self-fencing",
        "A session counts from the sending time of the answered request.",
        count_the_session_from_the_answer,
    ),
    Mutation(
        "never_fence",
        "8 Self-fencing",
        "A member that may have lost its session stops everything by itself.",
        never_fence,
    ),
    Mutation(
        "never_kill",
        "8 Self-fencing",
        "What has not stopped by the deadline is killed.",
        never_kill,
    ),
    Mutation(
        "let_a_late_answer_move_the_deadline",
        "8 Self-fencing",
        "An answer that is read when the fence is due does not call it off.",
        let_a_late_answer_move_the_deadline,
    ),
    Mutation(
        "call_a_fence_off",
        "8 Self-fencing",
        "A fence once begun is not called off.",
        call_a_fence_off,
    ),
    Mutation(
        "keep_no_deadline_of_a_revocation",
        "8 Revocation",
        "A revocation has its own deadline at the member.",
        keep_no_deadline_of_a_revocation,
    ),
    Mutation(
        "take_stopped_for_acknowledged",
        "8 Revocation",
        "It is acknowledged only when the report was answered.",
        take_stopped_for_acknowledged,
    ),
    Mutation(
        "rejoin_while_something_runs",
        "3 Validation",
        "Epoch 0 asserts that nothing runs.",
        rejoin_while_something_runs,
    ),
    Mutation(
        "hold_back_owned_while_leaving",
        "4, 8 Leaving",
        "A member that leaves says with each request what it still owns.",
        hold_back_owned_while_leaving,
    ),
    Mutation(
        "commit_under_any_token",
        "11.7",
        "Only the current fencing token commits.",
        commit_under_any_token,
    ),
    Mutation(
        "commit_from_anywhere",
        "11.7",
        "A commit starts at the logged offset.",
        commit_from_anywhere,
    ),
)
