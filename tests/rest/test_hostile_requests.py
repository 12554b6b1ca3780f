"""Requests that no client sends, byte by byte: each is answered once, and none by a mistake."""

import re
import socket
from contextlib import closing

from rest.conftest import RestApi

from fairlead.actors.transport.ports import HostPort
from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.interfaces.rest.server.admission import Authenticator
from fairlead.runtime.security.proofs.entries import follow_entries
from fairlead.runtime.security.settings import AccessSettings, Authentication
from fairlead_tests.rest.served import WAIT, opened_at, serving

BAD, UNKNOWN, FOREIGN, ALIVE = (f"HTTP/1.1 {status}" for status in (400, 401, 403, 200))
REQUESTS = {
    "GET / HTTP/1.1|Host: HERE|Host: evil.example": BAD,
    "GET / HTTP/1.1": BAD,
    "GET / HTTP/1.0": FOREIGN,
    "GET / HTTP/1.1|Host: evil.example": FOREIGN,
    "GET / HTTP/1.1|Host: \xe4": FOREIGN,
    "GET http://evil.example/ HTTP/1.1|Host: HERE": BAD,
    "OPTIONS * HTTP/1.1|Host: HERE": BAD,
    "CONNECT evil.example:80 HTTP/1.1|Host: HERE": BAD,
    "GET /a\0b HTTP/1.1|Host: HERE": BAD,
    "GET /a%0d%0aX:%20y HTTP/1.1|Host: HERE": BAD,
    "GET /groups/..%2F..%2Fetc/config HTTP/1.1|Host: HERE": UNKNOWN,
    "GET /../../etc/passwd HTTP/1.1|Host: HERE": UNKNOWN,
    "GET /health/live;x/../../connectors HTTP/1.1|Host: HERE": UNKNOWN,
    "GET /health%2Flive HTTP/1.1|Host: HERE": UNKNOWN,
    "GET /health/live HTTP/1.1|Host: evil.example": ALIVE,
    "FOO / HTTP/1.1|Host: HERE": UNKNOWN,
    "GET / HTTP/1.1|Host: HERE|Forwarded: for=127.0.0.1|X-Forwarded-For: 127.0.0.1": UNKNOWN,
    "GET / HTTP/1.1|Host: HERE|Authorization: Bearer a|Authorization: Bearer b": UNKNOWN,
    "GET / HTTP/1.1|Host: HERE|Authorization: Basic \xff\xfe": UNKNOWN,
    "GET / HTTP/1.1|Host: HERE|Authorization: Bearer fl_\xff": UNKNOWN,
    "GET / HTTP/1.1|Host: HERE|X: " + "a" * 100_000: UNKNOWN,
    "POST /connectors HTTP/1.1|Host: HERE|Content-Length: -4": BAD,
    "POST /connectors HTTP/1.1|Host: HERE|Content-Length: 4|Content-Length: 5": BAD,
    "POST /connectors HTTP/1.1|Host: HERE|Transfer-Encoding: xchunked": BAD,
}
"""The status of each; a bar is the end of a line, HERE the listener's own address."""
TWO_ENDS = (
    "POST /connectors HTTP/1.1|Host: HERE|Content-Length: 4|Transfer-Encoding: chunked||0||"
    "GET /health/live HTTP/1.1|Host: HERE"
)
"""A request with another one behind it, or in its body, as one reads its length."""


def statuses(place: HostPort, request: str) -> list[str]:
    """Send a request and wait for the end of the connection; return the statuses of all answers."""
    text = f"{request}|Connection: close||".replace("HERE", f"{place.host}:{place.port}")
    with closing(socket.create_connection(place, WAIT)) as client:
        client.sendall(text.replace("|", "\r\n").encode("latin-1"))
        heard = b""
        while piece := client.recv(1 << 16):
            heard += piece
    return re.findall(r"^HTTP/1\.1 \d+", heard.decode("latin-1"), re.MULTILINE)


def test_a_request_that_no_client_sends_is_answered_once_and_refused(api: RestApi) -> None:
    opened = opened_at("http://127.0.0.1:0")
    place = opened[0].listener.address
    access = AccessSettings((Authentication.BASIC, Authentication.TOKEN))
    identify = Authenticator(access, follow_entries(api.data_dir))
    with serving(make_app(api.service, [place], identify=identify, access=access), opened):
        assert {each: statuses(place, each) for each in REQUESTS} == {
            each: [status] for each, status in REQUESTS.items()
        }
        assert statuses(place, TWO_ENDS) == [BAD]
