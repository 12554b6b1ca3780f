"""Random groups with different workers, and with work that has weights and demands."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from fairlead.actors.messages.computing import MemberView, Needs, Snapshot
from fairlead.events.model import CONNECTOR, NOTHING, Resource, Resources
from fairlead.events.placement import Abilities, abilities, encode_abilities
from fairlead_tests.assignors.snapshots import member, snapshot

WORKERS = ("W1", "W2", "W3", "W4")
TAGS = ("gpu", "ssd")
RACKS = (None, "a", "b")
some_tags = st.frozensets(st.sampled_from(TAGS))
some_zones = st.frozensets(st.sampled_from(["a", "b"]), max_size=1)


@st.composite
def crews(draw: st.DrawFn, most: int = 4, *, alike: bool = False) -> Sequence[MemberView]:
    """Draw warm workers without work, with member ids in another order than names."""
    names = draw(st.permutations(WORKERS))[: draw(st.integers(1, most))]
    return [
        replace(
            member(f"m{place}", metadata=encode_abilities(draw(_abilities(alike=alike)))),
            worker=name,
            rack=draw(st.sampled_from(RACKS)),
        )
        for place, name in enumerate(names)
    ]


def _abilities(*, alike: bool) -> st.SearchStrategy[Abilities]:
    if alike:
        return st.just(Abilities())
    return st.builds(Abilities, st.integers(1, 3), some_tags)


@st.composite
def groups(draw: st.DrawFn, members: int = 4, tasks: int = 4, *, alike: bool = False) -> Snapshot:
    """Draw a group in which each resource has at most one owner, with all placement features.

    With `alike` all workers and all weights are equal, and there are no demands.
    """
    work = [
        Resource(connector, task)
        for connector in "ABC"
        for task in range(CONNECTOR, draw(st.integers(0, tasks)))
    ]
    crew = draw(crews(members, alike=alike))
    places = [draw(st.sampled_from([None, *range(len(crew))])) for _ in work]
    drawn = snapshot(
        frozenset(work),
        *(
            having(view, frozenset(r for r, at in zip(work, places, strict=True) if at == place))
            for place, view in enumerate(crew)
        ),
    )
    return drawn if alike else draw(demanding(drawn))


@st.composite
def demanding(draw: st.DrawFn, group: Snapshot) -> Snapshot:
    """Draw the demands of a group's work."""
    workers = st.sampled_from([*WORKERS, "W9"])
    pins = st.lists(workers, min_size=1, max_size=2, unique=True).map(tuple)
    resources = st.sampled_from(sorted(group.configured))
    return replace(
        group,
        pins=draw(st.dictionaries(resources, pins, max_size=3)),
        needs=draw(
            st.dictionaries(
                st.sampled_from("ABC"), st.builds(Needs, some_tags, some_zones), max_size=2
            )
        ),
    )


@st.composite
def weighed(draw: st.DrawFn, group: Snapshot) -> Snapshot:
    """Draw the weights of a group's work."""
    resources = st.sampled_from(sorted(group.configured))
    return replace(group, weights=draw(st.dictionaries(resources, st.integers(1, 5))))


def having(view: MemberView, share: Resources) -> MemberView:
    """Return a member with exactly these resources."""
    return replace(view, target=share, owned=share)


def emptied(view: MemberView) -> MemberView:
    return having(view, NOTHING)


def capacity(view: MemberView) -> int:
    return abilities(view.metadata).capacity


def places(shares: Mapping[str, Resources]) -> dict[Resource, str]:
    """Return the owner of each resource."""
    return {each: member_id for member_id, share in shares.items() for each in share}


def had(group: Snapshot) -> dict[Resource, str]:
    """Return the former owner of each resource."""
    return places({member_id: view.target for member_id, view in group.members.items()})


def of_kind(resources: Resources, *, tasks: bool) -> Resources:
    return frozenset(each for each in resources if each.is_task is tasks)
