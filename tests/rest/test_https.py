"""https listeners and Unix sockets, with real certificates and a real server."""

import getpass
import json
import logging
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from rest.conftest import RestApi
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from fairlead.actors.transport.ports import HostPort
from fairlead.runtime.interfaces.rest.app import make_app
from fairlead.runtime.interfaces.rest.server import connections
from fairlead.runtime.interfaces.rest.server.admission import Authenticator
from fairlead.runtime.interfaces.rest.server.connections import CONNECTION, Encryption
from fairlead.runtime.interfaces.rest.server.principals import principal_at_ends
from fairlead.runtime.security.proofs.entries import follow_entries
from fairlead.runtime.security.settings import AccessSettings, Authentication
from fairlead.runtime.security.tls import ServerTls, TlsSettings
from fairlead_tests.certificates import Authority
from fairlead_tests.rest.client import Client
from fairlead_tests.rest.served import WAIT, opened_at, serving

CA = Authority()
UNKNOWN_AUTHORITY = 60
"""The exit code of curl."""


@pytest.fixture
def keystore(tmp_path: Path) -> Path:
    return CA.issue("first").write(tmp_path / "server.pem")


@pytest.fixture
def encryption(tmp_path: Path, keystore: Path) -> Encryption:
    """Encryption that asks clients for certificates."""
    trust = CA.write(tmp_path / "ca.pem")
    settings = TlsSettings(
        keystore_location=str(keystore), truststore_location=str(trust), client_auth="requested"
    )
    return Encryption(ServerTls(settings))


async def show(scope: Scope, _: Receive, send: Send) -> None:
    """Answer with what the scope says of the connection."""
    if scope["type"] == "lifespan":
        return
    known = {name: each for name, each in scope["extensions"].items() if name != CONNECTION}
    body = json.dumps({**known, "who": principal_at_ends(Request(scope)).name}).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def trusting(own: Path | None = None) -> ssl.SSLContext:
    """Return the context of a client."""
    context = ssl.create_default_context(cadata=CA.pem.decode())
    if own is not None:
        context.load_cert_chain(own)
    return context


@pytest.fixture
def place(encryption: Encryption) -> Iterator[HostPort]:
    """An https listener."""
    with serving(show, opened_at("https://127.0.0.1:0"), encryption) as (listener,):
        yield listener.address


def read(place: HostPort, own: Path | None = None) -> dict[str, Any]:
    """Ask an https listener what it knows of the connection."""
    answer: dict[str, Any] = httpx.get(
        f"https://localhost:{place.port}/", verify=trusting(own)
    ).json()
    return answer


def certificate_of(place: HostPort) -> str:
    """Return the name in the certificate of a new connection."""
    plain = socket.create_connection(place, WAIT)
    with closing(trusting().wrap_socket(plain, server_hostname="localhost")) as secured:
        found: Any = secured.getpeercert()
        return str(dict(pair[0] for pair in found["subject"])["commonName"])


def test_the_subject_of_a_clients_certificate_reaches_the_scope(
    place: HostPort, tmp_path: Path
) -> None:
    ann = CA.issue("ann", organization="acme")
    told = read(place, ann.write(tmp_path / "ann.pem"))
    assert told["tls"] == {
        "server_cert": None,
        "client_cert_chain": [ann.chain_pem().decode()],
        "client_cert_name": "CN=ann,O=acme",
        "client_cert_not_after": ann.chain[0].not_valid_after_utc.timestamp(),
        "client_cert_error": None,
        "tls_version": 0x0304,
        "cipher_suite": None,
    }
    assert read(place)["tls"]["client_cert_name"] is None


def test_a_replaced_certificate_serves_new_connections_and_a_bad_one_changes_nothing(
    place: HostPort, keystore: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert certificate_of(place) == "first"
    whole = keystore.read_bytes()
    keystore.write_bytes(whole[:-90])
    assert certificate_of(place) == "first"
    (warning,) = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert warning.message.startswith(str(keystore))
    CA.issue("second").write(keystore)
    assert certificate_of(place) == "second"


def test_handshakes_that_fail_are_counted_and_logged_at_debug_only(
    place: HostPort, encryption: Encryption, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for sent in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"\x00" * 99):
        with closing(socket.create_connection(place, WAIT)) as hostile:
            hostile.sendall(sent)
            hostile.shutdown(socket.SHUT_WR)
            while hostile.recv(4096):
                pass
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"https://localhost:{place.port}/")  # it does not trust the authority
    deadline = time.monotonic() + WAIT
    while encryption.failed_handshakes < 5 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert encryption.failed_handshakes == 5
    assert read(place)["tls"]["tls_version"] == 0x0304
    told = [each for each in caplog.records if each.name.startswith(("fairlead", "asyncio"))]
    assert {each.levelno for each in told} == {logging.DEBUG}


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01\x02\x00\x01\x00"])
def test_a_client_that_begins_no_handshake_is_closed(
    sent: bytes, encryption: Encryption, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "SECONDS", dict.fromkeys(connections.SECONDS, 0.3))
    with serving(show, opened_at("https://127.0.0.1:0"), encryption) as (listener,):
        with closing(socket.create_connection(listener.address, WAIT)) as silent:
            silent.sendall(sent)
            assert silent.recv(4096) == b""
        plain = socket.create_connection(listener.address, WAIT)
        secured = trusting().wrap_socket(plain, server_hostname="localhost")
        with closing(secured):  # and one that sends no request is answered 408
            assert secured.recv(4096).startswith(b"HTTP/1.1 408 ")


def test_beyond_the_maximum_the_oldest_handshake_makes_room(
    place: HostPort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_HANDSHAKES", 3)
    crowd = [socket.create_connection(place, WAIT) for _ in range(6)]
    assert certificate_of(place) == "first"
    for each in crowd[:3]:
        with suppress(ConnectionError):
            assert each.recv(1) == b""
    for each in crowd:
        each.close()


def test_a_request_that_comes_with_the_end_of_the_handshake_is_answered(place: HostPort) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    secured = trusting().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with closing(socket.create_connection(place, WAIT)) as plain:
        while True:
            try:
                secured.do_handshake()
                break
            except ssl.SSLWantReadError:
                plain.sendall(outgoing.read())
                incoming.write(plain.recv(1 << 16))
        secured.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        plain.sendall(outgoing.read())  # the client's Finished and the request in one
        heard = b""
        while not heard.endswith(b"}"):
            incoming.write(plain.recv(1 << 16))
            with suppress(ssl.SSLWantReadError):
                while piece := secured.read():
                    heard += piece
    assert heard.startswith(b"HTTP/1.1 200 OK")


def test_the_caller_of_a_unix_socket_is_who_the_kernel_says(tmp_path: Path) -> None:
    path = tmp_path / "rest.sock"
    with serving(show, opened_at(f"unix://{path}")):
        transport = httpx.HTTPTransport(uds=str(path))
        with httpx.Client(transport=transport) as client:
            told = client.get("http://localhost/").json()
    assert told["who"] == f"rest unix ({getpass.getuser()})"
    served = {"admin": True, "others": True, "own": False}
    assert told["fairlead.listener"] == {"url": f"unix://{path}", **served}
    assert not path.exists()


def test_of_two_unix_sockets_only_the_nodes_own_asks_its_user_for_nothing(
    api: RestApi, tmp_path: Path
) -> None:
    own, other = opened_at(f"unix://{tmp_path}/own", f"unix://{tmp_path}/other")
    access = AccessSettings((Authentication.TOKEN,))
    identify = Authenticator(access, follow_entries(api.data_dir))
    app = make_app(api.service, (), identify=identify, access=access)
    statuses: list[int] = []
    with serving(app, [replace(own, is_own=True), other]) as listeners:
        for each in listeners:
            with httpx.Client(transport=httpx.HTTPTransport(uds=each.path)) as client:
                statuses.append(client.get("http://localhost/connectors").status_code)
    assert statuses == [200, 401]


def test_several_listeners_serve_at_once_each_for_its_own_name(
    api: RestApi, tmp_path: Path, encryption: Encryption
) -> None:
    opened = opened_at("http://127.0.0.1:0", "https://127.0.0.1:0", f"unix://{tmp_path}/s")
    places = [each.listener.address for each in opened[:2]]
    with serving(make_app(api.service, places), opened, encryption) as (plain, secure, unix):
        assert httpx.get(f"{plain.url}/connectors").json() == []
        assert httpx.get(f"{secure.url}/connectors", verify=trusting()).json() == []
        with httpx.Client(transport=httpx.HTTPTransport(uds=unix.path)) as client:
            assert client.get("http://localhost/connectors").json() == []
            for headers in ({"host": "evil.example"}, {"origin": "http://evil.example"}):
                refused = client.get("http://localhost/connectors", headers=headers)
                assert refused.status_code == 403
        wrong = {"host": "evil.example"}
        answer = httpx.get(f"{secure.url}/", headers=wrong, verify=trusting())
        assert answer.status_code == 403


def test_metrics_tell_the_end_of_the_certificate_that_the_file_has_now(
    api: RestApi, keystore: Path, encryption: Encryption
) -> None:
    client = Client(make_app(replace(api.service, encryption=encryption)))
    name = "fairlead_certificate_not_after_timestamp_seconds"
    new = CA.issue("second", ends=timedelta(days=30))
    new.write(keystore)
    end = new.chain[0].not_valid_after_utc.timestamp()
    told = client.get("/metrics").text
    (line,) = [each for each in told.splitlines() if each.startswith(f'{name}{{listener="rest"}}')]
    assert float(line.split()[1]) == end
    assert 'fairlead_tls_failed_handshakes_total{listener="rest"} 0.0' in told
    assert f"{name}{{" not in api.client.get("/metrics").text


def test_admin_is_served_at_its_own_listeners_alone(api: RestApi) -> None:
    (plain,), (admin,) = opened_at("http://127.0.0.1:0"), opened_at("http://127.0.0.1:0")
    opened = [replace(plain, serves_admin=False), replace(admin, serves_others=False)]
    paths = ("/connectors", "/admin", "/admin/loggers", "//admin/loggers", "/admin%2Floggers")
    with serving(
        make_app(api.service, [each.listener.address for each in opened]), opened
    ) as listeners:
        answered = [
            [path for path in paths if httpx.get(f"{each.url}{path}").status_code == 200]
            for each in listeners
        ]
    assert answered == [["/connectors"], ["/admin/loggers"]]


def run(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


@pytest.mark.skipif(None in map(shutil.which, ("curl", "openssl")), reason="needs curl, openssl")
def test_curl_and_openssl_reach_it(place: HostPort, tmp_path: Path) -> None:
    ca = str(tmp_path / "ca.pem")
    url = f"https://localhost:{place.port}/"
    own = ["--cert", str(CA.issue("ann").write(tmp_path / "ann.pem"))]
    told = json.loads(run("curl", "-sS", "--cacert", ca, *own, url).stdout)
    assert told["tls"]["client_cert_name"] == "CN=ann"
    assert run("curl", "-sS", url).returncode == UNKNOWN_AUTHORITY
    old = run("openssl", "s_client", "-connect", f"localhost:{place.port}", "-tls1_1")
    assert old.returncode != 0
