"""Which nodes an owner has heard of, which of them clients are told, and its own listener."""

import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fairlead.actors.messages.commands import NODE_LIVES_MS, NodeReport
from fairlead.actors.transport.ports import HostPort
from fairlead.runtime.node.door.nodes import NodeReports, OwnListener, listeners_of

DAY_MS = 24 * 3_600_000


def report(name: str, heard_ms: int = 0, version: str = "1") -> NodeReport:
    return NodeReport(name, f"{name}:9094", f"{name}:8083", version, heard_ms=heard_ms)


def test_a_listener_is_reached_by_its_name_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        listener = OwnListener(HostPort("localhost", server.getsockname()[1]))
        assert listener.is_open()
        with monkeypatch.context() as patched:
            patched.setattr(socket, "getaddrinfo", by_number(socket.getaddrinfo))
            assert listener.is_open()
    assert not listener.is_open()
    assert OwnListener(None).is_open()


def by_number(look_up: Callable[..., Any]) -> Callable[..., Any]:
    """Return a name server that knows no names."""

    def number_only(host: str, *more: Any) -> Any:
        assert host == "127.0.0.1"
        return look_up(host, *more)

    return number_only


def test_of_each_node_the_latest_report_is_told_with_its_age() -> None:
    heard = NodeReports()
    heard.note(report("n2", version="2"), 1_000)
    heard.note(report("n1", 300), 1_000)  # as an owner heard it
    heard.note(report("n2", 1), 1_000)  # of before
    assert heard.reports(3_000) == (report("n1", 2_300), report("n2", 2_000, "2"))


def test_no_report_is_of_a_time_to_come() -> None:
    heard = NodeReports()
    heard.note(report("n1", -60_000), 1_000)
    heard.note(report("n1", version="2"), 2_000)
    assert heard.reports(2_000) == (report("n1", version="2"),)


def test_a_node_is_forgotten_a_day_later() -> None:
    heard = NodeReports()
    heard.note(report("n1"), 0)
    heard.note(report("n2"), 1)
    assert heard.reports(DAY_MS) == (report("n2", DAY_MS - 1),)


def test_names_that_are_made_up_push_out_nobody() -> None:
    heard = NodeReports()
    for number in range(1_100):
        heard.note(report(f"n{number:04}"), 0)
    heard.note(report("n0001"), 5)
    reports = {each.name: each.heard_ms for each in heard.reports(5)}
    assert (len(reports), reports["n0001"], reports["n0999"]) == (1_000, 0, 5)


def test_nodes_that_share_a_name_are_logged_once_and_one_that_moved_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reports = NodeReports()
    for time_ms in range(0, 6_000, 1_000):
        place = "a:9094" if time_ms % 2_000 else "b:9094"
        reports.note(replace(report("n1"), address=place), time_ms)
        reports.note(replace(report("n2"), address="c" if time_ms < 3_000 else "d"), time_ms)
    text = "the nodes at a:9094 and b:9094 are both called n1: give each a node.name of its own"
    assert caplog.messages == [text]


def test_a_node_with_another_key_of_the_cluster_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reports = NodeReports()
    reports.note(replace(report("n0"), cluster="other"), 0)
    reports.cluster = "ours"
    for time_ms in (1_000, 2_000):
        for name, cluster in (("n1", "ours"), ("n2", "other"), ("n3", "")):
            reports.note(replace(report(name), cluster=cluster), time_ms)
    (told,) = caplog.messages
    assert told.startswith("node n2 has another key of the cluster than this one")


def test_clients_are_told_of_nodes_that_live_and_listen() -> None:
    silent = NodeReport("n4", "", "n4:8083", "1")
    dead, living = report("n3", NODE_LIVES_MS), report("n2", NODE_LIVES_MS - 1)
    assert listeners_of((report("n1"), living, dead, silent), "n1") == (("n2", "n2:9094"),)
