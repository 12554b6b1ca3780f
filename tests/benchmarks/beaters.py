"""Actors that beat a group as fast as it answers."""

import time
from dataclasses import dataclass, replace
from typing import Any

from fairlead.actors.door.actor import Actor
from fairlead.actors.door.host_messages import HostHeartbeats, HostReplies
from fairlead.actors.messages.heartbeat import (
    NO_COORDINATOR_EPOCH,
    Heartbeat,
    HeartbeatReply,
)
from fairlead.events.model import ClientAssignor

ASSIGNORS = (ClientAssignor("balanced"),)


@dataclass(frozen=True, slots=True)
class Beat:
    """Beat the group for so many seconds, as one member or as a host of many."""

    group: Any
    name: str
    members: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Beaten:
    """How many heartbeats were answered, and how long each message waited, in ms."""

    heartbeats: int
    seconds: float
    waits_ms: list[float]


class Beater(Actor):
    """One message on its way at a time: the next leaves when the answer is there."""

    def receive(self, message: object, sender: Any) -> None:
        """Begin, or count an answer and beat again."""
        match message:
            case Beat():
                self._order, self._asker = message, sender
                self._count, self._waits, self._sequence = 0, list[float](), 0
                self._coordinator = NO_COORDINATOR_EPOCH
                self._epochs = {f"{message.name}-{n}": 0 for n in range(message.members)}
                self._begun = time.monotonic()
                self._beat()
            case HeartbeatReply():
                self._heard((message,))
            case HostReplies():
                self._heard(message.unpack())
            case _:
                pass

    def _heard(self, replies: Any) -> None:
        for reply in replies:
            self._epochs[reply.member_id] = reply.member_epoch
            self._coordinator = reply.coordinator_epoch
        self._waits.append((time.monotonic() - self._sent) * 1000)
        self._count += len(replies)
        if time.monotonic() - self._begun < self._order.seconds:
            self._beat()
        else:
            taken = time.monotonic() - self._begun
            self.send(self._asker, Beaten(self._count, taken, sorted(self._waits)))

    def _beat(self) -> None:
        self._sequence += 1
        beats = tuple(self._request(name, epoch) for name, epoch in self._epochs.items())
        self._sent = time.monotonic()
        if self._order.members == 1:
            self.send(self._order.group, beats[0])
        else:
            self.send(self._order.group, HostHeartbeats.of(beats))

    def _request(self, name: str, epoch: int) -> Heartbeat:
        """Return a full request: those are answered at once, with or without news."""
        plain = Heartbeat("bench", name, epoch, name, self._sequence, owned=())
        full = replace(plain, rebalance_timeout_ms=60_000, assignors=ASSIGNORS, url=name)
        return replace(full, coordinator_epoch=self._coordinator)
