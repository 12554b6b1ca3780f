"""The assignor process of a node: the only one that runs code of assignors.

It computes off the heartbeat path. It opens in two steps, so that the supervisor knows its
process before any code of others runs; one that does not answer is killed, and replaced.
"""

import logging
import os
from dataclasses import replace

from ...actors.actor import Actor, Address
from ...actors.messages.assignors import Assign, Assigned, Forget, Given, Introduce, Noted
from ..node.spec import AssignorsOpen, AssignorUp, OpenAssignors
from .apart import doing, set_apart
from .finding import AssignorRefusedError
from .limits import has_room, limit
from .mishaps import USERS_ERRORS, log_story, told
from .panel import Panel

LOGGER = logging.getLogger(__name__)
FULL = "assignors kept all memory that they may take (assignor.memory.max): another process begins"


class AssignorActor(Actor):
    """Runs the assignors of a node's workers."""

    _order: OpenAssignors
    _supervisor: Address
    _panel: Panel

    def receive(self, message: object, sender: Address) -> None:
        """Take the order to open, or a worker's question."""
        self._take(message, sender)
        if not isinstance(message, OpenAssignors) and self._panel.has_starved:
            self._end_if_full()

    def _take(self, message: object, sender: Address) -> None:
        match message:
            case OpenAssignors():
                self._order, self._supervisor = message, sender
                set_apart(message.log_file)
                self.send(sender, AssignorUp(os.getpid()))
                self.wake_after(0)
            case Introduce(member_id, worker, number):
                self.send(sender, self._panel.introduce(member_id, worker, number))
            case Assign(snapshot, member_id):
                self.send(sender, self._panel.assign(member_id, snapshot))
            case Given(name, assignment, number):
                self._panel.given(name, assignment)
                self.send(sender, Noted(number))
            case Forget(worker):
                self._panel.forget(worker)
            case _:
                raise TypeError(f"an assignor does not understand {type(message).__name__}")

    def _end_if_full(self) -> None:
        """Have another process take over from one that is full: it would fail at everything."""
        self._panel.has_starved = False
        if not has_room(self._order.memory_bytes):
            self.send(self._supervisor, AssignorsOpen(os.getpid(), FULL))

    def woken(self, payload: object) -> None:
        """Load the assignors."""
        del payload
        why = ""
        try:
            limit(self._order.memory_bytes)
            self._panel = Panel(self._order.names, self._order.conf, doing)
        except AssignorRefusedError as error:
            why = str(error)
            log_story(LOGGER, "an assignor is refused", error)
        except USERS_ERRORS as error:
            why = f"the assignors can not be loaded: {told(error)}"
            log_story(LOGGER, "the assignors can not be loaded", error)
        self.send(self._supervisor, AssignorsOpen(os.getpid(), why))

    def undelivered(self, message: object, to: Address) -> None:
        """Say so to who waits for an assignment that is too large to be sent."""
        super().undelivered(message, to)
        if isinstance(message, Assigned) and message.assignment is not None:
            error = "the assignment was computed, and could not be sent"
            self.send(to, replace(message, assignment=None, error=error))
