"""Damaged files: each flaw is found out and named, or it does no harm."""

import os
import random
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import lmdb
import pytest
from log.conftest import Fork, Puppet

from fairlead.events.log.errors import CorruptLogError, LogError, UnknownFormatError
from fairlead.events.log.frame import NewEntry
from fairlead.events.log.probe import probe
from fairlead.events.log.reader import LogReader, Slice
from fairlead.events.log.writer import GroupLog
from fairlead_tests.log.samples import TIME_MS, gone, member

PAGE = 4096
WAYS_IN: list[Callable[[Path], object]] = [
    probe,
    LogReader.open,
    lambda path: GroupLog.open_writer(path, "flights"),
]
DEADLY = {-signal.SIGBUS, -signal.SIGABRT, -signal.SIGSEGV, -signal.SIGALRM}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with deletes, overflow pages, reused pages and several owners behind it."""
    path, rng = tmp_path_factory.mktemp("model") / "control", random.Random(3)
    for _ in range(3):
        with GroupLog.open_writer(path, "flights") as log:
            for _ in range(12):
                name = f"W{rng.randrange(60)}"
                entries = [member(name, "x" * rng.choice((5, 50, 6000))), gone(name)]
                log.append(log.end, rng.choices(entries, (4, 1), k=rng.randrange(1, 9)), TIME_MS)
    return path


@pytest.fixture
def written(model: Path, path: Path) -> Path:
    """A copy of that log, to be damaged."""
    return shutil.copytree(model, path)


def _content(path: Path) -> tuple[Slice, Slice]:
    with LogReader.open(path, "flights") as log:
        log.verify()
        return log.read(0), log.load()


def _flip(data: Path, position: int, bit: int) -> None:
    with data.open("r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ 1 << bit]))


def _read_damaged(
    line: Connection, path: Path, scratch: Path, damage: Callable[..., object]
) -> None:
    """Answer, for each damage: is the log as it was, or which error says it is not."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # LMDB's last words
    sound = _content(path)
    while True:
        words = line.recv()
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.copytree(path, scratch)
        damage(scratch / "data.mdb", *words)
        signal.alarm(30)
        try:
            line.send("harmless" if _content(scratch) == sound else "a silent change")
        except LogError as error:
            line.send(type(error).__name__)
        signal.alarm(0)


def _outcome(puppet: Puppet, position: int, bit: int) -> str:
    puppet.line.send((position, bit))
    try:
        return str(puppet.hear())
    except (EOFError, ConnectionResetError):
        puppet.process.join(60)
        assert puppet.process.exitcode in DEADLY
        return "killed"


@pytest.mark.parametrize(
    ("of_heads", "of_all"), [(50, 100), pytest.param(200, 400, marks=pytest.mark.soak)]
)
def test_every_flipped_bit_is_found_out_or_harmless(
    written: Path, tmp_path: Path, fork: Fork, of_heads: int, of_all: int
) -> None:
    rng = random.Random(5)
    size = (written / "data.mdb").stat().st_size
    metas = [page * PAGE + at for page in (0, 1) for at in range(16, 152, 3)]
    heads = [page * PAGE + at for page in range(2, size // PAGE) for at in (9, 11, 13, 17)]
    anywhere = [rng.randrange(size) for _ in range(of_all)]
    outcomes: Counter[str] = Counter()
    puppet = fork(_read_damaged, written, tmp_path / "scratch", _flip)
    for position in [*metas, *rng.sample(heads, of_heads), *anywhere]:
        outcome = _outcome(puppet, position, rng.randrange(8))
        outcomes[outcome] += 1
        if outcome == "killed":
            puppet = fork(_read_damaged, written, tmp_path / "scratch", _flip)
    allowed = {"harmless", "killed", "CorruptLogError", "UnknownFormatError", "WrongLogError"}
    assert outcomes.keys() <= allowed
    assert outcomes["CorruptLogError"] > 0 < outcomes["harmless"]


@pytest.mark.parametrize("kept_pages", [0.5, 1, 1.5, 2, 3, 5, 9])
def test_a_file_cut_short_is_named_before_lmdb_dies_of_it(written: Path, kept_pages: float) -> None:
    os.truncate(written / "data.mdb", int(kept_pages * PAGE))
    for use in WAYS_IN:
        with pytest.raises(CorruptLogError):
            use(written)


def test_a_file_that_lost_some_pages_is_named_or_whole(
    written: Path, tmp_path: Path, fork: Fork
) -> None:
    size = (written / "data.mdb").stat().st_size
    puppet = fork(_read_damaged, written, tmp_path / "scratch", os.truncate)
    outcomes = {cut: puppet.ask(size - cut * PAGE) for cut in range(1, 30)}
    assert set(outcomes.values()) <= {"CorruptLogError", "harmless"}, outcomes


def test_an_empty_or_missing_data_file_is_not_taken_for_a_new_log(written: Path) -> None:
    os.truncate(written / "data.mdb", 0)
    for _ in range(2):
        with pytest.raises(CorruptLogError, match=r"acknowledged up to offset .* ends at 0"):
            GroupLog.open_writer(written, "flights")
        with pytest.raises(CorruptLogError, match=r"acknowledged up to offset .* ends at 0"):
            LogReader.open(written)
        (written / "data.mdb").unlink(missing_ok=True)


def test_an_older_copy_of_the_data_file_is_found_out(path: Path) -> None:
    with GroupLog.open_writer(path, "flights") as log:
        log.append(0, [member("W1", 1)], TIME_MS)
    older = (path / "data.mdb").read_bytes()
    with GroupLog.open_writer(path, "flights") as log:
        log.append(1, [member("W1", 2)], TIME_MS)
    (path / "data.mdb").write_bytes(older)
    with pytest.raises(CorruptLogError, match="acknowledged up to offset 2, but ends at 1"):
        GroupLog.open_writer(path, "flights")
    (path / "end.mark").unlink()
    with GroupLog.open_writer(path, "flights") as log:
        assert log.end == 1


def test_a_probe_outlives_a_log_that_kills(written: Path) -> None:
    data = written / "data.mdb"
    with data.open("r+b") as file:
        file.seek(2 * PAGE)
        file.write(bytes(data.stat().st_size - 2 * PAGE))
    with pytest.raises(CorruptLogError, match="restore the newest backup"):
        probe(written)


@pytest.mark.parametrize(
    "garbage",
    [b"x", b"x" * 100, b"x" * 100_000, bytes(100_000)],
    ids=["a byte", "100 bytes", "100,000 bytes", "100,000 zeros"],
)
def test_a_file_that_is_no_log_is_named(path: Path, garbage: bytes) -> None:
    path.mkdir(parents=True)
    (path / "data.mdb").write_bytes(garbage)
    for use in WAYS_IN:
        with pytest.raises(CorruptLogError):
            use(path)
    assert (path / "data.mdb").read_bytes() == garbage


def test_another_programs_environment_is_refused(path: Path) -> None:
    path.mkdir(parents=True)
    with lmdb.open(str(path), max_dbs=1) as env, env.begin(write=True) as txn:
        txn.put(b"key", b"value", db=env.open_db(b"theirs", txn))
    for use in WAYS_IN:
        with pytest.raises(CorruptLogError, match="not a log"):
            use(path)


def test_an_unknown_format_is_refused_and_left_alone(written: Path) -> None:
    with lmdb.open(str(written), max_dbs=4) as env, env.begin(write=True) as txn:
        txn.put(b"format", (9).to_bytes(8), db=env.open_db(b"meta", txn))
    before = (written / "data.mdb").read_bytes()
    for use in WAYS_IN:
        with pytest.raises(UnknownFormatError, match="is in format 9, this version knows 1"):
            use(written)
    assert (written / "data.mdb").read_bytes() == before


def test_a_value_that_only_its_writer_could_read_is_found_by_another_library(path: Path) -> None:
    broken_text = b"\xa1\xff"  # a string of one byte, which is no UTF-8
    with GroupLog.open_writer(path, "flights") as log:
        log.append(0, [member("W1", "v"), NewEntry(3, 0, b"W2", broken_text)], TIME_MS)
    message = "the value of entry 1 cannot be read as MessagePack"
    with LogReader.open(path, "flights") as log, pytest.raises(CorruptLogError, match=message):
        log.verify()
