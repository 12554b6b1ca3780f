"""A node does not start where something else listens, and says what that is."""

import os
import socket
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from fairlead.actors.transport import ports
from fairlead.actors.transport.ports import UNSEEN, PortTakenError, check_free, free_port
from fairlead.runtime.config.load import load_config
from fairlead.runtime.config.sources import ConfigError
from fairlead.runtime.node.launcher.commands import FAILED, up

ME = f"(pid {os.getpid()})"


@contextmanager
def listening(host: str, port: int = 0, *, dual: bool = False) -> Generator[int]:
    """Listen at a host, and give the port; 0: any."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        server = socket.create_server((host, port), family=family, dualstack_ipv6=dual)
    except OSError as error:
        pytest.skip(f"{host} cannot be listened at: {error}")
    with server:
        yield server.getsockname()[1]


def is_free(host: str, port: int) -> bool:
    """Tell whether a node would take a port, and can."""
    check_free(host, port)
    with socket.create_server((host, port)) as server:
        return bool(server.getsockname()[1] == port)


@pytest.mark.parametrize(
    ("other", "ours"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),
        ("::", "127.0.0.1"),
        ("::1", "::1"),
        ("::", "::1"),
        ("127.0.0.1", "localhost"),
    ],
)
def test_who_has_a_port_is_named_wherever_it_overlaps(other: str, ours: str) -> None:
    with listening(other, dual=other == "::") as port:
        with pytest.raises(PortTakenError) as caught:
            check_free(ours, port)
        assert str(caught.value).startswith(f"port {port} of {ours} is taken by ")
        assert str(caught.value).endswith(ME)


@pytest.mark.parametrize(("other", "ours"), [("::1", "127.0.0.1"), ("127.0.0.2", "127.0.0.1")])
def test_a_port_of_another_address_is_free(other: str, ours: str) -> None:
    with ExitStack() as stack:
        with listening(ours) as port:  # so no other program has it
            stack.enter_context(listening(other, port))
        assert is_free(ours, port)


@pytest.mark.parametrize(
    ("host", "bound", "is_in_its_way"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "127.0.0.2", False),
        ("127.0.0.1", "0.0.0.0", True),
        ("0.0.0.0", "127.0.0.2", True),
        ("127.0.0.1", "::ffff:127.0.0.1", True),
        ("127.0.0.1", "::ffff:127.0.0.2", False),
        ("fe80::1", "fe80::1%lo", True),
        ("127.0.0.1", "fe80::1%lo", False),
        ("localhost", "127.0.0.2", True),
    ],
)
def test_a_socket_of_an_address_is_in_the_way_of_its_own_or_of_all(
    host: str, bound: str, is_in_its_way: bool
) -> None:
    assert ports._overlap(host, bound) is is_in_its_way  # pyright: ignore[reportPrivateUsage]


def test_a_connection_that_has_a_port_is_named_as_well() -> None:
    with listening("127.0.0.1") as server, socket.socket() as client:
        client.bind(("127.0.0.1", 0))
        client.connect(("127.0.0.1", server))
        with pytest.raises(PortTakenError, match=r"is taken by .* \(pid \d+\)"):
            check_free("127.0.0.1", client.getsockname()[1])


def test_a_program_that_cannot_be_seen_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    def unseen(*_: object) -> Iterator[tuple[str, None]]:
        return iter([("LISTEN", None)])

    monkeypatch.setattr(ports, "_sockets", unseen)
    with listening("127.0.0.1") as port, pytest.raises(PortTakenError) as caught:
        check_free("127.0.0.1", port)
    assert str(caught.value) == f"port {port} of 127.0.0.1 is taken by {UNSEEN}"


@pytest.mark.parametrize("key", ["listeners", "actor.port"])
def test_up_ends_at_once_where_a_port_is_taken(
    key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with listening("0.0.0.0") as port:
        value = f"http://127.0.0.1:{port}" if key == "listeners" else str(port)
        settings = [f"data.dir={tmp_path}", "listeners=http://127.0.0.1:0", f"{key}={value}"]
        assert up(load_config(None, {}, settings)) == FAILED
    said = capsys.readouterr().err
    assert said.startswith(f"not started: port {port} of 127.0.0.1 is taken by ")
    assert said.endswith(f"{ME}; end that program, or choose another port with {key}\n")
    assert [each.name for each in (tmp_path / "run").iterdir()] == ["lock"]


def test_the_rest_interface_and_the_actors_need_a_port_each() -> None:
    with pytest.raises(ConfigError, match="name the same port, 9000"):
        load_config(None, {}, ["listeners=http://127.0.0.1:9000", "actor.port=9000"])


def test_a_port_that_is_chosen_is_never_given_to_a_connection_meanwhile() -> None:
    first, last = map(int, ports.CONNECTIONS.read_text().split())
    chosen = {free_port() for _ in range(50)}
    assert len(chosen) > 40
    assert not [port for port in chosen if first <= port <= last]


def test_a_port_that_is_taken_is_not_chosen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with listening("127.0.0.1") as taken:
        (tmp_path / "range").write_text(f"{taken + 1}\t{taken + 9}\n")
        monkeypatch.setattr(ports, "FIRST_PORT", taken)
        monkeypatch.setattr(ports, "CONNECTIONS", tmp_path / "range")
        assert free_port() != taken


def test_a_port_is_chosen_where_the_system_does_not_tell_what_it_gives(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(ports, "CONNECTIONS", tmp_path / "absent")
    assert is_free("127.0.0.1", free_port())
