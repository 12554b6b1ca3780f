"""A group built from records of the data, and the steps of a sequence played on it.

The data speaks of a coordinator that computes the target within the heartbeat. Here a target
is installed by a record, and a member that it names before it has joined gets its seat, and
its share, with the heartbeat that joins.
"""
# pyright: basic

from typing import Any

from fairlead.actors.messages.commands import ExpireRebalance, ExpireSession
from fairlead.actors.messages.errors import SUCCESS
from fairlead.actors.messages.members import JOIN_EPOCH, Heartbeat, HeartbeatReply
from fairlead.events.model import Cause, MemberState, Resources, Why
from fairlead.events.records import (
    CurrentAssignment,
    GroupMetadata,
    MemberMetadata,
    Record,
    TargetAssignment,
)
from fairlead_tests.decider import COOPERATIVE, Decider, resource

GIVEN = Cause(Why.OPERATOR, "given")
TIMEOUT_MS = 60_000
REMARKS = {"note", "origin", "description"}


class Stage:
    """One group on which a case is played."""

    def __init__(self, epoch: int, members: dict[str, Any]) -> None:
        self.decider = Decider()
        self.awaited: dict[str, Resources] = {}
        currents = [read_current(key, told, {}) for key, told in members.items()]
        records: list[Record] = [*map(_seat, members), *currents]
        if epoch:
            shares = {each.member_id: frozenset(each.assigned) for each in currents}
            records += [GroupMetadata(epoch, GIVEN, 0), TargetAssignment(epoch, shares)]
        self.decider.write(*records)

    def play(self, step: dict[str, Any]) -> dict[str, Any]:
        """Play one step, and return its result in the data's terms."""
        match step["op"]:
            case "install_target":
                found = self._install(step["epoch"], step.get("targets") or {})
            case "heartbeat":
                found = self._heartbeat(step)
            case "session_timeout":
                found = self._carry_out(ExpireSession(step["member"]))
            case "rebalance_timeout":
                member = self.decider.member(step["member"])
                found = self._carry_out(ExpireRebalance(member.member_id, member.offset))
            case other:
                raise ValueError(f"the data has an op that nobody here knows: {other!r}")
        group = self.decider.group
        return found | {"group_state": group.state.name, "group_epoch": group.group_epoch}

    def _install(self, epoch: int, targets: dict[str, Any]) -> dict[str, Any]:
        decider = self.decider
        if epoch > decider.group.group_epoch:
            decider.write(GroupMetadata(epoch, GIVEN, 0))
        shares = {member_id: read(items) for member_id, items in targets.items()}
        present = decider.group.members.keys()
        self.awaited = {key: share for key, share in shares.items() if key not in present}
        seated = {key: share for key, share in shares.items() if key in present}
        decider.write(TargetAssignment(epoch, seated))
        return {}

    def _heartbeat(self, step: dict[str, Any]) -> dict[str, Any]:
        member_id, epoch, owned = step["member"], step["epoch"], step.get("owned")
        is_full = bool(step.get("full")) or epoch == JOIN_EPOCH
        group = self.decider.group
        if epoch == JOIN_EPOCH and member_id in self.awaited:
            shares = {**group.target_of, member_id: self.awaited.pop(member_id)}
            target = TargetAssignment(group.assignment_epoch, shares)
            self.decider.write(_seat(member_id, group.group_epoch), target)
        timeout_ms = step.get("rebalance_timeout_ms") or (TIMEOUT_MS if is_full else -1)
        request = Heartbeat(
            "connect",
            member_id,
            epoch,
            rebalance_timeout_ms=timeout_ms,
            assignors=COOPERATIVE if is_full else None,
            owned=None if owned is None else tuple(map(resource, owned)),
        )
        return self._carry_out(request)

    def _carry_out(self, command: Heartbeat | ExpireSession | ExpireRebalance) -> dict[str, Any]:
        decision = self.decider.carry_out(command)
        reply = decision.reply
        if not isinstance(command, Heartbeat) or not isinstance(reply, HeartbeatReply):
            return {}
        if reply.error not in SUCCESS:
            assert decision.records == (), "a refused request changes nothing"
            return {"ok": False, "error": reply.error.name}
        found: dict[str, Any] = {"ok": True, "response_epoch": reply.member_epoch}
        found["response_assignment"] = None if reply.assignment is None else spell(reply.assignment)
        if command.member_id in self.decider.group.members:
            found |= spell_current(self.decider.current(command.member_id))
        return found | _seen_in(decision.records)


def _seat(member_id: str, joined_epoch: int = 0) -> MemberMetadata:
    return MemberMetadata(
        member_id,
        joined_epoch=joined_epoch,
        rebalance_timeout_ms=TIMEOUT_MS,
        assignors=COOPERATIVE,
    )


def _seen_in(records: tuple[Record, ...]) -> dict[str, Any]:
    """Return the timer effects of a step: the rebalance timer depends on the record only."""
    step = next((each for each in records if isinstance(each, CurrentAssignment)), None)
    if step is None:
        return {"record_written": False, "rebalance_timer": "untouched"}
    is_timed = step.state is MemberState.UNREVOKED
    return {"record_written": True, "rebalance_timer": "start" if is_timed else "cancel"}


def read(items: Any) -> Resources:
    """Read a list of `A` and `A-0`."""
    return frozenset(resource(str(item)) for item in items or [])


def spell(items: Any) -> list[str]:
    """Format a set as in the data, sorted."""
    return sorted(map(str, items))


def read_current(
    member_id: str, told: dict[str, Any], owner_epoch: dict[str, int]
) -> CurrentAssignment:
    """Parse a member; missing values are those of a stable member."""
    epoch = told.get("epoch") or 0
    previous = told.get("previous_epoch")

    def grants(items: Any) -> dict[Any, int]:
        return {each: owner_epoch.get(str(each), epoch) for each in read(items)}

    return CurrentAssignment(
        member_id,
        epoch,
        epoch if previous is None else previous,
        MemberState[told.get("state") or "STABLE"],
        grants(told.get("assigned")),
        grants(told.get("pending_revocation")),
    )


def spell_current(current: CurrentAssignment) -> dict[str, Any]:
    """Format a member as in the data."""
    return {
        "state": current.state.name,
        "epoch": current.member_epoch,
        "previous_epoch": current.previous_epoch,
        "assigned": spell(current.assigned),
        "pending_revocation": spell(current.pending),
    }


def compare(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Compare a result with all expectations of the data."""
    wanted = {
        key: sorted(map(str, value)) if isinstance(value, list) else value
        for key, value in expected.items()
        if key not in REMARKS
    }
    assert {key: found.get(key, "not seen") for key in wanted} == wanted
