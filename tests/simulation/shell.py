"""The group's actor in virtual time: gate, timers and replies around the real rules."""

from collections.abc import Callable

from coordinator import Coordinator
from simulation.clock import Clock

from fairlead.actors.group.compute import commission
from fairlead.actors.group.desk import Settings
from fairlead.actors.group.gate import Gate
from fairlead.actors.messages import (
    SUCCESS,
    Command,
    ExpireRebalance,
    ExpireSession,
    Heartbeat,
    HeartbeatReply,
    ReleaseParked,
    Reply,
    RetryAssignor,
    TimeOutAssignor,
)
from fairlead.events.model import MemberState
from fairlead.events.records import CurrentAssignment, Record

Answer = Callable[[Reply], None]


class Shell:
    """Carries out what arrives, and what its timers say."""

    def __init__(self, clock: Clock, settings: Settings) -> None:
        self.clock = clock
        self.coordinator = Coordinator(settings)
        self.gate = Gate()
        self.is_down = False
        self._sessions: dict[str, int] = {}
        self._life = 0
        self.story: list[str] = []
        self._tick()

    def receive(self, command: Command, answer: Answer) -> None:
        """Take a message in; a request that is not new is dropped, unanswered."""
        if self.is_down or (isinstance(command, Heartbeat) and not self.gate.admits(command)):
            return
        answer(self.carry_out(command))

    def carry_out(self, command: Command) -> Reply:
        """Decide, write, and set the timers that the records ask for."""
        coordinator = self.coordinator
        coordinator.now_ms = self.clock.now_ms
        decision = coordinator.carry_out(command)
        if decision.records:
            self.story.append(
                f"{self.clock.now_ms} {tell(command)} -> {tell_all(decision.records)}"
            )
            if coordinator.group.end % 10 == 0:
                coordinator.witness.compacted(coordinator.group)
        self._time(decision.records)
        reply = decision.reply
        if isinstance(command, Heartbeat) and isinstance(reply, HeartbeatReply):
            if command.member_id not in coordinator.group.members:
                self.gate.forget(command.member_id)
            elif reply.error in SUCCESS:
                self._start_session(command.member_id)
        coordinator.desk = commission(coordinator.group, coordinator.desk, self.clock.now_ms)
        return reply

    def die(self, downtime_ms: int) -> None:
        """Lose all but the log, and be back after a while."""
        if not self.is_down:
            self.is_down = True
            self._life += 1
            self.story.append(f"{self.clock.now_ms} the coordinator dies")
            self.clock.after(downtime_ms, self._recover)

    def _recover(self) -> None:
        self.coordinator.restart()
        self.gate = Gate()
        self.is_down = False
        self._sessions.clear()
        for member_id, member in self.coordinator.group.members.items():
            self._start_session(member_id)
            if member.current.state is MemberState.UNREVOKED:
                self._start_rebalance(member_id, member.offset)

    def _start_session(self, member_id: str) -> None:
        timeout_ms = self.coordinator.desk.settings.session_timeout_ms
        due_ms = self.clock.now_ms + timeout_ms
        self._sessions[member_id] = due_ms
        life = self._life

        def expire() -> None:
            if life == self._life and self._sessions.get(member_id) == due_ms:
                self._expire(ExpireSession(member_id, self.gate.acknowledged(member_id)))

        self.clock.after(timeout_ms, expire)

    def _time(self, records: tuple[Record, ...]) -> None:
        for record in records:
            if isinstance(record, CurrentAssignment) and record.state is MemberState.UNREVOKED:
                member = self.coordinator.member(record.member_id)
                self._start_rebalance(record.member_id, member.offset)

    def _start_rebalance(self, member_id: str, offset: int) -> None:
        life = self._life
        timeout_ms = self.coordinator.member(member_id).metadata.rebalance_timeout_ms

        def expire() -> None:
            if life == self._life:
                acknowledged = self.gate.acknowledged(member_id)
                self._expire(ExpireRebalance(member_id, offset, acknowledged))

        self.clock.after(timeout_ms, expire)

    def _expire(self, command: ExpireSession | ExpireRebalance) -> None:
        self.carry_out(command)
        if command.member_id not in self.coordinator.group.members:
            self._sessions.pop(command.member_id, None)
            self.gate.forget(command.member_id)

    def _tick(self) -> None:
        """Look at the group's own deadlines; each rule checks that it is due."""
        if not self.is_down:
            for command in (ReleaseParked(), RetryAssignor(), TimeOutAssignor()):
                self.carry_out(command)
        self.clock.after(500, self._tick)


def tell(command: Command) -> str:
    """Say in a few words what was asked."""
    fields = [getattr(command, name, None) for name in ("member_id", "member_epoch", "connector")]
    said = " ".join(str(field) for field in fields if field is not None)
    owned = getattr(command, "owned", None)
    return f"{type(command).__name__} {said}" + (
        "" if owned is None else f" owns [{' '.join(sorted(map(str, owned)))}]"
    )


def tell_all(records: tuple[Record, ...]) -> str:
    """Say in a few words what was written."""
    return "; ".join(_tell_record(record) for record in records)


def _tell_record(record: Record) -> str:
    if isinstance(record, CurrentAssignment):
        assigned, pending = (
            " ".join(sorted(map(str, g))) for g in (record.assigned, record.pending)
        )
        return f"{record.state.name}@{record.member_epoch} [{assigned}] -[{pending}]"
    return type(record).__name__
