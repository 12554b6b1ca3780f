"""The assignor as an actor: it computes off the heartbeat path, and keeps nothing."""

from dataclasses import dataclass

from .actor import Actor, Address
from .assignors import balanced
from .messages.computing import Assignment, Snapshot


@dataclass(frozen=True, slots=True)
class Assign:
    """Compute an assignment of this snapshot."""

    snapshot: Snapshot


@dataclass(frozen=True, slots=True)
class Assigned:
    """The assignment, or why there is none."""

    group_epoch: int
    assignment: Assignment | None
    error: str = ""


class AssignorActor(Actor):
    """Runs the built-in assignor."""

    def receive(self, message: object, sender: Address) -> None:
        """Compute; an assignor that raises is an error in the answer, not here."""
        if not isinstance(message, Assign):
            raise TypeError(f"an assignor does not understand {type(message).__name__}")
        epoch = message.snapshot.group_epoch
        try:
            assignment = balanced.assign(message.snapshot)
        except Exception as error:  # noqa: BLE001 - it goes into the log with the attempt
            text = f"{type(error).__name__}: {error}".encode(errors="backslashreplace").decode()
            self.send(sender, Assigned(epoch, None, text))
        else:
            self.send(sender, Assigned(epoch, assignment))
