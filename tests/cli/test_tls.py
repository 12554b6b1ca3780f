"""The command line over https and over the socket of a node: what it needs, and what it says."""

import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from socketserver import UnixStreamServer

import pytest
from cli.conftest import Run

from fairlead.runtime.security.tls import ServerTls, TlsSettings
from fairlead_tests.certificates import DAY, Authority

CA = Authority()
PLUGINS: list[object] = []


class Answering(BaseHTTPRequestHandler):
    """Answers every request with an empty list."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"[]")

    def address_string(self) -> str:
        return "client"  # one of a Unix socket has no address

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Encrypted(HTTPServer):
    """A server of https that survives failed handshakes."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.socket = context.wrap_socket(
            self.socket, server_side=True, do_handshake_on_connect=False
        )

    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that go away."""


@pytest.fixture
def serve(tmp_path: Path) -> Iterator["Serve"]:
    serving = Serve(tmp_path)
    yield serving
    serving.stop()


class Serve:
    """Starts servers of https with certificates of the test's authority."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca = str(CA.write(folder / "ca.pem"))
        self._servers: list[HTTPServer | UnixStreamServer] = []

    def https(self, name: str = "localhost", **more: str) -> str:
        """Start a server with a certificate for a host; return its URL."""
        store = CA.issue("server", [name]).write(self.folder / f"server{len(self._servers)}.pem")
        settings = TlsSettings(keystore_location=str(store), **more)
        return self.start(Encrypted(ServerTls(settings).context()), "https")

    def start(self, server: HTTPServer, scheme: str = "http") -> str:
        """Serve, and return the URL."""
        self._serve(server)
        return f"{scheme}://localhost:{server.server_port}"

    def socket(self, path: Path) -> None:
        """Serve at a Unix socket."""
        self._serve(UnixStreamServer(str(path), Answering))

    def _serve(self, server: HTTPServer | UnixStreamServer) -> None:
        threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
        self._servers.append(server)

    def stop(self) -> None:
        """End all."""
        for each in self._servers:
            each.shutdown()
            each.server_close()


LIST = ("get", "plugins", "-o", "json")


def test_a_cluster_of_https_is_reached_with_its_authority_by_option_and_environment(
    run: Run, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = serve.https()
    assert (run(*LIST, "--url", url, "--ca", serve.ca).code) == 0
    monkeypatch.setenv("FAIRLEAD_CA", serve.ca)
    assert json.loads(run(*LIST, "--url", url).out) == PLUGINS


def test_a_clients_certificate_is_sent_by_option_environment_and_context(
    run: Run, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = serve.https(truststore_location=serve.ca, client_auth="required")
    ann = str(CA.issue("ann").write(serve.folder / "ann.pem"))
    assert run(*LIST, "--url", url, "--ca", serve.ca, "--cert", ann).code == 0
    run("config", "set-context", "prod", "--url", url, "--ca", serve.ca, "--cert", ann)
    assert run(*LIST, "--context", "prod").code == 0
    refused = run(*LIST, "--url", url, "--ca", serve.ca)
    assert (refused.code, "--cert FILE" in refused.err) == (3, True)
    monkeypatch.setenv("FAIRLEAD_CERT", ann)
    assert run(*LIST, "--url", url, "--ca", serve.ca).code == 0


def told(run: Run, serve: Serve, url: str, *more: str) -> str:
    """Return what is said of a cluster with which TLS fails."""
    ended = run(*LIST, "--url", url, "--ca", serve.ca, *more)
    assert (ended.code, ended.out) == (3, "")
    before = f"fairlead: {url} (--url) and this client did not agree: "
    assert ended.err.startswith(before)
    return ended.err.removeprefix(before).removesuffix("\n")


def test_each_failure_of_tls_is_told_in_a_sentence_that_helps(run: Run, serve: Serve) -> None:
    url = serve.https()
    unknown = run(*LIST, "--url", url)
    assert "the authority of its certificate is not known here: give it with --ca FILE" in (
        unknown.err
    )
    assert told(run, serve, serve.https("other.example")).startswith(
        "its certificate is for another host (Hostname mismatch, certificate is not valid for"
        " 'localhost'.): use the name that it has"
    )
    plain = serve.start(HTTPServer(("127.0.0.1", 0), Answering)).replace("http:", "https:")
    assert told(run, serve, plain) == (
        "it does not speak TLS: if its URL begins with http://, write that"
    )
    assert told(run, serve, url, "--cert", "none.pem") == "--cert none.pem does not exist"
    assert told(run, serve, url, "--cert", serve.ca).endswith(
        "it has a certificate and its private key in PEM, not encrypted"
    )
    Path("no.pem").write_text("nothing")
    ended = run(*LIST, "--url", url, "--ca", "no.pem")
    assert "--ca no.pem cannot be used" in ended.err
    asked = serve.https(truststore_location=serve.ca, client_auth="required")
    eve = str(Authority("another").issue("eve").write(serve.folder / "eve.pem"))
    assert "--cert" in told(run, serve, asked, "--cert", eve)


@pytest.mark.parametrize(("begins", "ends", "why"), [(-2, -1, "expired"), (1, 2, "not valid yet")])
def test_a_certificate_of_another_time_is_told(
    run: Run, serve: Serve, begins: int, ends: int, why: str
) -> None:
    issued = CA.issue(begins=begins * DAY, ends=ends * DAY)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)  # fairlead's own would refuse it
    context.load_cert_chain(issued.write(serve.folder / "late.pem"))
    assert why in told(run, serve, serve.start(Encrypted(context), "https"))


def test_the_socket_of_a_node_is_used_if_it_is_there_else_its_url(run: Run, serve: Serve) -> None:
    folder = Path("data/run").absolute()
    folder.mkdir(parents=True)
    path = folder / "rest.sock"
    note = {"rest": "http://127.0.0.1:9", "socket": str(path)}
    (folder / "node.json").write_text(json.dumps(note))
    nobody = run(*LIST, "--data-dir", "data")
    assert (nobody.code, "no cluster answers at http://127.0.0.1:9" in nobody.err) == (3, True)
    serve.socket(path)
    assert run(*LIST, "--data-dir", "data").code == 0
    assert run(*LIST, "--url", f"unix://{path}").code == 0


def test_a_socket_where_nobody_listens_is_told_as_any_other(run: Run, serve: Serve) -> None:
    path = serve.folder / "none.sock"
    ended = run(*LIST, "--url", f"unix://{path}")
    assert (ended.code, ended.err) == (
        3,
        f"fairlead: no cluster answers at unix://{path} (--url): start one with `fairlead up`, or"
        " name another with --url\n",
    )
    for url in ("unix://", "unix://host/path"):
        assert run(*LIST, "--url", url).err == f"fairlead: --url is no http URL: {url!r}\n"
