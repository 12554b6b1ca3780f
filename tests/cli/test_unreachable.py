"""What is said when the cluster does not answer, or is none."""

import socket
import threading
from pathlib import Path

import pytest
from cli.conftest import Cluster, Run

from fairlead.actors.transport.ports import free_port


@pytest.fixture
def nowhere() -> str:
    return f"http://127.0.0.1:{free_port()}"


@pytest.mark.parametrize("verb", ["status", "get tasks", "describe group g", "delete connector c"])
def test_a_cluster_that_is_not_there_has_an_exit_code_of_its_own(
    verb: str, run: Run, nowhere: str
) -> None:
    assert run(*verb.split(), "--url", nowhere) == (
        3,
        "",
        f"fairlead: no cluster answers at {nowhere} (--url): start one with `fairlead up`, or name"
        " another with --url\n",
    )


def test_where_an_address_comes_from_is_said(run: Run, nowhere: str) -> None:
    note = Path("data/run/node.json").absolute()
    note.parent.mkdir(parents=True)
    note.write_text(f'{{"rest": "{nowhere}"}}')
    noted = run("get", "groups", "--data-dir", "data")
    configured = run("get", "groups", "--set", f"listeners={nowhere}")
    assert (noted.code, configured.code) == (3, 3)
    assert noted.err.startswith(f"fairlead: no cluster answers at {nowhere} (from {note}): ")
    assert configured.err.startswith(
        f"fairlead: no cluster answers at {nowhere} (the configured listener): "
    )


def test_the_password_of_an_address_is_not_repeated(run: Run, nowhere: str) -> None:
    ended = run("get", "groups", "--url", nowhere.replace("//", "//me:hunter2@"))
    assert ended.code == 3
    assert "hunter2" not in ended.err


def test_a_server_that_hangs_up_is_not_reached(run: Run) -> None:
    def hang_up() -> None:
        server.accept()[0].close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        thread = threading.Thread(target=hang_up)
        thread.start()
        ended = run("delete", "connector", "c", "--url", url)
        thread.join()
    assert ended.code == 3
    assert ended.err.endswith("; whether it took place is unknown: look, then repeat\n")


def test_a_server_of_another_kind_is_told_apart(run: Run, cluster: Cluster) -> None:
    cluster.answer("GET", "/groups", b"<html>hello\x1b</html>")
    assert run("get", "groups", "--url", cluster.url) == (
        1,
        "",
        f"fairlead: {cluster.url} (--url) answers, but not as a cluster does (HTTP 200,"
        " '<html>hello\\x1b</html>'): is it the right --url?\n",
    )


def test_an_error_is_told_in_the_cluster_s_words(run: Run, cluster: Cluster) -> None:
    cluster.answer("GET", "/groups", {"error_code": 500, "message": "the log is damaged"}, 500)
    cluster.answer("GET", "/workers", [], 500)
    assert run("get", "groups", "--url", cluster.url) == (
        1,
        "",
        "fairlead: the log is damaged (HTTP 500)\n",
    )
    assert run("get", "workers", "--url", cluster.url) == (
        1,
        "",
        "fairlead: HTTP 500, without a message (HTTP 500)\n",
    )


@pytest.mark.parametrize("url", ["", "8083", "ftp://127.0.0.1", "http://"])
def test_an_address_that_is_none_is_a_misuse(url: str, run: Run) -> None:
    assert run("get", "groups", "--url", url) == (
        2,
        "",
        f"fairlead: --url is no http URL: {url!r}\n",
    )


@pytest.mark.parametrize("url", ["http://[::1", "http://[::x]:1", "http://127.0.0.1:99999"])
def test_an_address_that_cannot_be_parsed_is_a_misuse_too(url: str, run: Run) -> None:
    told = run("get", "groups", "--url", url)
    assert (told.code, told.out) == (2, "")
    assert told.err.startswith(f"fairlead: --url is no http URL: {url!r}: ")


def test_a_note_that_says_nothing_is_named(run: Run) -> None:
    note = Path("data/run/node.json").absolute()
    note.parent.mkdir(parents=True)
    for content in (b"", b"[]", b"\xff", b'{"rest": null}'):
        note.write_bytes(content)
        assert run("get", "groups", "--data-dir", "data") == (
            1,
            "",
            f"fairlead: {note} does not say where the node is reached: give the cluster's --url\n",
        )


def test_why_nobody_can_be_reached_is_said_unless_it_is_that_nobody_is_there(
    run: Run, cluster: Cluster
) -> None:
    encrypted = cluster.url.replace("http:", "https:")
    told = run("get", "groups", "--url", encrypted)
    assert (told.code, told.out) == (3, "")
    assert told.err == (
        f"fairlead: {encrypted} (--url) and this client did not agree: it does not speak TLS: if"
        " its URL begins with http://, write that\n"
    )
