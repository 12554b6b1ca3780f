"""Whatever of its past a log forgets, at whatever moment: it tells of the same group."""

from collections.abc import Generator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlead.actors.assignors.built_in.balanced import assign
from fairlead.actors.group.computing.snapshot import snapshot_of
from fairlead.events import record_parts
from fairlead.events.entries.codec import fold, restore
from fairlead.events.group import Group
from fairlead.events.log.frame import Entry, NewEntry
from fairlead.events.log.reader import LogReader
from fairlead.events.log.writer import GroupLog
from fairlead.projections.follow.group import Follower
from fairlead.runtime.simulation.invariants.group import same
from fairlead_tests.indexes import indexes_from_scratch, indexes_of
from fairlead_tests.life import DEEDS, NUMBERS, OPENING, Deed, Life

SHORT = 40
NUMBER = st.integers(0, NUMBERS - 1)
NAMES = [*DEEDS, "join", "expire", *["rest"] * 6]
LIVES = st.lists(st.tuples(st.sampled_from(NAMES), NUMBER, NUMBER), min_size=10, max_size=50).map(
    lambda deeds: [*OPENING, *deeds]
)

GOES_WITH_A_SHARE: list[Deed] = [
    ("put", 0, 0),
    ("join", 0, 0),
    ("compute", 5, 0),
    ("acknowledge", 0, 0),
    ("join", 1, 0),
    ("leave", 0, 0),
]
COMES_BACK: list[Deed] = [*GOES_WITH_A_SHARE, ("join", 0, 0), ("acknowledge", 0, 0)]
IS_REPLACED: list[Deed] = [
    ("put", 0, 0),
    ("join", 0, 1),
    ("compute", 5, 0),
    ("acknowledge", 0, 0),
    ("leave", 0, 1),
    ("join", 2, 1),
    ("acknowledge", 2, 0),
]
IS_DELETED: list[Deed] = [
    *GOES_WITH_A_SHARE,
    ("order", 0, 0),
    ("leave", 1, 0),
    ("end", 0, 0),
    ("join", 1, 0),
    ("compute", 5, 0),
]

CHANGES_ITSELF_LATER: list[Deed] = [
    *IS_REPLACED,
    ("put", 1, 0),
    ("join", 0, 0),
    ("compute", 5, 0),
    ("acknowledge", 2, 0),
    ("acknowledge", 0, 0),
    ("change", 2, 1),
]
IS_LOST_AND_RELEASED: list[Deed] = [
    ("put", 0, 0),
    ("join", 0, 0),
    ("compute", 5, 0),
    ("acknowledge", 0, 0),
    ("join", 1, 0),
    ("expire", 0, 1),
    ("compute", 5, 0),
    ("wait", 5, 0),
    ("wait", 5, 0),
]


@pytest.fixture(scope="module", params=[record_parts.LEAST_PER_PART, 1], autouse=True)
def least_per_part(request: pytest.FixtureRequest) -> Generator[None]:
    """Keep facts whole that are as small as these, or in parts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_parts, "LEAST_PER_PART", request.param)
        yield


def latest(entries: list[Entry]) -> list[Entry]:
    """The latest entry of every key, tombstones included, in offset order."""
    return sorted({(entry.type, entry.key): entry for entry in entries}.values())


def compactions(entries: list[Entry], cut: int) -> Iterator[list[Entry]]:
    """What may be left of a log when what lies before `cut` was compacted."""
    live = [entry for entry in latest(entries) if entry.offset >= cut or entry.value is not None]
    yield live
    head, tail = latest(entries[:cut]), entries[cut:]
    yield [*head, *tail]
    yield [*(entry for entry in head if entry.value is not None), *tail]


def cuts(end: int) -> range:
    """Where to cut a log: anywhere if it is short, in some places if it is long."""
    return range(0, end + 1, 1 if end < SHORT else end // 8)


@given(deeds=LIVES)
@example(deeds=GOES_WITH_A_SHARE)
@example(deeds=COMES_BACK)
@example(deeds=IS_REPLACED)
@example(deeds=CHANGES_ITSELF_LATER)
@example(deeds=IS_LOST_AND_RELEASED)
@example(deeds=IS_DELETED)
def test_compaction_of_any_prefix_leads_to_the_same_group(deeds: list[Deed]) -> None:
    coordinator = Life().lead(deeds)
    entries, end = coordinator.witness.entries, coordinator.group.end
    for cut in cuts(end):
        for left in compactions(entries, cut):
            same(coordinator.group, restore("connect", left, end))


@given(deeds=LIVES)
@example(deeds=COMES_BACK)
@example(deeds=IS_REPLACED)
@example(deeds=CHANGES_ITSELF_LATER)
@example(deeds=IS_LOST_AND_RELEASED)
@example(deeds=IS_DELETED)
def test_who_loads_a_compacted_log_and_follows_it_sees_the_same_group(deeds: list[Deed]) -> None:
    coordinator = Life().lead(deeds)
    entries, end = coordinator.witness.entries, coordinator.group.end
    for cut in cuts(end):
        for loaded in compactions(entries[:cut], cut // 2):
            group = restore("connect", loaded, cut)
            fold(group, entries[cut:])
            same(coordinator.group, group)


@given(deeds=LIVES)
def test_an_assignor_computes_the_same_from_a_group_whose_log_was_compacted(
    deeds: list[Deed],
) -> None:
    coordinator = Life().lead(deeds)
    group = coordinator.group
    loaded = restore("connect", latest(coordinator.witness.entries), group.end)
    snapshots = [snapshot_of(each, "balanced", 0) for each in (group, loaded)]
    assert snapshots[0] == snapshots[1]
    assert assign(snapshots[0]) == assign(snapshots[1])


@given(deeds=LIVES)
@example(deeds=COMES_BACK)
@example(deeds=IS_REPLACED)
@example(deeds=CHANGES_ITSELF_LATER)
@example(deeds=IS_LOST_AND_RELEASED)
@example(deeds=IS_DELETED)
def test_every_index_is_what_the_facts_say(deeds: list[Deed]) -> None:
    coordinator = Life().lead(deeds)
    assert indexes_of(coordinator.group) == indexes_from_scratch(coordinator.group)
    group = Group("connect")
    for entry in coordinator.witness.entries:
        fold(group, [entry])
    assert indexes_of(group) == indexes_from_scratch(group), "of the log folded entry by entry"


@given(deeds=LIVES, first=st.integers(0, 99), low=st.integers(0, 99))
@example(deeds=COMES_BACK, first=60, low=90)
@example(deeds=IS_REPLACED, first=60, low=90)
@example(deeds=IS_DELETED, first=40, low=95)
@settings(max_examples=12)
def test_a_log_trimmed_between_two_reads_tells_its_reader_of_the_same_group(
    deeds: list[Deed], first: int, low: int
) -> None:
    coordinator = Life().lead(deeds)
    entries, group = coordinator.witness.entries, coordinator.group
    with TemporaryDirectory() as folder:
        path = Path(folder) / "control"
        split, upto = len(entries) * first // 100, len(entries) * low // 100
        write(path, entries[:split])
        with LogReader.open(path) as reader:
            follower = Follower("connect", reader)
        write(path, entries[split:], trim=upto)
        with LogReader.open(path) as reader:
            follower._log = reader  # pyright: ignore[reportPrivateUsage]
            same(group, follower.catch_up())
            same(group, restore("connect", *reader.load()))


def write(path: Path, entries: list[Entry], trim: int = 0) -> None:
    """Append entries to a real log, and forget what lies before an offset."""
    with GroupLog.open_writer(path, "connect", reserve_bytes=0) as log:
        for at in range(0, len(entries), 20):
            news = [NewEntry(*each[1:4], each.value) for each in entries[at : at + 20]]
            log.append(log.end, news, 0)
        log.trim(trim)
        log.verify()
