"""What a service manager hears of a process: by a real socket, and nothing where nobody asks."""

import os
import time
from pathlib import Path

import pytest

from fairlead.runtime.processes.service_manager import ServiceManager
from fairlead_tests.installed.service import listening


def received(address: str, service: ServiceManager) -> list[str]:
    """Report one of each kind; return the messages as they came."""
    with listening(address) as reports:
        service.tell_starting("begins")
        service.tell_ready("serves")
        service.tell_alive("serves", is_well=True)
        service.tell_alive("is slow", is_well=False)
        service.tell_stopping("ends")
        reports.socket.settimeout(0.01)
        messages: list[str] = []
        while not messages or "STOPPING" not in messages[-1]:
            messages.append(reports.socket.recv(4096).decode())
    return messages


@pytest.mark.parametrize("is_abstract", [False, True])
def test_each_state_is_one_message(tmp_path: Path, is_abstract: bool) -> None:
    address = f"@fairlead-{os.getpid()}" if is_abstract else str(tmp_path / "notify")
    environ = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "30000000", "HOME": "/"}
    service = ServiceManager(environ)
    assert environ == {"HOME": "/"}, "child processes must not report in its place"
    assert received(address, service) == [
        "EXTEND_TIMEOUT_USEC=60000000\nSTATUS=begins",
        "READY=1\nSTATUS=serves",
        "WATCHDOG=1",
        "STATUS=is slow",
        "STOPPING=1\nSTATUS=ends",
    ]


@pytest.mark.parametrize(
    ("variables", "pings"),
    [
        ({"WATCHDOG_USEC": "3000000"}, True),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "77"}, True),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "78"}, False),
        ({"WATCHDOG_USEC": "soon"}, False),
        ({}, False),
    ],
)
def test_only_a_watchdog_of_this_process_is_told(
    tmp_path: Path, variables: dict[str, str], pings: bool
) -> None:
    address = str(tmp_path / "notify")
    service = ServiceManager({"NOTIFY_SOCKET": address, **variables}, pid=77)
    assert ("WATCHDOG=1" in received(address, service)) == pings


def test_a_watchdog_is_told_three_times_in_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, times = str(tmp_path / "notify"), [100.0, 109.0, 110.0, 119.9, 120.0]
    monkeypatch.setattr(time, "monotonic", iter(times).__next__)
    service = ServiceManager({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "30000000"})
    with listening(address) as reports:
        for _ in times:
            service.tell_alive("", is_well=True)
        reports.socket.settimeout(0)
        assert [reports.socket.recv(64) for _ in range(3)] == [b"WATCHDOG=1"] * 3
        with pytest.raises(BlockingIOError):
            reports.socket.recv(64)


def test_a_status_is_one_line(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    service = ServiceManager({"NOTIFY_SOCKET": address})
    with listening(address) as reports:
        service.tell_ready("a\nREADY=0\rb")
        assert reports.socket.recv(64) == b"READY=1\nSTATUS=a READY=0 b"


def test_nobody_who_listens_is_no_error(tmp_path: Path) -> None:
    ServiceManager().tell_ready("x")
    ServiceManager({}).tell_ready("x")
    ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "gone")}).tell_ready("x")
    ServiceManager({"NOTIFY_SOCKET": "x" * 300}).tell_ready("x")


def test_a_full_queue_does_not_hold_the_process_up(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    service = ServiceManager({"NOTIFY_SOCKET": address})
    with listening(address):
        for number in range(2_000):
            service.tell_alive(str(number), is_well=True)
