"""What the JVMs that run Connect's plugins are given of a worker's keys."""

from pathlib import Path

import pytest
from config.conftest import Refused

from fairlead.runtime.config.connect_worker import secrets_of
from fairlead.runtime.config.load import load_config, load_with_sources

JSON = "org.apache.kafka.connect.json.JsonConverter"
NOTHING_GIVEN = {
    "bootstrap.servers": "127.0.0.1:1",
    "group.id": "connect",
    "key.converter": JSON,
    "value.converter": JSON,
    "offset.storage.topic": "connect-offsets",
    "offset.storage.replication.factor": "-1",
    "offset.flush.interval.ms": "60000",
    "offset.flush.timeout.ms": "5000",
    "task.shutdown.graceful.timeout.ms": "5000",
    "plugin.discovery": "service_load",
}


def properties(*overrides: str) -> dict[str, str]:
    return load_config(None, {}, overrides).worker_properties()


def test_without_any_key_it_is_what_connect_requires() -> None:
    assert properties() == NOTHING_GIVEN


def test_each_key_is_given_as_it_is_written() -> None:
    given = {
        "bootstrap.servers": "one:9092,two:9092",
        "key.converter": "io.confluent.connect.avro.AvroConverter",
        "key.converter.schema.registry.url": "http://registry:8081",
        "producer.linger.ms": "5",
        "config.providers": "vault",
        "config.providers.vault.param.uri": "${env:VAULT}",
        "topic.creation.enable": "False",
        "metrics.jmx.include": ".*",
        "ssl.endpoint.identification.algorithm": "",
    }
    assert properties(*(f"{key}={text}" for key, text in given.items())) == NOTHING_GIVEN | given


def test_a_key_that_connect_requires_has_its_default_where_it_is_blank() -> None:
    assert properties("bootstrap.servers=", "key.converter= ") == NOTHING_GIVEN


def test_settings_that_the_node_shares_with_its_hosts_have_the_nodes_values() -> None:
    given = {"group.id": "crew", "offset.flush.interval.ms": "10000"}
    assert properties(*(f"{key}={text}" for key, text in given.items())) == NOTHING_GIVEN | given


@pytest.mark.parametrize(
    "override",
    [
        *("plugin.path=/plugins", "listeners=http://127.0.0.1:1", "plugin.host.heap=1g"),
        *("rest.advertised.host.name=here", "ssl.client.auth=none", "ssl.keystore.location="),
    ],
)
def test_what_is_the_nodes_alone_is_not_given(override: str) -> None:
    assert properties(override) == NOTHING_GIVEN


def test_ssl_settings_are_the_clients_unless_they_are_of_https_alone(tmp_path: Path) -> None:
    (tmp_path / "store.pem").touch()
    of_https = {"location": str(tmp_path / "store.pem"), "password": "hidden1"}
    of_both = {"location": "/kafka.p12", "password": "hidden2"}
    given = {f"ssl.keystore.{name}": text for name, text in of_both.items()}
    config = load_config(
        None,
        {},
        [
            *(f"{key}={text}" for key, text in given.items()),
            *(f"listeners.https.ssl.keystore.{name}={text}" for name, text in of_https.items()),
        ],
    )
    assert config.worker_properties() == NOTHING_GIVEN | given
    assert config.ssl_keystore_password == "hidden1"


def test_a_key_may_be_an_environment_variable_a_family_of_keys_may_not(refused: Refused) -> None:
    loaded = load_with_sources(None, {"FAIRLEAD_BOOTSTRAP_SERVERS": "one:9092"}, ())
    assert loaded.sources == {
        "bootstrap.servers": "environment variable FAIRLEAD_BOOTSTRAP_SERVERS"
    }
    assert loaded.config.worker_properties() == NOTHING_GIVEN | {"bootstrap.servers": "one:9092"}
    assert refused(environ={"FAIRLEAD_PRODUCER_ACKS": "1"}) == (
        "FAIRLEAD_PRODUCER_ACKS: settings of plugins cannot be environment variables, whose names"
        " have no dots or lower case: use a file or --set producer.NAME=VALUE",
    )


def test_a_key_with_few_values_has_one_of_them_or_a_reference(refused: Refused) -> None:
    assert refused("security.protocol=TLS", "topic.creation.enable=yes") == (
        "security.protocol = 'TLS' (from the command line): allowed is PLAINTEXT, SSL,"
        " SASL_PLAINTEXT or SASL_SSL",
        "topic.creation.enable = 'yes' (from the command line): allowed is true or false",
    )
    given = {"security.protocol": "sasl_ssl", "exactly.once.source.support": "${env:SUPPORT}"}
    assert properties(*(f"{key}={text}" for key, text in given.items())) == NOTHING_GIVEN | given


def test_a_misspelt_key_is_refused_and_so_is_a_family_without_a_name(refused: Refused) -> None:
    assert refused("bootstrap.server=x", "producer.=x") == (
        "unknown setting 'bootstrap.server' (from the command line): did you mean"
        " bootstrap.servers?",
        "unknown setting 'producer.' (from the command line): did you mean ssl.provider?",
    )


def test_no_log_may_have_the_passwords_nor_the_values_that_they_are_in() -> None:
    login = 'org.example.Login required username="ann" password="hunter1";'
    url = "https://ann:hunter2@registry"
    given = {
        "bootstrap.servers": "one:9092",
        "producer.sasl.jaas.config": login,
        "key.converter.schema.registry.url": url,
        "config.providers.vault.param.token": "hunter3",
        "ssl.key.password": "${vault:ssl:key}",
        "ssl.keystore.password": "${file:/secrets:keystore}",
    }
    assert secrets_of(given) == {login, "hunter1", url, "hunter2", "hunter3", "${vault:ssl:key}"}
