"""Where settings come from, and what is refused on the way."""

from pathlib import Path

import pytest
from config.conftest import Refused

from fairlead.runtime.config.keys import KEYS
from fairlead.runtime.config.load import load_config, load_with_sources

TOML = """
workers = 3
"group.id" = "quoted"
listeners = ["http://127.0.0.1:1"]
[session.timeout]
ms = 20000
[spark.conf]
"spark.sql.ansi.enabled" = true
spark.sql.shuffle.partitions = 8
"""


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    file = tmp_path / "node.toml"
    file.write_text(TOML)
    return file


def test_a_number_of_toml_is_the_text_that_stands_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "node.toml").write_text('[spark.conf]\n"spark.x" = 1.10\n"spark.y" = 1e-3\n')
    loaded = load_config(tmp_path / "node.toml", {}, ())
    assert loaded.spark_conf == {"spark.x": "1.10", "spark.y": "1e-3"}


def test_nothing_given_is_all_defaults() -> None:
    loaded = load_with_sources(None, {}, ())
    assert loaded.sources == {}
    assert {key: getattr(loaded.config, name) for key, name in KEYS.items()} == {
        "log.format": "text",
        "log.to": "file",
        "log.file.max.bytes": 16 << 20,
        "log.file.count": 2,
        "metrics.task.series": "false",
        "traces.endpoint": "",
        "traces.headers": "",
        "traces.service.name": "fairlead",
        "rest.oidc.issuer": "",
        "rest.oidc.jwks": "",
        "rest.oidc.audience": "",
        "rest.oidc.roles.claim": "groups",
        "rest.oidc.roles": "",
        "rest.oidc.name.claim": "sub",
        "connectors.dir": "",
        "connectors.dir.mode": "plan",
        "connectors.dir.prune": "false",
        "log.store": "lmdb",
        "log.store.url": "",
        "log.store.bootstrap.servers": "",
        "log.store.client.config": "",
        "log.store.replication.factor": 3,
        "log.store.name": "fairlead",
        "log.store.unsafe": "false",
        "node.name": "",
        "owner.silence.ms": 3_000,
        "log.retention.ms": 7_776_000_000,
        "log.retention.epochs": -1,
        "log.retention.bytes": 1 << 30,
        "group.id": "connect",
        "listeners": "http://127.0.0.1:8083",
        "rest.advertised.host.name": "",
        "rest.advertised.port": 0,
        "rest.allowed.hosts": "",
        "rest.path.prefix": "",
        "admin.listeners": "listeners",
        "rest.authentication": "none",
        "rest.requests.per.second": 0,
        "rest.request.max.bytes": 0,
        "rest.plaintext": "loopback",
        "access.control.allow.origin": "",
        "access.control.allow.methods": "",
        "response.http.headers.config": "",
        "ssl.client.auth": "none",
        **dict.fromkeys((key for key in KEYS if key.startswith("ssl.k")), ""),
        **dict.fromkeys((key for key in KEYS if key.startswith("ssl.trust")), ""),
        "ssl.protocol": "",
        "ssl.enabled.protocols": "",
        "ssl.cipher.suites": "",
        "session.timeout.ms": 10_000,
        "heartbeat.interval.ms": 3_000,
        "rebalance.timeout.ms": 60_000,
        "fence.margin.ms": 1_000,
        "scheduled.rebalance.max.delay.ms": 300_000,
        "scheduled.rebalance.leave.delay.ms": -1,
        "task.shutdown.graceful.timeout.ms": 5_000,
        "group.max.size": 2_147_483_647,
        "group.remote.assignor": "",
        "group.local.assignors": "balanced",
        "assignor.memory.max": "1g",
        "assignor.conf": {},
        "group.instance.id": "",
        "assignor.moves.per.round": 10,
        "assignor.moves.interval.ms": 30_000,
        "assignor.moves.drain": "at-once",
        "client.rack": "",
        "worker.tags": "",
        "worker.memory.max": "",
        "worker.capacity": 1,
        "assignment.interval.ms": 0,
        "group.initial.rebalance.delay.ms": 3_000,
        "group.min.session.timeout.ms": 6_000,
        "group.max.session.timeout.ms": 1_800_000,
        "connect.initial.rebalance.delay.ms": 0,
        "group.migration.policy": "bidirectional",
        "member.request.rate": 0,
        "data.dir": "./fairlead-data",
        "cluster.key.file": "",
        "workers": 2,
        "worker.restart.backoff.ms": 1_000,
        "worker.restart.backoff.max.ms": 30_000,
        "actor.port": 0,
        "engine": "spark",
        "engine.kind": "auto",
        "engine.concurrent.batches": 0,
        "engine.lane": "auto",
        "spark.master": "",
        "spark.heap": "1g",
        "spark.conf": {},
        "plugin.path": "",
        "plugin.allow": "*",
        "plugins.repositories": "",
        "plugin.host.heap": "512m",
        "plugin.host.java.options": "",
        "plugin.host.truststore": "",
        "plugin.host.wrapper": "",
        "plugin.host.idle.ms": 60_000,
        "plugin.isolation": "worker",
        "paths.allow": "",
        "jdbc.allow": "",
        "sql.allow": "",
        "log.level": "INFO",
        "connect.protocol": "sessioned",
        "group.protocol": "connect",
        "process.answer.timeout.ms": 30_000,
        "offset.flush.interval.ms": 60_000,
        "offset.flush.timeout.ms": 5_000,
        "kafka.listeners": "",
        "kafka.bootstrap.servers": "",
        "kafka.advertised.host.name": "",
        "kafka.plaintext": "loopback",
        "kafka.ssl.keystore.location": "",
        "kafka.ssl.keystore.type": "",
        "kafka.ssl.keystore.password": "",
        "kafka.ssl.key.password": "",
        "kafka.ssl.truststore.location": "",
        "kafka.ssl.truststore.type": "",
        "kafka.ssl.truststore.password": "",
        "kafka.ssl.client.auth": "",
        "kafka.ssl.principal.mapping.rules": "DEFAULT",
        "kafka.sasl": "here",
        "kafka.sasl.oauthbearer.jwks.endpoint.url": "",
        "kafka.sasl.oauthbearer.expected.issuer": "",
        "kafka.sasl.oauthbearer.expected.audience": "",
        "kafka.sasl.oauthbearer.clock.skew.seconds": 30,
        "kafka.sasl.oauthbearer.sub.claim.name": "sub",
        "kafka.upstream.security.protocol": "PLAINTEXT",
        "kafka.upstream.ssl.truststore.location": "",
        "kafka.upstream.ssl.keystore.location": "",
        "kafka.upstream.ssl.endpoint.identification.algorithm": "https",
        "kafka.upstream.sasl.mechanism": "",
        "kafka.upstream.sasl.username": "",
        "kafka.upstream.sasl.password.file": "",
        "kafka.sasl.enabled.mechanisms": "SCRAM-SHA-512,SCRAM-SHA-256",
        "kafka.sasl.users": "",
        "kafka.connections.max.reauth.ms": 0,
        "kafka.acls": "",
        "kafka.super.users": "",
        "members.principal": "",
        "kafka.allow.everyone.if.no.acl.found": "false",
        "kafka.quota.requests.per.second": 0,
        "kafka.quota.bytes.per.second": 0,
        "kafka.group.shards": 2,
        "offsets.retention.minutes": 10_080,
        "offsets.retention.check.interval.ms": 600_000,
        "kafka.max.connections": 10_000,
        "kafka.max.connections.per.ip": 10_000,
        "group.protocols.allowed": "connect,classic,consumer",
        "kafka.max.groups": 100_000,
        "kafka.max.members": 100_000,
        "kafka.max.metadata.bytes": 32 << 20,
        "group.consumer.assignment.interval.ms": 1_000,
        "group.consumer.session.timeout.ms": 45_000,
        "group.consumer.heartbeat.interval.ms": 5_000,
    }


def test_a_toml_file_may_nest_dot_or_quote_its_keys(toml: Path) -> None:
    config = load_config(toml, {}, ())
    assert (config.workers, config.group_id, config.session_timeout_ms, config.listeners) == (
        3,
        "quoted",
        20_000,
        "http://127.0.0.1:1",
    )
    assert config.spark_conf == {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.shuffle.partitions": "8",
    }


def test_a_properties_file_is_read_as_java_does(tmp_path: Path) -> None:
    file = tmp_path / "node.properties"
    file.write_bytes(b"# a comment\ngroup.id = fl\\u00fcge\nworkers: 1\n")
    config = load_config(file, {}, ())
    assert (config.group_id, config.workers) == ("flüge", 1)


def test_later_sources_win(toml: Path) -> None:
    environ = {"FAIRLEAD_GROUP_ID": "env", "FAIRLEAD_WORKERS": "4", "PATH": "/bin"}
    loaded = load_with_sources(toml, environ, ["workers=5", "workers = 6"])
    assert (loaded.config.session_timeout_ms, loaded.config.group_id, loaded.config.workers) == (
        20_000,
        "env",
        6,
    )
    assert loaded.sources == {
        "workers": "the command line",
        "group.id": "environment variable FAIRLEAD_GROUP_ID",
        "listeners": f"file {toml}",
        "session.timeout.ms": f"file {toml}",
        "spark.conf.spark.sql.ansi.enabled": f"file {toml}",
        "spark.conf.spark.sql.shuffle.partitions": f"file {toml}",
    }


def test_what_a_value_may_hold_is_kept_behind_the_first_equals_sign() -> None:
    config = load_config(None, {}, ["spark.conf.spark.x=a=b"])
    assert config.spark_conf == {"spark.x": "a=b"}


def test_every_unknown_key_is_named_with_its_source_and_the_nearest_known_one(
    tmp_path: Path, refused: Refused
) -> None:
    file = tmp_path / "node.toml"
    file.write_text("[sesion.timeout]\nms = 1")
    environ = {"FAIRLEAD_GROUPID": "x", "FAIRLEAD_DEBUG": "1"}
    assert refused("work=1", "qqqq=1", file=file, environ=environ) == (
        f"unknown setting 'sesion.timeout.ms' (from file {file}): did you mean session.timeout.ms?",
        "unknown setting in environment variable FAIRLEAD_GROUPID: did you mean FAIRLEAD_GROUP_ID?",
        "unknown setting 'work' (from the command line): did you mean workers?",
        "unknown setting 'qqqq' (from the command line): `fairlead config` lists all settings",
    )


def test_a_worker_key_of_connect_without_a_meaning_here_is_told_so(refused: Refused) -> None:
    assert refused("rest.port=8083", "config.storage.topic=t") == (
        "rest.port (from the command line) is only for Kafka Connect: remove it",
        "config.storage.topic (from the command line) is only for Kafka Connect: remove it",
    )


SERVICE_OF_KUBERNETES = {
    "FAIRLEAD_PORT": "tcp://10.96.7.7:8083",
    "FAIRLEAD_SERVICE_HOST": "10.96.7.7",
    "FAIRLEAD_SERVICE_PORT": "8083",
    "FAIRLEAD_SERVICE_PORT_REST": "8083",
    "FAIRLEAD_PORT_8083_TCP": "tcp://10.96.7.7:8083",
    "FAIRLEAD_PORT_8083_TCP_PROTO": "tcp",
    "FAIRLEAD_PORT_8083_TCP_PORT": "8083",
    "FAIRLEAD_PORT_8083_TCP_ADDR": "10.96.7.7",
    "FAIRLEAD_PORT_53_UDP": "udp://[fd00::7]:53",
    "FAIRLEAD_PORT_9_SCTP_ADDR": "fd00::7",
    "FAIRLEAD_ACTOR_PORT": "tcp://10.96.7.8:80",
    "FAIRLEAD_REST_ADVERTISED_PORT": "tcp://10.96.7.8:80",
    "FAIRLEAD_METRICS_SERVICE_HOST": "10.96.7.9",
    "FAIRLEAD_METRICS_PORT_9102_TCP_ADDR": "10.96.7.9",
}


def test_variables_that_kubernetes_makes_for_services_of_our_name_are_no_settings() -> None:
    loaded = load_with_sources(None, SERVICE_OF_KUBERNETES | {"FAIRLEAD_WORKERS": "3"}, ())
    assert loaded.sources == {"workers": "environment variable FAIRLEAD_WORKERS"}


def test_a_misspelt_variable_is_told_also_if_it_resembles_one_of_a_service(
    refused: Refused,
) -> None:
    environ = {"FAIRLEAD_PORT": "8083", "FAIRLEAD_ACTORPORT": "1", "FAIRLEAD_PORT_8083": "x"}
    assert refused(environ=SERVICE_OF_KUBERNETES | environ) == (
        "unknown setting in environment variable FAIRLEAD_ACTORPORT: did you mean"
        " FAIRLEAD_ACTOR_PORT?",
        "unknown setting in environment variable FAIRLEAD_PORT: did you mean FAIRLEAD_ACTOR_PORT?",
        "unknown setting in environment variable FAIRLEAD_PORT_8083: did you mean"
        " FAIRLEAD_ACTOR_PORT?",
    )
    assert refused(environ={"FAIRLEAD_ACTOR_PORT": "x"}) == (
        "actor.port = 'x' (from environment variable FAIRLEAD_ACTOR_PORT): allowed is a port, from"
        " 0 to 65535",
    )


def test_settings_of_others_do_not_come_from_the_environment(refused: Refused) -> None:
    assert refused(environ={"FAIRLEAD_ASSIGNOR_CONF_X": "1"}) == (
        "FAIRLEAD_ASSIGNOR_CONF_X: settings of assignors cannot be environment variables, whose"
        " names have no dots or lower case: use a file or --set assignor.conf.NAME=VALUE",
    )
    assert refused(environ={"FAIRLEAD_SPARK_CONF_SPARK_X": "1"}) == (
        "FAIRLEAD_SPARK_CONF_SPARK_X: settings of Spark cannot be environment variables, whose"
        " names have no dots or lower case: use a file or --set spark.conf.NAME=VALUE",
    )


def test_an_override_is_key_and_value(refused: Refused) -> None:
    assert refused("workers") == ("'workers' (from the command line) is not of the form key=value",)


def test_control_characters_are_refused(refused: Refused) -> None:
    assert refused("data.dir=a\x00b") == (
        "data.dir (from the command line) has control characters in its value: remove them",
    )


def test_a_key_that_stands_twice_in_a_file_is_refused(tmp_path: Path, refused: Refused) -> None:
    file = tmp_path / "node.toml"
    file.write_text('"group.id" = "a"\n[group]\nid = "b"')
    assert refused(file=file) == (f"group.id occurs twice in file {file}: keep one of them",)


def test_a_value_of_a_strange_type_is_refused(tmp_path: Path, refused: Refused) -> None:
    file = tmp_path / "node.toml"
    file.write_text("workers = 2013-01-01")
    assert refused(file=file) == (
        f"workers (from file {file}) is neither a text, a number, true or false, nor a list of"
        " texts",
    )


def test_a_file_that_is_none_is_refused_by_name(tmp_path: Path, refused: Refused) -> None:
    absent, other = tmp_path / "absent.toml", tmp_path / "node.ini"
    broken, hostile = tmp_path / "broken.toml", tmp_path / "hostile.toml"
    escaped = tmp_path / "escaped.properties"
    broken.write_text("workers =")
    hostile.write_bytes(b"\xff\xfe\x00")
    escaped.write_bytes(b"group.id=\\u00g1")
    assert refused(file=absent) == (f"{absent} cannot be read: No such file or directory",)
    assert refused(file=tmp_path / "x.toml" / "y.toml") == (
        f"{tmp_path / 'x.toml' / 'y.toml'} cannot be read: No such file or directory",
    )
    assert refused(file=other) == (f"{other} is neither a .toml nor a .properties file: rename it",)
    for file in (broken, hostile, escaped):
        (problem,) = refused(file=file)
        assert problem.startswith(f"{file} is not a valid {file.suffix} file: ")
