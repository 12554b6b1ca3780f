"""The filter of heartbeats: the newest request of each sender, and its quota.

**Identity** (PROTOCOL §3). A request is carried out once, and only by the coordinator process that
its sender has heard of. Two numbers see to that:

* *Sequence*: each process of a client counts its requests. A request that is not newer than the
  last one from that process is dropped unanswered, leaves included.
* *Coordinator epoch*: each answer carries the number of the coordinator process that gives it,
  each request the last one that its sender has heard of (-1: none). A request with another
  number was sent to an earlier process, or by a sender that is new here. It changes nothing and
  refreshes nothing; the answer names the current number, and the member says everything anew.

So nothing about requests has to be in the log. A number in the member's record would not be
enough, since a late join may come from a member that has left, and so has no record. It costs one
round trip for each member and coordinator process, and none where the member learns the number
together with the process's address.

Senders that are no members are forgotten after a while, or they could fill the memory; so are those
that use the id of a member whose seat another process has. Then the number rises by one: what a
forgotten sender sent before that is refused like what was sent to an earlier process. Members keep
the number that they have, until their next answer.

A client without an incarnation (Kafka's own protocols have none) may leave the number out. Late
copies of its requests are then recognised by the member epoch alone, as in Kafka; its repeated join
acknowledges no revocation (see `heartbeat`). If it does send the number, it is checked.

**Quota** (PROTOCOL §3). A request beyond the member's rate is not refused, since safety may depend
on it (it may acknowledge a revocation, or leave). Its answer says for how long the member is to be
silent, until its next request is within the rate. That is never longer than a heartbeat interval,
so a member that obeys keeps its session.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from ....events.group import Member
from ...messages.commands import Reply
from ...messages.members import JOIN_EPOCH, NO_COORDINATOR_EPOCH, Heartbeat, HeartbeatReply
from ..state.settings import GroupSettings
from ..state.validate import LONGEST_TEXT

NUMBERS_PER_PROCESS = 1 << 32
"""How far apart the coordinator epochs of two processes begin."""

SALTS = 1 << 31

STRANGERS = 1_000
"""How many senders that are no members are remembered before any is forgotten."""

BURST = 5
"""How many requests a member may send at once: joining and reconciling takes a few."""

_MICROSECONDS = 1_000

NOBODY: Final[Mapping[str, Member]] = MappingProxyType({})


def first_epoch(owner_epoch: int, salt: int = 0) -> int:
    """Return the first coordinator epoch of a log's owner, which no earlier process had.

    A log that is restored from a backup, or copied, has owners of the same number again. Their
    processes differ in `salt`: random, below `SALTS`.
    """
    return owner_epoch * NUMBERS_PER_PROCESS + salt % SALTS


class RequestFilter:
    """The newest request of each process that sends heartbeats."""

    def __init__(
        self,
        members: Mapping[str, Member] = NOBODY,
        coordinator_epoch: int = NO_COORDINATOR_EPOCH,
    ) -> None:
        """Start empty; `members` are the group's members by id, and change with it."""
        self.coordinator_epoch = coordinator_epoch
        self._first_epoch = coordinator_epoch
        """The number with which this process began; it has been raised since."""
        self._members = members
        """The members of the group at any time, by id."""
        self._newest: dict[tuple[str, str], int] = {}
        """The sequence of the newest request, by member id and incarnation."""
        self._acknowledged: set[str] = set()
        """The member ids that have named anything as owned."""
        self._joined: set[str] = set()
        """The member ids whose join this process has decided."""
        self._limit = STRANGERS
        """How many senders are remembered before those that are no members are forgotten."""

    def is_stale(self, request: Heartbeat) -> bool:
        """Return whether the request was meant for another process of the coordinator."""
        named_epoch = request.coordinator_epoch
        if named_epoch == self.coordinator_epoch:
            return False
        if not request.incarnation and named_epoch == NO_COORDINATOR_EPOCH:
            return False
        if request.member_epoch != JOIN_EPOCH and request.member_id not in self._members:
            return False  # it is no member, and is answered so
        is_known = (request.member_id, request.incarnation) in self._newest
        return not (is_known and self._first_epoch <= named_epoch < self.coordinator_epoch)

    def admits(self, request: Heartbeat) -> bool:
        """Tell whether the request is newer than all earlier ones of its process, and remember it.

        Requests without an incarnation always pass, since their processes cannot be told apart; so
        do those with ids that are too long to be remembered, which the rules refuse.
        """
        longest = max(len(request.member_id), len(request.incarnation))
        if not request.incarnation or longest > LONGEST_TEXT:
            return True
        who = (request.member_id, request.incarnation)
        newest = self._newest.get(who)
        if newest is None:
            self._forget_strangers()
        elif request.sequence <= newest:
            return False
        self._newest[who] = request.sequence
        if request.member_epoch == JOIN_EPOCH:
            self._joined.add(request.member_id)
        if request.owned:
            self._acknowledged.add(request.member_id)
        return True

    def has_acknowledged(self, member_id: str) -> bool:
        """Return whether the member is known to have ever owned anything.

        One that joined before a restart of the coordinator may have: then what it held by the log
        counts as run.
        """
        return member_id in self._acknowledged or member_id not in self._joined

    def forget(self, member_id: str) -> None:
        """Remove a removed member's owned resources.

        Its newest request stays for a while: a late copy must not bring the member back.
        """
        self._acknowledged.discard(member_id)

    def _forget_strangers(self) -> None:
        """Remove senders that are no members once there are many; amortised O(1)."""
        if len(self._newest) < self._limit:
            return
        before, members = len(self._newest), self._members
        self._newest = {
            (member_id, incarnation): number
            for (member_id, incarnation), number in self._newest.items()
            if member_id in members and members[member_id].metadata.incarnation == incarnation
        }
        self._joined = {each for each in self._joined if each in members}
        self._acknowledged = {each for each in self._acknowledged if each in members}
        self._limit = 2 * len(self._newest) + STRANGERS
        if len(self._newest) < before and self.coordinator_epoch != NO_COORDINATOR_EPOCH:
            self.coordinator_epoch += 1


class Quota:
    """How many heartbeats each member may send: a token bucket for each, on the steady clock.

    The bucket is kept as one time for each member, at which it would be full again (the generic
    cell rate algorithm, ITU-T I.371): O(1) per request, and nothing to do as time passes.
    """

    def __init__(self) -> None:
        self._full_at_us: dict[str, int] = {}
        """When the bucket of each member id would be full again, steady clock, in microseconds."""

    def charge(self, member_id: str, per_second: int, now_ms: int, longest_ms: int) -> int:
        """Count a request; return for how many milliseconds the member is throttled.

        `per_second` is the rate, 0 for none; the wait is never longer than `longest_ms`.
        """
        if not per_second:
            return 0
        now_us, interval_us = now_ms * _MICROSECONDS, 1_000_000 // per_second
        allowed_us = now_us + BURST * interval_us
        full_at_us = max(self._full_at_us.get(member_id, 0), now_us) + interval_us
        full_at_us = min(full_at_us, allowed_us + longest_ms * _MICROSECONDS)
        self._full_at_us[member_id] = full_at_us
        if full_at_us <= allowed_us:
            return 0
        wait_us = full_at_us + interval_us - allowed_us  # the next is then within the rate
        return min(longest_ms, -(-wait_us // _MICROSECONDS))

    def throttle(self, reply: Reply, settings: GroupSettings, now_ms: int) -> Reply:
        """Count the request of this reply; return the reply, with the throttle time if any.

        It is at most a heartbeat interval, so that the member keeps its session.
        """
        if not isinstance(reply, HeartbeatReply):
            return reply
        rate, longest_ms = settings.requests_per_second, settings.heartbeat_interval_ms
        throttle_ms = self.charge(reply.member_id, rate, now_ms, longest_ms)
        return replace(reply, throttle_time_ms=throttle_ms) if throttle_ms else reply

    def forget(self, member_id: str) -> None:
        """Remove a member that is gone."""
        self._full_at_us.pop(member_id, None)


MOST_CALLERS = 20_000
"""How many classic members the last call is remembered of."""


class CallFilter:
    """Drops calls of classic members that are older than one that was decided.

    Our workers number their calls, repeated ones included. Otherwise a late copy of a JoinGroup
    would name what the worker owned long ago, and one without a member id would take the seat of
    the next process. Calls of clients that do not number them always pass.
    """

    def __init__(self) -> None:
        self._latest: dict[str, int] = {}
        """The number of the newest call, by member id, or by the call if it has none yet."""

    def is_new(self, member_id: str, number: int) -> bool:
        """Return whether a call is newer than all earlier ones of its member, and record it."""
        if not number:
            return True
        caller = member_id or f"no member yet, call {number}"
        if number <= self._latest.get(caller, 0):
            return False
        self._latest.pop(caller, None)
        self._latest[caller] = number
        if len(self._latest) > MOST_CALLERS:
            del self._latest[next(iter(self._latest))]
        return True
