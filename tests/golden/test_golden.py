"""Logs that were ever written replay for ever, to the whole state that they told of then."""

import json
import tarfile
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgpack  # not the library that wrote them
import pytest

from fairlead.actors.group.state.legality import Legality
from fairlead.events.catalogue import BY_NUMBER, GENERATION
from fairlead.events.entries.codec import decode, restore
from fairlead.events.evolve import evolve
from fairlead.events.group import Group
from fairlead.events.log.frame import NewEntry
from fairlead.events.log.reader import LogReader
from fairlead.events.log.writer import GroupLog
from fairlead.events.records import ClassicGroup, GroupMetadata
from fairlead.events.stores.port import Claimant
from fairlead.events.stores.stored_log import StoredLog
from fairlead.runtime.simulation.invariants.group import consistent
from fairlead_tests.golden.fixtures import generations, plain_group, read_lines, state_of
from fairlead_tests.golden.lives import LIVES, lead
from fairlead_tests.log.memory_store import MemoryEngine, MemoryStore
from fairlead_tests.projecting.readings import read_epochs

GOLDEN = pytest.mark.parametrize("folder", generations(), ids=lambda folder: folder.name)
ON_DISK = [
    pytest.param(path, id=f"{path.parent.name}-{path.name}")
    for folder in generations()
    for path in sorted(folder.glob("*.tar.gz"))
]


def as_told(state: dict[str, Any], told: dict[str, Any]) -> dict[str, Any]:
    """Return of a group's state what a golden log tells: fields of the group may come later."""
    return {name: state.get(name) for name in told}


def states(folder: Path) -> list[Path]:
    """Return the states that the logs of a generation told of, each beside its logs."""
    return sorted(folder.glob("*.state"))


def test_the_program_says_which_generation_it_writes() -> None:
    assert [each.name for each in generations()] == [str(1 + n) for n in range(GENERATION)]


@GOLDEN
def test_a_golden_log_replays_to_the_state_it_told_of_then(folder: Path) -> None:
    for path in states(folder):
        told = json.loads(path.read_text())
        control, offsets = read_lines(path.with_suffix(".control")), path.with_suffix(".offsets")
        state = json.loads(json.dumps(state_of(control, read_lines(offsets))))
        assert as_told(state["group"], told["group"]) == told["group"], path
        assert state["offsets"] == told["offsets"], path


@GOLDEN
def test_a_golden_log_loads_from_disk_trimmed_or_not_to_that_state(
    folder: Path, tmp_path: Path
) -> None:
    for path in states(folder):
        told = json.loads(path.read_text())["group"]
        entries = read_lines(path.with_suffix(".control"))
        with GroupLog.open_writer(tmp_path / path.stem, "connect", reserve_bytes=0) as log:
            for time_ms, alike in groupby(entries, attrgetter("timestamp_ms")):
                log.append(log.end, [NewEntry(*each[1:4], each.value) for each in alike], time_ms)
        for low in (0, len(entries) // 2, len(entries) - 1):
            with GroupLog.open_writer(tmp_path / path.stem, "connect", reserve_bytes=0) as log:
                log.trim(low)
            with LogReader.open(tmp_path / path.stem) as reader:
                group = restore("connect", *reader.load())
            state = json.loads(json.dumps(plain_group(group)))
            assert as_told(state, told) == told, (path, low)


@pytest.mark.parametrize("path", ON_DISK)
def test_a_log_as_it_lay_on_disk_then_opens_and_tells_the_same(path: Path, tmp_path: Path) -> None:
    with tarfile.open(path) as packed:
        packed.extractall(tmp_path, filter="data")
    name = path.name.partition(".")[0]
    told = json.loads(path.with_name(f"{name}.state").read_text())["group"]
    with LogReader.open(tmp_path / "control", "connect") as reader:
        reader.verify()
        assert reader.read(0).entries == read_lines(path.with_name(f"{name}.control"))
        group = restore("connect", *reader.load())
    assert as_told(json.loads(json.dumps(plain_group(group))), told) == told


@pytest.mark.parametrize("path", ON_DISK)
def test_a_log_as_it_lay_on_disk_is_published_into_a_store(path: Path, tmp_path: Path) -> None:
    with tarfile.open(path) as packed:
        packed.extractall(tmp_path, filter="data")
    engine, me = MemoryEngine(), Claimant("n1", "", "folder of n1")
    with StoredLog.open_copy(tmp_path / "control", "connect", None, MemoryStore(engine)) as log:
        end, known = log.publish(me), log.load()
    other = tmp_path / "other"
    with StoredLog.open_copy(other, "connect", None, MemoryStore(engine)) as copy:
        assert copy.claim(Claimant("n2", "", "folder of n2"), 0.0)
        assert (copy.end, copy.load()) == (end, known)
        assert copy.append(end, [NewEntry(1, 1, b"", b"\x80")], 0) == end + 1  # it goes on
        copy.verify()


@GOLDEN
def test_a_golden_log_is_a_legal_history_of_a_group_that_agrees_with_itself(folder: Path) -> None:
    for path in states(folder):
        group, legality = Group("connect"), Legality()
        for entry in read_lines(path.with_suffix(".control")):
            record = decode(entry)
            assert record is not None, path
            whole = group.record_parts.assemble(record)
            if whole is not None:
                legality.check(group, whole)
            evolve(group, record, entry.offset)
        consistent(group)


@GOLDEN
def test_a_golden_log_tells_its_story(folder: Path) -> None:
    for path in states(folder):
        entries = read_lines(path.with_suffix(".control"))
        epochs = list[int]()
        for record in map(decode, entries):
            if isinstance(record, GroupMetadata):
                epochs.append(record.group_epoch)
            elif isinstance(record, ClassicGroup) and record.generation not in epochs:
                epochs.append(record.generation)
        assert [each.report.group_epoch for each in read_epochs(entries)] == epochs, path


@GOLDEN
def test_any_reader_of_messagepack_reads_a_golden_log(folder: Path) -> None:
    for path in (*folder.glob("*.control"), *folder.glob("*.offsets")):
        for entry in read_lines(path):
            if entry.value is not None:
                assert msgpack.packb(msgpack.unpackb(entry.value)) == entry.value, (path, entry)


def test_the_golden_logs_hold_every_kind_of_record() -> None:
    (newest,) = generations()[-1:]
    logs = [*newest.glob("*.control"), *newest.glob("*.offsets")]
    kinds = {entry.type for log in logs for entry in read_lines(log)}
    assert kinds == set(BY_NUMBER)


def test_every_life_of_today_is_in_the_newest_generation() -> None:
    (newest,) = generations()[-1:]
    assert {path.stem for path in newest.glob("*.state")} == set(LIVES)


def test_generations_are_numbered_without_a_gap() -> None:
    numbers = [folder.name for folder in generations()]
    assert numbers == [str(number) for number in range(1, len(numbers) + 1)]
    assert numbers


@pytest.mark.parametrize("name", LIVES)
def test_a_life_can_be_led_today_and_is_the_same_each_time(name: str, tmp_path: Path) -> None:
    assert lead(name, tmp_path / "1") == lead(name, tmp_path / "2")
