"""What a group's story is told in: a chapter for each group epoch, and its answer.

Values only; `reader.py` reads them out of the log. Times are wall clock, in milliseconds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ...events.model import Grants, Resource, Resources
from ...events.records import GroupMetadata
from .reasons import Reason

Json = str | int | float | bool | None | Sequence["Json"] | Mapping[str, "Json"]
Document = dict[str, Json]


class Seat(NamedTuple):
    """A member, by its worker's url (or, where it has none, its id) and its member id."""

    worker: str
    member_id: str


class Transfer(NamedTuple):
    """A resource that somebody gets; `giver` had it last, None if nobody ever did."""

    resource: Resource
    giver: Seat | None
    taker: Seat


class Attempt(NamedTuple):
    """A computation that failed: for which epoch, when, and why."""

    assignment_epoch: int
    time_ms: int
    error: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A target that was installed, told by what it changes.

    All that was configured when it was computed, and still is, is in exactly one of `kept`,
    `moved`, `returned`, `placed`, `parked` and `unplaceable`; `computed_by` is None where the
    coordinator did it itself.
    """

    assignment_epoch: int
    time_ms: int
    assignor: str
    computed_by: Seat | None
    kept: Mapping[Seat, Resources]
    moved: tuple[Transfer, ...]
    """From one worker to another, which may be gone."""
    returned: tuple[Transfer, ...]
    """Back to the worker that had it before: in a new seat, or after it had no place."""
    placed: tuple[Transfer, ...]
    """For the first time."""
    parked: Grants
    """Each with the deadline until when it waits for its worker."""
    unplaceable: Mapping[Resource, str]
    """Each with the assignor's reason."""
    retired: Resources
    """What had a place, and is not configured any more."""
    settled_ms: int | None = None
    """When every member had reached this target; None if another came first, or not yet."""
    reasons: Mapping[Resource, Reason] = field(default_factory=dict[Resource, Reason])
    """Why each of `moved` goes to another worker, and each of `displaced` stops."""
    next_moves_at_ms: int | None = None
    """When the rest of the moves is to be made; None if this is all of them."""
    displaced: Mapping[Resource, Seat] = field(default_factory=dict[Resource, Seat])
    """Those of `unplaceable` that had a place until this target, each with who had it."""

    @property
    def kept_count(self) -> int:
        """How many resources stay where they are."""
        return sum(map(len, self.kept.values()))


@dataclass(frozen=True, slots=True)
class Chapter:
    """One group epoch: what raised it, and which target answered it, if one did.

    Several epochs may have one answer. It stays None where the group lost its last member.
    """

    bump: GroupMetadata
    attempts: tuple[Attempt, ...] = ()
    answer: Answer | None = None

    @property
    def group_epoch(self) -> int:
        """The epoch that this chapter is about."""
        return self.bump.group_epoch

    @property
    def took_ms(self) -> int | None:
        """From the cause to the target that answers it; clocks that jump count as no time."""
        return None if self.answer is None else max(0, self.answer.time_ms - self.bump.time_ms)

    def to_json(self) -> Document:
        """Return the chapter in plain data."""
        bump, answer = self.bump, self.answer
        return {
            "group_epoch": bump.group_epoch,
            "cause": bump.cause.why.value,
            "subject": bump.cause.subject,
            "actor": bump.actor,
            "time_ms": bump.time_ms,
            "took_ms": self.took_ms,
            "attempts": [dict(each._asdict()) for each in self.attempts],
            "answer": None if answer is None else _answer(answer),
        }


def _answer(answer: Answer) -> Document:
    return {
        "assignment_epoch": answer.assignment_epoch,
        "time_ms": answer.time_ms,
        "settled_ms": answer.settled_ms,
        "assignor": answer.assignor,
        "computed_by": _seat(answer.computed_by),
        "kept": [
            {"seat": _seat(seat), "resources": _listed(answer.kept[seat])}
            for seat in sorted(answer.kept)
        ],
        "moved": _transfers(answer.moved),
        "returned": _transfers(answer.returned),
        "placed": _transfers(answer.placed),
        "parked": [
            {"id": str(each), "deadline_ms": due} for each, due in sorted(answer.parked.items())
        ],
        "unplaceable": [
            {"id": str(each), "reason": reason}
            for each, reason in sorted(answer.unplaceable.items())
        ],
        "displaced": [
            {"id": str(each), "giver": _seat(giver)}
            for each, giver in sorted(answer.displaced.items())
        ],
        "retired": _listed(answer.retired),
        "next_moves_at_ms": answer.next_moves_at_ms,
    }


def _transfers(transfers: Iterable[Transfer]) -> list[Json]:
    return [
        {"id": str(each.resource), "giver": _seat(each.giver), "taker": _seat(each.taker)}
        for each in transfers
    ]


def _seat(seat: Seat | None) -> Document | None:
    return None if seat is None else dict(seat._asdict())


def _listed(resources: Resources) -> list[Json]:
    return [str(each) for each in sorted(resources)]
