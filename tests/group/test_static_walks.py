"""Any walk of static members leaves a group that its log tells of, however it was compacted."""

from dataclasses import replace
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.actors.messages.errors import Error
from fairlead.actors.messages.members import Heartbeat
from fairlead.events.model import GroupState
from fairlead_tests.decider import COOPERATIVE, JOIN, Decider

INSTANCES = ("i", "j", None)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("join", "away", "leave", "expire", "beat", "compute", "rename", "put")),
        st.sampled_from(INSTANCES),
        st.booleans(),
    ),
    max_size=40,
)


class Walk:
    """One group, in which a process at a time sits in each of three seats."""

    def __init__(self) -> None:
        self.decider = Decider()
        self.decider.configure("A A-0 A-1 B B-0")
        self._names = count(1)
        self._sits: dict[str | None, tuple[str, str]] = {}

    def go(self, verb: str, instance: str | None, flag: bool) -> None:
        """Take a step; one that is refused changes nothing."""
        decider = self.decider
        member_id, incarnation = self._sits.get(instance, ("", ""))
        if verb == "join":
            self._join(instance, member_id if flag else "")
        elif verb == "compute":
            self._compute()
        elif member_id in decider.group.members:
            if verb == "expire":
                decider.expire(member_id, acknowledged=flag)
            else:
                decider.heartbeat(self._said(verb, instance, member_id, incarnation, flag))
        decider.witness.compacted(decider.group)

    def _join(self, instance: str | None, member_id: str) -> None:
        number = next(self._names)
        request = replace(
            JOIN,
            member_id=member_id or f"m{number}",
            incarnation=str(number),
            instance_id=instance,
            url=f"http://{instance}",
        )
        if self.decider.heartbeat(request).error in {Error.NONE, Error.COMPUTE_ASSIGNMENT}:
            self._sits[instance] = request.member_id, request.incarnation

    def _compute(self) -> None:
        group, soft = self.decider.group, self.decider.soft
        if group.state is GroupState.ASSIGNING and soft.computation is not None:
            self.decider.compute()

    def _said(
        self, verb: str, instance: str | None, member_id: str, incarnation: str, flag: bool
    ) -> Heartbeat:
        current = self.decider.current(member_id)
        epochs = {"away": -2 if instance else -1, "leave": -1}
        beat = Heartbeat(
            "connect",
            member_id,
            epochs.get(verb, current.member_epoch),
            incarnation,
            instance_id=instance,
            owned=tuple(sorted(current.assigned)) if flag else None,
        )
        if verb == "rename":
            metadata = b"1" if flag else b"2"
            return replace(beat, assignors=(replace(COOPERATIVE[0], metadata=metadata),))
        return replace(beat, rack="north" if flag else "south") if verb == "put" else beat


@settings(max_examples=80)
@given(STEPS)
def test_any_walk_of_static_members_leaves_what_the_log_tells(
    steps: list[tuple[str, str | None, bool]],
) -> None:
    walk = Walk()
    for step in steps:
        walk.go(*step)


def test_a_walk_ends_with_everybody_at_rest() -> None:
    walk = Walk()
    for instance in INSTANCES:
        walk.go("join", instance, False)
        walk.go("compute", None, False)
    walk.decider.settle()
    for instance in ("i", "j"):
        walk.go("away", instance, False)
        walk.go("join", instance, instance == "j")
    walk.decider.settle()
    assert walk.decider.group.state is GroupState.STABLE
