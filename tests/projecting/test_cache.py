"""What the cache keeps is what the log tells whoever reads it from the beginning."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.events.catalogue import TYPE_OF
from fairlead.events.log.errors import TrimmedError
from fairlead.events.log.frame import Entry
from fairlead.events.log.reader import LogReader, Slice
from fairlead.events.log.tables import Trimmed
from fairlead.events.records import GroupMetadata
from fairlead.projections.explain import cache
from fairlead.projections.explain.cache import EpochCache, NotToldError
from fairlead.projections.explain.epochs import Explanation
from fairlead.runtime.simulation.faults import schedule_faults
from fairlead.runtime.simulation.group.durable_state import MemoryLog
from fairlead.runtime.simulation.schedule import Size, draw
from fairlead.runtime.simulation.world import World
from fairlead_tests.golden.fixtures import generations, read_lines

GROUP_METADATA = TYPE_OF[GroupMetadata].number
LIVES = sorted(generations()[-1].glob("*.control"))
"""Those of the newest generation: that older ones are read as they were is seen elsewhere."""
LOOKS = [
    pytest.param(life, named_max, marks=[pytest.mark.soak] * is_long, id=f"{life.stem}-{named_max}")
    for life in LIVES
    for named_max in (1, cache.NAMED_MAX)
    for is_long in [life.stem == "many" and named_max == 1]
]
BATCH = 10


class Growing(LogReader):
    """A log in memory that is written, and trimmed, while it is read."""

    def __init__(self, entries: list[Entry]) -> None:
        self.log_id = "connect"
        self.entries = entries
        self.trimmed_to = 0
        self.entries_read = 0

    def low(self) -> int:
        return self.trimmed_to

    def trimmed(self) -> Trimmed:
        return Trimmed(self.trimmed_to, None)

    def load(self) -> Slice:
        latest = {(each.type, each.key): each for each in self.entries}
        kept = sorted(latest.values(), key=lambda each: each.offset)
        return Slice(kept, len(self.entries))

    def tail(self, start: int) -> Iterator[list[Entry]]:
        if start < self.trimmed_to:
            raise TrimmedError("trimmed", self.trimmed_to)
        for at in range(start, len(self.entries), BATCH):
            self.entries_read += len(self.entries[at : at + BATCH])
            yield self.entries[at : at + BATCH]


def epochs_of(entries: list[Entry]) -> int:
    return sum(each.type == GROUP_METADATA for each in entries)


def explained(epochs: EpochCache, epoch: int | None) -> Explanation | str:
    try:
        return epochs.explain(epoch)
    except NotToldError as untold:
        return str(untold)


def check(kept: EpochCache, log: LogReader, epochs: int) -> None:
    """Check that the cache says what its log says: of every epoch, and of those it has not."""
    fresh = EpochCache(log)
    whole = fresh.history()
    assert kept.history(cache.LINES_MAX) == whole
    assert kept.history(2).epochs == whole.epochs[-2:]
    for epoch in (None, *range(epochs + 2)):
        assert explained(kept, epoch) == explained(fresh, epoch)


@pytest.mark.parametrize(("life", "named_max"), LOOKS)
def test_what_is_kept_is_what_the_log_tells_from_its_beginning(life: Path, named_max: int) -> None:
    entries = read_lines(life)
    log = Growing([])
    kept = EpochCache(log, named_max=named_max)
    looks = 6 if named_max > 1 else 2  # with one name each look reads the log again and again
    for end in (*range(0, len(entries), 1 + len(entries) // looks), len(entries)):
        log.entries = entries[:end]
        check(kept, log, epochs_of(entries))


@pytest.mark.parametrize("seed", range(2))
def test_what_is_kept_of_a_group_in_foul_weather_is_what_its_log_tells(seed: int) -> None:
    world = World(draw(seed, Size()))
    schedule_faults(world)
    world.clock.run(world.schedule.end_ms)
    entries = read_entries(world)
    log = Growing([])
    kept = EpochCache(log)
    for end in (*range(0, len(entries), 1 + len(entries) // 4), len(entries)):
        log.entries = entries[:end]
        check(kept, log, epochs_of(entries))
    log.trimmed_to = len(entries) // 2
    check(kept, log, epochs_of(entries))


def read_entries(world: World) -> list[Entry]:
    log = world.durable_state.control
    assert isinstance(log, MemoryLog)
    return log.entries


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.stem)
def test_of_a_log_that_is_trimmed_is_kept_what_it_still_tells(life: Path) -> None:
    entries = read_lines(life)
    log = Growing(entries[: len(entries) // 2])
    kept = EpochCache(log)
    check(kept, log, epochs_of(entries))
    log.trimmed_to = len(entries) // 3
    check(kept, log, epochs_of(entries))
    log.entries, log.trimmed_to = entries, len(entries) * 2 // 3
    check(kept, log, epochs_of(entries))


def test_a_log_is_read_once_whatever_is_asked() -> None:
    log = Growing(read_lines(LIVES[0]))
    kept = EpochCache(log)
    told = kept.history()
    for line in told.epochs:
        assert kept.explain(line.group_epoch).report.group_epoch == line.group_epoch
    assert log.entries_read == len(log.entries)
