import socket
import stat
from pathlib import Path

import pytest

from fairlead.runtime.interfaces.rest.server.listeners import (
    CannotListen,
    listen,
    listen_apart,
    parse,
)
from fairlead.runtime.security.rest_listeners import RestListener

ANY = parse("http://127.0.0.1:0")


@pytest.mark.parametrize(
    ("text", "listener"),
    [
        ("http://127.0.0.1:8083", RestListener("http", "127.0.0.1", 8083)),
        ("http://:8083", RestListener("http", "127.0.0.1", 8083)),
        ("http://h", RestListener("http", "h", 8083)),
        ("HTTPS://0.0.0.0:8083/", RestListener("https", "0.0.0.0", 8083)),
        ("http://[::1]:8083", RestListener("http", "::1", 8083)),
        ("unix:///run/a%20b.sock", RestListener("unix", path="/run/a b.sock")),
    ],
)
def test_a_listener_without_a_host_is_on_loopback(text: str, listener: RestListener) -> None:
    assert parse(text) == listener
    assert parse(listener.url) == listener


@pytest.mark.parametrize(
    "text",
    [
        *("", "8083", "ftp://:8083", "http://h:x", "http://h:1/x", "http://[", "http://a@h"),
        *("unix://run/x", "unix:///", "unix:///a%0a", "unix:///" + "x" * 107, "http://h?x"),
    ],
)
def test_what_is_no_listener_is_refused(text: str) -> None:
    with pytest.raises(CannotListen, match="is no listener"):
        parse(text)


def test_a_port_that_is_taken_leaves_nothing_open() -> None:
    (taken,) = listen([ANY])
    with taken:
        assert taken.listener.url.startswith("http://127.0.0.1:")
        with pytest.raises(CannotListen, match="Address already in use"):
            listen([ANY, taken.listener])


def test_answers_are_not_held_back_by_nagle() -> None:
    (bound,) = listen([ANY])
    with bound:
        assert bound.socket.proto == socket.IPPROTO_TCP


def test_a_unix_socket_is_its_owners_and_goes_with_the_listener(tmp_path: Path) -> None:
    path = tmp_path / ("deep" * 30) / "rest.sock"  # a longer path than a socket's name may be
    path.parent.mkdir()
    (opened,) = listen([RestListener("unix", path=str(path))])
    with opened:
        mode = path.stat().st_mode
        assert (stat.S_ISSOCK(mode), stat.S_IMODE(mode)) == (True, 0o600)
    assert not path.exists()


def test_the_socket_of_a_killed_process_is_replaced_but_not_one_that_answers(
    tmp_path: Path,
) -> None:
    listener = RestListener("unix", path=str(tmp_path / "rest.sock"))
    (left,) = listen([listener])
    left.socket.close()  # as by a `kill -9`
    (opened,) = listen([listener])
    with opened:
        with pytest.raises(CannotListen, match="Address already in use; choose another path"):
            listen([listener])
        assert (tmp_path / "rest.sock").exists()


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_is_no_socket_is_not_removed(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "rest.sock"
    if kind == "file":
        path.write_text("of others")
    else:
        path.symlink_to("nowhere")
    with pytest.raises(CannotListen, match="Address already in use"):
        listen([RestListener("unix", path=str(path))])
    assert path.is_symlink() or path.read_text() == "of others"


def test_listeners_of_admin_serve_nothing_else_unless_they_are_among_the_others() -> None:
    first, second, third = (parse(f"http://127.0.0.{number}:0") for number in (1, 2, 3))
    serve: dict[str, tuple[bool, bool]] = {}
    for each in listen_apart([first, second], [second, third]):
        with each:
            serve[each.listener.host] = each.serves_admin, each.serves_others
    assert serve == {
        "127.0.0.1": (False, True),
        "127.0.0.2": (True, True),
        "127.0.0.3": (True, False),
    }
