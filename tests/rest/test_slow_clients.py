"""Who sends a request slowly, or many at once, keeps nobody else from being answered."""

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress

import httpx
import pytest
from rest.conftest import RestApi
from starlette.types import Receive, Scope, Send

from fairlead.actors.transport.ports import HostPort
from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.interfaces.rest.server import connections
from fairlead_tests.rest.served import WAIT, opened_at, serving

LATE = b'{"error_code":408,"message":"the request took too long to come; nothing was done"}'


@pytest.fixture
def place(api: RestApi, monkeypatch: pytest.MonkeyPatch) -> Iterator[HostPort]:
    """Where the real server listens, one of little patience."""
    monkeypatch.setattr(connections, "SECONDS", dict.fromkeys(connections.SECONDS, 0.8))
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 8)
    opened = opened_at("http://127.0.0.1:0")
    app = make_app(api.service, [opened[0].listener.address])
    with serving(app, opened) as (listener,):
        yield listener.address


def test_a_trickle_of_headers_is_ended(place: HostPort) -> None:
    with closing(socket.create_connection(place, WAIT)) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        heard = _trickle(slow, b"x-more: 1\r\n")
    assert heard.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert heard.endswith(b"connection: close\r\n\r\n" + LATE)


def test_a_connection_that_says_nothing_is_ended(place: HostPort) -> None:
    with closing(socket.create_connection(place, WAIT)) as silent:
        assert _all(silent).endswith(LATE)


def test_a_trickle_of_a_body_is_ended_without_a_change(place: HostPort, api: RestApi) -> None:
    head = f"POST /connectors HTTP/1.1\r\nHost: {place.host}:{place.port}\r\n"
    head += "Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{"
    with closing(socket.create_connection(place, WAIT)) as slow:
        slow.sendall(head.encode())
        heard = _trickle(slow, b" ")
    assert heard.endswith(LATE)
    assert api.gateway.sent == []


def test_a_further_request_on_a_connection_is_given_its_own_time(place: HostPort) -> None:
    get = f"GET / HTTP/1.1\r\nHost: {place.host}:{place.port}\r\n\r\n".encode()
    with closing(socket.create_connection(place, WAIT)) as kept:
        for _ in range(3):
            kept.sendall(get)
            assert _until(kept, b"}").startswith(b"HTTP/1.1 200 OK")
            time.sleep(0.3)  # three of them are more than one request is given
        kept.sendall(get[:10])
        assert _trickle(kept, b"y").endswith(LATE)


def test_those_that_wait_longest_make_room_for_others(place: HostPort) -> None:
    with ExitStack() as stack:
        crowd = [
            stack.enter_context(closing(socket.create_connection(place, WAIT))) for _ in range(30)
        ]
        assert httpx.get(f"{place.url}/").status_code == 200
        assert all(_all(each).endswith((LATE, b"")) for each in crowd)
    assert httpx.get(f"{place.url}/").status_code == 200


def test_answers_without_an_end_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 8)

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        await send({"type": "http.response.start", "status": 200})
        is_endless = scope["path"] == "/endless"
        await send({"type": "http.response.body", "body": b"x", "more_body": is_endless})
        while is_endless and (await receive())["type"] != "http.disconnect":
            pass

    with serving(endless, opened_at("http://127.0.0.1:0")) as (listener,), ExitStack() as stack:
        place = listener.address
        for _ in range(10):
            stream = stack.enter_context(closing(socket.create_connection(place, WAIT)))
            stream.sendall(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
            assert _until(stream, b"x\r\n").startswith(b"HTTP/1.1 200 OK")
        assert httpx.get(f"{place.url}/").text == "x"


def test_each_answer_has_the_date_of_its_time(
    place: HostPort, monkeypatch: pytest.MonkeyPatch
) -> None:
    def date_at(seconds: float) -> str:
        monkeypatch.setattr(time, "time", lambda: seconds)
        return httpx.get(f"{place.url}/").headers["date"]

    first, later = "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 02 Jan 1970 00:00:00 GMT"
    assert [date_at(0.0), date_at(0.9), date_at(86_400.0)] == [first, first, later]


def test_a_server_that_nobody_asks_does_not_wake(
    place: HostPort, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses, sleep = list[float](), asyncio.sleep

    async def noted(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(seconds)

    monkeypatch.setattr(asyncio, "sleep", noted)
    assert httpx.get(f"{place.url}/").status_code == 200
    time.sleep(0.3)  # uvicorn's own server looks ten times a second whether it is to end
    assert pauses == []


def _trickle(slow: socket.socket, piece: bytes) -> bytes:
    """Send a piece again and again until the other side has had enough; return its answer."""
    deadline = time.monotonic() + WAIT
    slow.settimeout(0.02)
    while time.monotonic() < deadline:
        try:
            return slow.recv(1 << 16)
        except TimeoutError:
            with suppress(ConnectionError):
                slow.sendall(piece)
    raise AssertionError("nobody ends it")


def _until(connection: socket.socket, end: bytes) -> bytes:
    heard = b""
    while not heard.endswith(end):
        heard += connection.recv(1 << 16)
    return heard


def _all(connection: socket.socket) -> bytes:
    heard = b""
    try:
        while piece := connection.recv(1 << 16):
            heard += piece
    except ConnectionError:
        pass
    return heard
