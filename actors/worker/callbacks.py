"""Calls a rebalance listener for a member's instructions: assigned, revoked, lost (PROTOCOL §9).

The callbacks run on a thread of their own, one at a time, in the order of their instructions. So a
listener may block, and the member's heartbeats go on: the program that runs the member passes on
Start, Stop and Fence, and tells the member what has ended since.

* Nothing counts as released before its `on_revoked` has returned.
* On a fence nothing more is started: an assignment that is still queued is dropped, and a queued
  revocation becomes a loss. For each assigned resource there is one call that ends it. The fence
  does not wait: if the listener still blocks at the deadline, the member's Kill follows all the
  same, and the member's program has to obey it.
* A callback that raises is logged, and has ended nothing: if `on_assigned` fails its resources
  count as assigned, since some of them may run; if `on_revoked` fails they stay owned until the
  deadline of the revocation, and are then lost; if `on_lost` fails they are left to the Kill.

    callbacks = Callbacks(listener, ended=wake_the_loop)    # called on the callbacks' thread
    for instruction in member.tick(clock()):
        if not callbacks.submit(instruction):
            obey(instruction)                               # Send, Kill, Compute, Gone
    member.release(callbacks.released(), clock())           # more instructions, the same way
"""

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from threading import Condition, Thread
from typing import Protocol

from ...events.model import NOTHING, Resources
from .instructions import Fence, Instruction, Kill, Start, Stop

LOGGER = logging.getLogger(__name__)


class RebalanceListener(Protocol):
    """Runs a member's granted work; each call may block for as long as that takes."""

    def on_assigned(self, resources: Resources) -> None:
        """Start these: they are this member's from now on."""
        ...

    def on_revoked(self, resources: Resources) -> None:
        """Stop these gracefully; after the return other members may start them."""
        ...

    def on_lost(self, resources: Resources) -> None:
        """Stop these at once, without external effects: others may have started them."""
        ...


class CallbackKind(Enum):
    """The methods of a listener."""

    ASSIGNED = "on_assigned"
    REVOKED = "on_revoked"
    LOST = "on_lost"


@dataclass(frozen=True, slots=True)
class Call:
    """A callback to make."""

    kind: CallbackKind
    resources: Resources


class Callbacks:
    """Makes a listener's callbacks; all its methods return at once."""

    def __init__(self, listener: RebalanceListener, ended: Callable[[], None]) -> None:
        """Start; `ended` is called, from another thread, when `released` has something."""
        self._listener = listener
        self._ended = ended
        self._changed = Condition()
        self._calls: deque[Call] = deque()
        """The calls that are queued, in order."""
        self._assigned: Resources = NOTHING
        """What was assigned to the listener, and is not being revoked or lost."""
        self._released: Resources = NOTHING
        """What has ended since `released` was asked last."""
        self._is_fenced = self._is_closed = False
        Thread(target=self._run, name="listener", daemon=True).start()

    def submit(self, instruction: Instruction) -> bool:
        """Queue the calls for an instruction; False if the program has to obey it as well."""
        with self._changed:
            match instruction:
                case Start(resources):
                    self._is_fenced = False
                    self._calls.append(Call(CallbackKind.ASSIGNED, resources))
                case Stop(resources):
                    self._revoke(resources)
                case Fence() | Kill():
                    self._is_fenced = True
                    self._lose()
                case _:
                    return False
            self._changed.notify()
        return not isinstance(instruction, Kill)

    def released(self) -> Resources:
        """Return the resources that ended since the last call, to report to the member."""
        with self._changed:
            released, self._released = self._released, NOTHING
        return released

    def close(self) -> None:
        """Make no more callbacks; does not wait for the running one."""
        with self._changed:
            self._is_closed = True
            self._calls.clear()
            self._changed.notify()

    def _revoke(self, resources: Resources) -> None:
        """Revoke the resources that are not being revoked yet: a leave revokes all once more."""
        is_assigned = self._assigned | self._queued(CallbackKind.ASSIGNED)
        fresh = resources & (is_assigned - self._queued(CallbackKind.REVOKED))
        if fresh:
            self._calls.append(Call(CallbackKind.REVOKED, fresh))

    def _lose(self) -> None:
        """Start nothing more; what was assigned, and is not ending already, is lost."""
        self._released |= self._queued(CallbackKind.ASSIGNED)
        self._calls.clear()
        if self._assigned:
            self._calls.append(Call(CallbackKind.LOST, self._assigned))

    def _queued(self, kind: CallbackKind) -> Resources:
        return NOTHING.union(*(call.resources for call in self._calls if call.kind is kind))

    def _run(self) -> None:
        while call := self._next():
            is_done = self._make(call)
            if call.kind is CallbackKind.ASSIGNED:
                continue
            with self._changed:
                if is_done:
                    self._released |= call.resources
                elif call.kind is CallbackKind.REVOKED:
                    self._assigned |= call.resources
                    if self._is_fenced:
                        self._lose()
            self._ended()

    def _next(self) -> Call | None:
        with self._changed:
            self._changed.wait_for(lambda: self._calls or self._is_closed)
            if self._is_closed:
                return None
            call = self._calls.popleft()
            if call.kind is CallbackKind.ASSIGNED:
                self._assigned |= call.resources
            else:
                self._assigned -= call.resources
            return call

    def _make(self, call: Call) -> bool:
        """Make a callback; False if it raised."""
        listener = self._listener
        make = {
            CallbackKind.ASSIGNED: listener.on_assigned,
            CallbackKind.REVOKED: listener.on_revoked,
            CallbackKind.LOST: listener.on_lost,
        }[call.kind]
        try:
            make(call.resources)
        except Exception:
            names = " ".join(map(str, sorted(call.resources)))
            LOGGER.exception("%s failed for %s", call.kind.value, names)
            return False
        return True
