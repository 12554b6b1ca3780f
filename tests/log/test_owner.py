"""One owner at a time, and what becomes of one that does not know it is none any more."""

import os
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from log.conftest import Fork, Puppet

from fairlead.events.log.errors import LogError, OwnedError, OwnerFencedError
from fairlead.events.log.owner import recorded_owner
from fairlead.events.log.process import ProcessId, is_alive, start_of
from fairlead.events.log.writer import GroupLog
from fairlead_tests.log.samples import TIME_MS, member, read_back


def _own(line: Connection, path: Path) -> None:
    """Own the log and do what the test says."""
    log = GroupLog.open_writer(path, "flights")
    line.send(log.epoch)
    while True:
        (word,) = line.recv()
        if word == "stop in a transaction":
            with log._env.begin(write=True):  # pyright: ignore[reportPrivateUsage]
                os.kill(os.getpid(), signal.SIGSTOP)
        try:
            line.send(log.append(log.end, [member(str(log.epoch), word)], TIME_MS))
        except LogError as error:
            line.send((type(error), str(error)))


def _wait_until_stopped(pid: int) -> None:
    deadline = time.monotonic() + 60
    while Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "T":
        assert time.monotonic() < deadline
        time.sleep(0.005)


def _stop(puppet: Puppet) -> None:
    os.kill(puppet.pid, signal.SIGSTOP)
    _wait_until_stopped(puppet.pid)


def test_a_second_owner_is_told_who_is_the_first(path: Path, fork: Fork) -> None:
    first = fork(_own, path)
    assert first.hear() == 1
    with pytest.raises(OwnedError, match=rf"owned by the live process {first.pid}:") as refused:
        GroupLog.open_writer(path, "flights")
    assert refused.value.pid == first.pid
    assert first.ask("go on") == 1


def test_a_second_owner_in_the_same_process_is_refused(log: GroupLog, path: Path) -> None:
    with pytest.raises(OwnedError, match="in this very process"):
        GroupLog.open_writer(path, "flights")
    assert log.append(0, [member("W1", 1)], TIME_MS) == 1


def test_a_killed_owner_is_succeeded_at_once(path: Path, fork: Fork) -> None:
    first = fork(_own, path)
    assert (first.hear(), first.ask("one")) == (1, 1)
    first.kill()
    with GroupLog.open_writer(path, "flights") as log:
        assert (log.epoch, log.end) == (2, 1)


@pytest.mark.parametrize("inside", [False, True])
def test_a_stopped_owner_is_one_until_it_is_killed_and_nothing_it_acknowledged_is_lost(
    path: Path, fork: Fork, inside: bool
) -> None:
    first = fork(_own, path)
    assert (first.hear(), first.ask("one")) == (1, 1)
    if inside:
        first.line.send(("stop in a transaction",))
        _wait_until_stopped(first.pid)
    else:
        _stop(first)
    with pytest.raises(OwnedError):
        GroupLog.open_writer(path, "flights")
    first.kill()
    with GroupLog.open_writer(path, "flights") as log:
        assert log.epoch == 2
        assert log.read(0) == ([read_back(0, member("1", "one"))], 1)
        assert log.append(1, [member("2", "two")], TIME_MS) == 2


def test_an_owner_that_lost_its_lock_is_fenced_when_it_wakes(path: Path, fork: Fork) -> None:
    first = fork(_own, path)
    assert (first.hear(), first.ask("one")) == (1, 1)
    _stop(first)
    (path / "owner.lock").unlink()  # as people do
    with GroupLog.open_writer(path, "flights") as log:
        assert log.append(1, [member("2", "two")], TIME_MS) == 2
        os.kill(first.pid, signal.SIGCONT)
        kind, text = first.ask("late")
        assert kind is OwnerFencedError
        assert "an owner of epoch 2, this one is of 1: nothing was written; exit" in text
        expected = [read_back(0, member("1", "one")), read_back(1, member("2", "two"))]
        assert log.read(0) == (expected, 2)


def test_an_owner_stopped_in_a_transaction_makes_the_next_wait_and_is_then_fenced(
    path: Path, fork: Fork
) -> None:
    first = fork(_own, path)
    assert first.hear() == 1
    first.line.send(("stop in a transaction",))
    _wait_until_stopped(first.pid)
    (path / "owner.lock").unlink()
    second = fork(_own, path)
    assert not second.line.poll(0.2)
    os.kill(first.pid, signal.SIGCONT)
    assert second.hear() == 2
    # The first one's append runs before the claim's transaction, or behind it.
    answer = first.hear()
    assert answer == 1 or answer[0] is OwnerFencedError
    end = 1 if answer == 1 else 0
    assert first.ask("late")[0] is OwnerFencedError
    assert second.ask("two") == end + 1


def test_a_process_that_has_only_the_pid_of_another_is_not_that_one() -> None:
    me = start_of(os.getpid())
    assert is_alive(ProcessId(os.getpid(), me))
    assert not is_alive(ProcessId(os.getpid(), me + "0"))
    assert not is_alive(ProcessId(os.getpid(), ""))
    assert not is_alive(ProcessId(1 << 22, me))


@pytest.mark.parametrize("record", [b"", b"\0" * 256, b"[]", b"{}", b'{"pid": "x"}', b"\xff"])
def test_an_unreadable_owner_record_names_nobody(tmp_path: Path, record: bytes) -> None:
    (tmp_path / "owner.lock").write_bytes(record)
    assert recorded_owner(tmp_path) is None
