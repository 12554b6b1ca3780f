# pyright: basic
"""What is told of a schema registry when a config is validated, before anything runs."""

import gzip
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from fairlead.runtime.pipeline.connectors import pipeline_keys as keys
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.spi.context import ExternalAccess, ProbeResult
from fairlead.runtime.pipeline.spi.errors import SourceAway
from fairlead.runtime.pipeline.stores.kafka.avro.registry import SchemaRegistry
from fairlead.runtime.pipeline.stores.kafka.registry_keys import RegistryAccess
from fairlead_tests.kafka.pipes import sink_config, source_config
from fairlead_tests.kafka.schema_registry import SchemaRegistryServer
from fairlead_tests.kafka.topics import Topics

URL = "value.converter.schema.registry.url"
USER = "value.converter.schema.registry.basic.auth.user.info"
RECORD = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}


@pytest.fixture
def registry() -> Iterator[SchemaRegistryServer]:
    registry = SchemaRegistryServer()
    yield registry
    registry.down()


class Looks:
    """Configs of both ends over one topic, each with a registry for its values."""

    def __init__(self, topics: Topics, topic: str, folder: Path, url: str) -> None:
        self.topics, self.topic, self.folder, self.url = topics, topic, folder, url

    def at_source(self, **given: str) -> ProbeResult:
        config = source_config(self.topics.bootstrap, **self._with({"topics": self.topic} | given))
        return keys.SOURCE_TYPES.find("kafka").probe(config, ExternalAccess())

    def at_sink(self, **given: str) -> ProbeResult:
        given = self._with({"topic": self.topic} | given)
        config = sink_config(self.topics.bootstrap, self.folder, **given)
        return keys.SINK_TYPES.find("kafka").probe(config, ExternalAccess())

    def _with(self, given: dict[str, str]) -> dict[str, str]:
        return {"value_converter": "avro", URL.replace(".", "_"): self.url, **given}


@pytest.fixture
def looks(topics: Topics, topic: str, tmp_path: Path, registry: SchemaRegistryServer) -> Looks:
    return Looks(topics, topic, tmp_path, registry.url)


def test_a_registry_that_knows_the_user_and_the_subject_is_not_spoken_of(
    looks: Looks, registry: SchemaRegistryServer
) -> None:
    registry.add(f"{looks.topic}-value", RECORD)
    registry.user_info = "me:open sesame"
    user: Any = {USER.replace(".", "_"): "me:open sesame"}
    assert looks.at_source(**user) == looks.at_sink(**user) == ProbeResult()
    pattern = {"topics": "", "topics_regex": f"{looks.topic[:9]}.*"}
    assert looks.at_source(**user, **pattern) == ProbeResult()
    assert looks.at_sink(**user, topic="", topic_column="to") == ProbeResult()
    assert registry.asked[-2:] == ["/schemas/ids/1"] * 2


def test_a_user_that_is_not_let_in_is_an_error_of_the_setting_and_told_without_the_password(
    looks: Looks, registry: SchemaRegistryServer
) -> None:
    registry.user_info = "me:open sesame"
    wrong: Any = {USER.replace(".", "_"): "me:guess again"}
    told = f"the schema registry at {registry.url} does not let this user in: 401 Unauthorized"
    assert looks.at_source(**wrong).errors == {f"source.{USER}": told}
    assert looks.at_sink(**wrong).errors == {f"sink.{USER}": told}
    nowhere: Any = {"topic": "", "topic_column": "to"}
    assert looks.at_sink(**wrong, **nowhere).errors == {f"sink.{USER}": told}


def test_a_subject_that_is_not_there_is_a_warning_where_the_connector_needs_it(
    looks: Looks,
) -> None:
    missing = f"the schema registry has no subject {looks.topic}-value: "
    waits = f"source.{URL}: {missing}the connector waits for it"
    assert looks.at_source() == ProbeResult(warnings=(waits,))
    assert looks.at_source(schema="n INT").warnings == ()
    assert looks.at_sink() == ProbeResult()
    mend = "register a schema, or set sink.value.converter.auto.register.schemas=true"
    by_latest: Any = {"value_converter_auto_register_schemas": "false"}
    assert looks.at_sink(**by_latest) == ProbeResult(warnings=(f"sink.{URL}: {missing}{mend}",))


def test_a_subject_that_no_columns_can_be_made_of_is_an_error(
    looks: Looks, registry: SchemaRegistryServer
) -> None:
    registry.add(f"{looks.topic}-value", "{}", schemaType="PROTOBUF")
    told = f"subject {looks.topic}-value cannot be used: it is PROTOBUF, not Avro"
    assert looks.at_source().errors == {"source.value.converter": told}


def test_a_registry_that_is_away_is_a_warning(looks: Looks, registry: SchemaRegistryServer) -> None:
    registry.down()
    for end, found in (("source", looks.at_source()), ("sink", looks.at_sink())):
        (told,) = found.warnings
        assert told.startswith(f"{end}.{URL}: the schema registry at {registry.url}: ")
        assert "refused" in told
        assert found.errors == {}


@pytest.mark.parametrize("url", ["http://host:port", "http://host:99999", "http://host:0"])
def test_an_address_with_no_port_of_tcp_is_refused(url: str) -> None:
    config = source_config("127.0.0.1:1", topics="t", value_converter="avro")
    found = SparkPipeline.validate({**config, f"source.{URL}": url})
    assert found.errors == {f"source.{URL}": ("must be http://host:port",)}


class Hostile(BaseHTTPRequestHandler):
    """A registry that answers with more than anybody wants."""

    def do_GET(self) -> None:
        self.send_response(200)
        if "compressed" in self.server.kind:  # type: ignore[attr-defined]
            body = gzip.compress(b'{"schema":"' + b" " * (1 << 16) + b'"}', 1)
            self.send_header("content-encoding", "gzip")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(body)
            return
        self.end_headers()
        with suppress(OSError):
            while True:
                self.wfile.write(b" " * (1 << 20 if self.server.kind == "endless" else 1))  # type: ignore[attr-defined]
                self.wfile.flush()
                time.sleep(0 if self.server.kind == "endless" else 0.02)  # type: ignore[attr-defined]

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("compressed", "its answer is compressed, which was not asked for"),
        ("endless", "its answer has more than 16 MB"),
        ("slow", "its answer does not end"),
    ],
)
def test_an_answer_of_a_registry_that_would_fill_or_hold_the_process_is_given_up(
    kind: str, why: str
) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
    server.daemon_threads = True
    server.kind = kind  # type: ignore[attr-defined]
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        access = RegistryAccess("k", (f"http://127.0.0.1:{server.server_port}",), "")
        with pytest.raises(SourceAway, match=why):
            SchemaRegistry(access, SourceAway, 0.2).schema(1)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
