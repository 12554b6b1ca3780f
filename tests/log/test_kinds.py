"""The two logs of a group are never taken for each other."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.events.commits import Offset
from fairlead.events.entries.codec import CONTROL, OFFSETS, encode
from fairlead.events.log.errors import WrongLogError
from fairlead.events.log.probe import probe
from fairlead.events.log.reader import LogReader
from fairlead.events.log.tables import LogKind
from fairlead.events.log.writer import GroupLog
from fairlead.events.model import Cause, Why
from fairlead.events.records import GroupMetadata, Record

DECIDED = GroupMetadata(1, Cause(Why.MEMBER_JOINED, "w1"), 5)
COME = Offset("flights", {"file": "a"}, {"done": 1})
SWAPPED = "the folders (control and offsets|offsets and control) were swapped"


def written(path: Path, kind: LogKind | None, *records: Record) -> None:
    """Make a log; without a kind it is as an earlier version made it."""
    with GroupLog.open_writer(path, "connect", kind) as log:
        log.append(0, [encode(each) for each in records], 7)


@pytest.fixture(params=[True, False], ids=["says its kind", "of an earlier version"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A group's folder in which the two logs were swapped."""
    written(tmp_path / "offsets", CONTROL if request.param else None, DECIDED)
    written(tmp_path / "control", OFFSETS if request.param else None, COME)
    before = {path: path.read_bytes() for path in tmp_path.glob("*/data.mdb")}
    yield tmp_path
    assert {path: path.read_bytes() for path in tmp_path.glob("*/data.mdb")} == before


@pytest.mark.parametrize("kind", [CONTROL, OFFSETS], ids=lambda kind: str(kind.name))
def test_swapped_logs_are_told_by_all_who_open_them(folder: Path, kind: LogKind) -> None:
    path = folder / kind.name
    message = f"{path} is the {kind.other} log of 'connect', where its {kind.name} log belongs.*"
    with pytest.raises(WrongLogError, match=message + SWAPPED):
        LogReader.open(path, "connect", kind)
    with pytest.raises(WrongLogError, match=message + SWAPPED):
        GroupLog.open_writer(path, "connect", kind)
    with pytest.raises(WrongLogError, match=message + SWAPPED):
        probe(path, "connect", kind)


def test_a_log_of_an_earlier_version_opens_in_its_place_and_says_its_kind_from_then_on(
    tmp_path: Path,
) -> None:
    for kind, record in ((CONTROL, DECIDED), (OFFSETS, COME)):
        path = tmp_path / kind.name
        written(path, None, record)
        LogReader.open(path, "connect", kind).close()
        GroupLog.open_writer(path, "connect", kind).close()
        other = OFFSETS if kind is CONTROL else CONTROL
        with pytest.raises(WrongLogError):
            LogReader.open(path, "connect", other)
        assert probe(path, "connect", kind).entries == 1


def test_logs_that_hold_nothing_yet_say_their_kind_too(tmp_path: Path) -> None:
    GroupLog.open_writer(tmp_path / "control", "connect", CONTROL).close()
    with pytest.raises(WrongLogError):
        GroupLog.open_writer(tmp_path / "control", "connect", OFFSETS)
