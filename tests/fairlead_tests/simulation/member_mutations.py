# pyright: basic
"""Ways to switch a member's own safety rules off, one at a time; see `mutations.py`."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from fairlead.actors.worker.deadlines import Deadlines
from fairlead.actors.worker.heartbeats import Requests
from fairlead.actors.worker.membership import Membership
from fairlead.actors.worker.states import State
from fairlead_tests.simulation.mutations import Patch, always

# -- §3: requests and answers


def take_any_answer(patch: Patch) -> None:
    original = Requests.match_reply

    def answered(self: Requests, reply: Any) -> Any:
        if self.sent is not None:
            reply = replace(reply, sequence=self.sent.request.sequence)
        return original(self, reply)

    patch.setattr(Requests, "match_reply", answered)


def say_little_when_superseding(patch: Patch) -> None:
    original = Requests.make_request

    def make(self: Requests, *args: Any) -> Any:
        self.sent = None
        return original(self, *args)

    patch.setattr(Requests, "make_request", make)


# -- §8: what a member does by itself


def count_the_session_from_the_answer(patch: Patch) -> None:
    original = Membership._succeeded

    def succeeded(self: Membership, reply: Any, sent: Any, now_ms: int) -> Any:
        return original(self, reply, replace(sent, at_ms=now_ms), now_ms)

    patch.setattr(Membership, "_succeeded", succeeded)


def never_fence(patch: Patch) -> None:
    always(patch, Deadlines, "why_overdue", "")


def never_kill(patch: Patch) -> None:
    always(patch, Deadlines, "kill_is_due", answer=False)
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
    fence, answered = Membership._fence, Membership.handle_reply
    before: dict[Membership, tuple[Any, ...]] = {}

    def begin(self: Membership, reason: str, now_ms: int) -> Any:
        before[self] = (self._requests.sent, self._epoch, self._work.target)
        return fence(self, reason, now_ms)

    def take(self: Membership, reply: Any, now_ms: int) -> Any:
        sent, epoch, aimed = before.get(self, (None, 0, None))
        asked = sent.request.sequence if sent else None
        if self.state is State.FENCED and reply.sequence == asked and not reply.message:
            self._requests.sent, self._epoch = sent, epoch
            self._work.target = aimed
            self._machine.state = State.RECONCILING
            self._deadlines.call_off_kill()
        return answered(self, reply, now_ms)

    patch.setattr(Membership, "_fence", begin)
    patch.setattr(Membership, "handle_reply", take)


def keep_no_deadline_of_a_revocation(patch: Patch) -> None:
    original = Membership._aim

    def aim(self: Membership, *args: Any) -> Any:
        done = original(self, *args)
        self._deadlines.revoke_by_ms = None
        return done

    patch.setattr(Membership, "_aim", aim)


def take_stopped_for_acknowledged(patch: Patch) -> None:
    original = Membership.release

    def stopped(self: Membership, resources: Iterable[object], now_ms: int) -> Any:
        done = original(self, resources, now_ms)
        if not self._work.must_release:
            self._deadlines.revoke_by_ms = None
        return done

    patch.setattr(Membership, "release", stopped)


def rejoin_while_something_runs(patch: Patch) -> None:
    original = Membership._fence

    def fence(self: Membership, reason: str, now_ms: int) -> Any:
        done = original(self, reason, now_ms)
        if self.state is State.FENCED and self._leaves_for_good is None:
            self._work.owned = frozenset()
            done += self._rejoin(now_ms)
        return done

    patch.setattr(Membership, "_fence", fence)


def hold_back_owned_while_leaving(patch: Patch) -> None:
    always(patch, Requests, "repeat_owned", None)
