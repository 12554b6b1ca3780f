"""Random groups in any intermediate state."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from fairlead.actors.messages.computing import LossView, MemberView, Snapshot
from fairlead.events.model import CONNECTOR, NOTHING, Resource
from fairlead.events.placement import COLD, WARM, is_warm
from fairlead_tests.assignors.snapshots import NOW_MS, member, snapshot

MEMBER_IDS = ("W1", "W2", "W3", "W4")
URLS = ("", "http://one", "http://two")
METADATA = (b"", WARM, COLD, b"?")


@st.composite
def snapshots(draw: st.DrawFn, most_members: int = 4, most_tasks: int = 4) -> Snapshot:
    """Draw a group in any intermediate state: overlapping claims, losses, parked work."""
    known = [
        Resource(connector, task)
        for connector in "ABC"
        for task in range(CONNECTOR, draw(st.integers(0, most_tasks)))
    ]
    ids = draw(
        st.lists(st.sampled_from(MEMBER_IDS), min_size=1, max_size=most_members, unique=True)
    )
    some = st.frozensets(st.sampled_from(known))
    target = {resource: draw(st.sampled_from([*ids, ""])) for resource in known}
    members = [
        member(
            each,
            frozenset(resource for resource in known if target[resource] == each),
            owned=draw(some),
            instance_id=draw(st.sampled_from([None, f"i-{each}"])),
            url=draw(st.sampled_from(URLS)),
            metadata=draw(st.sampled_from(METADATA)),
        )
        for each in ids
    ]
    deadlines = st.integers(NOW_MS - 1, NOW_MS + 2)
    losses = st.builds(
        LossView,
        member_id=st.sampled_from([*MEMBER_IDS, "W8"]),
        instance_id=st.sampled_from([None, "i-W1", "i-W9"]),
        url=st.sampled_from([*URLS, "http://gone"]),
        resources=some,
        deadline_ms=deadlines,
    )
    drawn = snapshot(
        draw(some),
        *members,
        losses=tuple(draw(st.lists(losses, max_size=3))),
        parked=draw(st.dictionaries(st.sampled_from(known), deadlines, max_size=4)),
    )
    return replace(drawn, fired=draw(some) if draw(st.booleans()) else NOTHING)


@st.composite
def ordered(draw: st.DrawFn) -> Snapshot:
    """Draw such a group with cordoned, drained or absent workers, and pinned work."""
    drawn = draw(snapshots())
    members = {
        member_id: replace(
            view,
            member_epoch=draw(st.sampled_from([1, 1, 1, -2])),
            cordoned=draw(st.booleans()),
            draining=draw(st.sampled_from([False, False, True])),
            worker=view.url or member_id,
        )
        for member_id, view in drawn.members.items()
    }
    if not drawn.configured:
        return replace(drawn, members=members)
    workers = st.sampled_from([*sorted(view.worker for view in members.values()), "W8"])
    pins = st.lists(workers, min_size=1, max_size=2, unique=True).map(tuple)
    pinned = draw(st.dictionaries(st.sampled_from(sorted(drawn.configured)), pins, max_size=3))
    return replace(drawn, members=members, pins=pinned)


def successors(group: Snapshot) -> dict[str, MemberView]:
    """Return the members that a later, warm one of the same url follows, with that one."""
    in_order = [group.members[each] for each in sorted(group.members)]
    newest = {each.url: each for each in in_order}
    return {
        each.member_id: newest[each.url]
        for each in in_order
        if each.url and newest[each.url] is not each and is_warm(newest[each.url].metadata)
    }


def takers(group: Snapshot) -> Sequence[MemberView]:
    present = sorted(group.members.keys() - successors(group).keys())
    everyone = [group.members[each] for each in present]
    return [each for each in everyone if is_warm(each.metadata)] or everyone
