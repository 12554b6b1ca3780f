"""The settings of the store in which a group's commits count."""

import socket
from pathlib import Path

import pytest

from fairlead.events.stores.opening import StoreSpec
from fairlead.runtime.config.load import load_config
from fairlead.runtime.config.sources import ConfigError
from fairlead.runtime.node.launcher.commands import node_spec

URL = "postgresql://fairlead@db.example:5433/fairlead?sslmode=verify-full"
IN_POSTGRES = "log.store=postgres", f"log.store.url={URL}"


def test_without_a_store_the_logs_count_on_the_host() -> None:
    config = load_config(None, {}, ())
    assert config.store() is None
    assert (config.heartbeat_interval_ms, config.session_timeout_ms) == (3_000, 10_000)


def test_a_store_has_defaults_that_outlive_a_takeover() -> None:
    config = load_config(None, {}, (*IN_POSTGRES, "node.name=n1"))
    assert config.store() == StoreSpec("postgres", "fairlead", URL, group_id="connect", node="n1")
    assert (config.heartbeat_interval_ms, config.session_timeout_ms) == (1_000, 15_000)
    config = load_config(None, {}, (*IN_POSTGRES, "session.timeout.ms=20000"))
    assert (config.heartbeat_interval_ms, config.session_timeout_ms) == (1_000, 20_000)


def test_all_nodes_have_one_name_for_their_store() -> None:
    nodes = [
        node_spec(load_config(None, {}, (*IN_POSTGRES, f"node.name={each}")), 8083)
        for each in ("n1", "n2")
    ]
    assert [each.store_id for each in nodes] == ["postgres/fairlead"] * 2
    assert node_spec(load_config(None, {}, ()), 8083).store_id == ""


def test_workers_of_several_nodes_are_told_apart_by_the_names_of_these() -> None:
    assert load_config(None, {}, (*IN_POSTGRES, "node.name=n1")).place() == "n1:8083"
    named = (*IN_POSTGRES, "node.name=n1", "rest.advertised.host.name=n1.example")
    assert load_config(None, {}, named).place() == "n1.example:8083"
    assert load_config(None, {}, ("node.name=n1",)).place() == "127.0.0.1:8083"


def test_the_name_of_a_worker_begins_with_that_of_its_node_where_there_are_several() -> None:
    def names(*overrides: str) -> tuple[str, ...]:
        return node_spec(load_config(None, {}, (*overrides, "workers=2")), 8083).workers

    assert names() == ("w1", "w2")
    assert names(*IN_POSTGRES, "node.name=n1.example") == ("n1.example-w1", "n1.example-w2")
    assert names(*IN_POSTGRES, "node.name=rack 1/n1") == ("rack-1-n1-w1", "rack-1-n1-w2")


def test_the_name_of_the_host_is_the_default_of_the_node(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    config = load_config(
        None,
        {},
        (
            "log.store=kafka",
            "kafka.bootstrap.servers=b1:9092,b2:9092",
            f"log.store.client.config={file}",
            "log.store.replication.factor=2",
            "log.store.unsafe=true",
            "owner.silence.ms=2000",
        ),
    )
    assert config.store() == StoreSpec(
        "kafka",
        "fairlead",
        servers="b1:9092,b2:9092",
        client_file=str(file),
        replication=2,
        silence_seconds=2.0,
        group_id="connect",
        node=socket.gethostname(),
        is_unsafe=True,
    )


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (("log.store=etcd",), "allowed is lmdb, postgres or kafka"),
        (("log.store=postgres",), "log.store = postgres needs log.store.url"),
        (("log.store=kafka",), "log.store = kafka needs log.store.bootstrap.servers"),
        (("log.store.url=mysql://db/x",), "it is no URL of PostgreSQL"),
        (
            (*IN_POSTGRES, "session.timeout.ms=8499"),
            r"2 \* heartbeat.interval.ms \(1000\) \+ fence.margin.ms \(1000\) \+ owner.silence.ms"
            r" \(3000\) \+ 2500 = 8500",
        ),
        (("log.store.name=Fair-lead",), "lower-case letters"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(settings: tuple[str, ...], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        load_config(None, {}, settings)


@pytest.mark.parametrize(
    "url",
    ["postgresql://me:s3cret@db/x", "postgres://db/x?password=s3cret", "postgresql://:s3cret@db/x"],
)
def test_a_password_in_the_url_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(None, {}, (f"log.store.url={url}",))
    assert "passfile" in str(caught.value)
    assert "s3cret" not in str(caught.value)
