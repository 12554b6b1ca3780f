"""What a group says to itself when time has passed; nobody else may."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExpireSession:
    """A member was not heard of for a session timeout; the group says so to itself.

    Only the seat that was taken at `joined_epoch` ends by it; None: whichever has that member
    id now.
    `silent_ms` is the time since its last word; 0: this process of the group has heard none.
    """

    member_id: str
    joined_epoch: int | None = None
    silent_ms: int = 0


@dataclass(frozen=True, slots=True)
class ExpireRebalance:
    """A member did not give up in time what the record at `offset` asked it to."""

    member_id: str
    offset: int


@dataclass(frozen=True, slots=True)
class ReleaseParked:
    """The deadline of parked work has come; the group says so to itself.

    `until_ms` is the latest deadline that has come, whatever the wall clock says by now.
    """

    until_ms: int = 0


@dataclass(frozen=True, slots=True)
class ContinueMoves:
    """The rest of a target's moves is due; the group says so to itself.

    `until_ms` is the time that has come, whatever the wall clock says by now.
    """

    until_ms: int = 0


@dataclass(frozen=True, slots=True)
class RetryAssignor:
    """The back-off after a failed computation is over; the group says so to itself.

    `until_ms` is the time that has come, whatever the wall clock says by now.
    """

    until_ms: int = 0


@dataclass(frozen=True, slots=True)
class EndExpectation:
    """The time until which a worker was expected back has come; the group says so to itself."""

    worker: str
    """The name of its order."""
    until_ms: int


@dataclass(frozen=True, slots=True)
class TimeOutAssignor:
    """The member chosen for the computation of that number took too long over it.

    The group says so to itself.
    """

    number: int


@dataclass(frozen=True, slots=True)
class EndRest:
    """The assignment interval since the last computation is over, the next may begin.

    The group says so to itself.
    """


@dataclass(frozen=True, slots=True)
class FinishDeletion:
    """A connector is being deleted: bury it once nothing of it runs, or waits to be published."""

    connector: str


@dataclass(frozen=True, slots=True)
class FreeSeat:
    """A member is away, and an earlier version let its seat hold what it had run."""

    member_id: str


TimerCommand = (
    ExpireSession
    | ExpireRebalance
    | ReleaseParked
    | ContinueMoves
    | RetryAssignor
    | EndExpectation
    | TimeOutAssignor
    | EndRest
    | FinishDeletion
    | FreeSeat
)
"""What a group says to itself; nobody else may."""
