"""Where Kafka's clients may be served: on loopback, by certificates, or where people say so."""

import pytest

from fairlead.runtime.config.load import load_config
from fairlead.runtime.config.sources import ConfigError
from fairlead.runtime.node.launcher.kafka_process import kafka_spec

BEHIND = "kafka.bootstrap.servers=10.0.0.1:9092, [::1]:9093"
STORES = ("kafka.ssl.keystore.location=/k.pem", "kafka.ssl.truststore.location=/t.pem")


def test_nobody_listens_unless_it_is_said_where() -> None:
    assert kafka_spec(load_config(None, {}, [BEHIND])) is None


@pytest.mark.parametrize(
    "told",
    [
        ("kafka.listeners=PLAINTEXT://127.0.0.1:9092",),
        ("kafka.listeners=PLAINTEXT://:9092",),
        ("kafka.listeners=PLAINTEXT://10.0.0.2:9092", "kafka.plaintext=anywhere"),
        ("kafka.listeners=SSL://10.0.0.2:9092", *STORES),
    ],
)
def test_a_listener_on_loopback_or_that_asks_who_comes_is_taken(told: tuple[str, ...]) -> None:
    spec = kafka_spec(load_config(None, {}, [BEHIND, *told]))
    assert spec is not None
    assert (spec.port, spec.brokers) == (9092, (("10.0.0.1", 9092), ("::1", 9093)))
    assert spec.is_encrypted is told[0].startswith("kafka.listeners=SSL")


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ((BEHIND, "kafka.listeners=PLAINTEXT://10.0.0.2:9092"), "is not a loopback address"),
        ((BEHIND, "kafka.listeners=PLAINTEXT://0.0.0.0:9092"), "is not a loopback address"),
        ((BEHIND, "kafka.listeners=SSL://127.0.0.1:9092"), "kafka.ssl.keystore.location"),
        (("kafka.listeners=PLAINTEXT://:9092",), "name the brokers behind"),
        ((BEHIND, "kafka.listeners=127.0.0.1:9092"), "PLAINTEXT://"),
        ((BEHIND, "kafka.listeners=PLAINTEXT://127.0.0.1"), "HOST:PORT"),
        ((BEHIND, "kafka.listeners=PLAINTEXT://127.0.0.1:0"), "HOST:PORT"),
        (("kafka.bootstrap.servers=one",), "HOST:PORT"),
    ],
)
def test_what_would_let_in_anybody_or_leads_nowhere_is_refused(
    told: tuple[str, ...], why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        load_config(None, {}, told)
