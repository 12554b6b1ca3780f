"""`find_affected` misses nobody: whoever it leaves out would be answered without news."""

from dataclasses import replace
from random import Random

import pytest

from fairlead.actors.group.decide import decide
from fairlead.actors.group.members.long_poll import find_affected
from fairlead.actors.group.state.settings import GroupSettings
from fairlead.actors.messages.commands import Command, ExpireSession, ReleaseParked
from fairlead.actors.messages.computing import Assignment, Install
from fairlead.actors.messages.members import Heartbeat, HeartbeatReply
from fairlead.actors.messages.orders import DeleteConnector, PutConnector
from fairlead_tests.decider import COMPUTE, JOIN, Decider, resources


@pytest.mark.parametrize("seed", range(60))
def test_whom_it_leaves_out_has_no_news(seed: int) -> None:
    crowd = Crowd(Random(seed))
    for _ in range(60):
        crowd.step()
    assert crowd.decider.group.end > 20


class Crowd:
    """A group whose members' heartbeats without news are held."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.decider = Decider(GroupSettings(max_delay_ms=dice.choice([0, 50])))
        self.decider.configure("A A-0 A-1 A-2 B B-0 B-1")
        self.held: dict[str, Heartbeat] = {}

    def step(self) -> None:
        """Carry out one command, and hold all whom it does not affect against it."""
        self.decider.now_ms += self.dice.randint(0, 9)
        command = self._command()
        group, soft, now_ms = self.decider.group, self.decider.soft, self.decider.now_ms
        concerned = set(find_affected(group, decide(group, soft, command, now_ms).records))
        decision = self.decider.carry_out(command)
        if isinstance(command, Heartbeat):
            self.held.pop(command.member_id, None)
            if not decision.news and command.member_id in group.members:
                self.held[command.member_id] = command
        for member_id in concerned:
            self.held.pop(member_id, None)
        for request in self.held.values():
            self._has_no_news(request, command)

    def _has_no_news(self, request: Heartbeat, command: Command) -> None:
        decider = self.decider
        again = decide(decider.group, decider.soft, request, decider.now_ms)
        assert again.records == (), f"{request.member_id} was left out of {command}"
        assert isinstance(again.reply, HeartbeatReply)
        # Who is to compute is the soft state's to tell.
        assert not again.news or again.reply.error is COMPUTE, f"{command} was news: {again}"

    def _command(self) -> Command:
        members = sorted(self.decider.group.members)
        if not members or self.dice.random() < 0.08:
            member_id = f"W{self.dice.randint(1, 5)}"
            return replace(JOIN, member_id=member_id, url=f"http://{member_id}")
        member_id = self.dice.choice(members)
        roll = self.dice.random()
        if roll < 0.6:
            return self._beat(member_id)
        if roll < 0.8 and (install := self._install()):
            return install
        others: list[Command] = [
            self._beat(member_id),
            ExpireSession(member_id),
            Heartbeat("connect", member_id, -1, "1"),
            PutConnector("connect", self.dice.choice("AC"), {"x": str(self.dice.random())}),
            DeleteConnector("connect", self.dice.choice("ABC")),
            ReleaseParked(),
        ]
        return self.dice.choice(others)

    def _beat(self, member_id: str) -> Heartbeat:
        current = self.decider.current(member_id)
        owned = None if self.dice.random() < 0.4 else tuple(sorted(current.assigned))
        request = Heartbeat("connect", member_id, current.member_epoch, "1", owned=owned)
        if owned is None or self.dice.random() < 0.5:
            return request
        if request.member_epoch == 0:
            return replace(JOIN, member_id=member_id)
        return replace(JOIN, member_id=member_id, member_epoch=current.member_epoch, owned=owned)

    def _install(self) -> Install | None:
        """Prepare, let nothing happen in between, and hand in what any assignor might."""
        computation = self.decider.soft.computation
        if computation is None or computation.member_id not in self.decider.group.members:
            return None
        snapshot = self.decider.prepare(computation.member_id)
        members = sorted(snapshot.members)
        shares = {member_id: resources("") for member_id in members}
        for each in sorted(snapshot.configured):
            shares[self.dice.choice(members)] |= {each}
        assignment = Assignment(shares)
        epoch = self.decider.current(computation.member_id).member_epoch
        return Install("connect", computation.member_id, epoch, snapshot.group_epoch, assignment)
