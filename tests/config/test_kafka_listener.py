"""Where Kafka's clients may be served: on loopback, by certificates, or where people say so."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from fairlead.runtime.cluster.kafka_security import BearerSpec, KafkaSecurity
from fairlead.runtime.cluster.spec import KafkaSpec
from fairlead.runtime.config.load import load_config
from fairlead.runtime.config.sources import ConfigError
from fairlead.runtime.node.launcher.kafka_process import kafka_spec, resolve_secrets

BEHIND = "kafka.bootstrap.servers=10.0.0.1:9092, [::1]:9093"
SASL = "kafka.listeners=SASL_PLAINTEXT://127.0.0.1:9092"
BEARER = "kafka.sasl.oauthbearer.expected"
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
        ("kafka.listeners=SASL_PLAINTEXT://127.0.0.1:9092",),
        ("kafka.listeners=SASL_SSL://10.0.0.2:9092", STORES[0]),
    ],
)
def test_a_listener_on_loopback_or_that_asks_who_comes_is_taken(told: tuple[str, ...]) -> None:
    spec = kafka_spec(load_config(None, {}, [BEHIND, *told]))
    assert spec is not None
    assert (spec.port, spec.brokers) == (9092, (("10.0.0.1", 9092), ("::1", 9093)))
    assert bool(spec.security.tls) is ("SSL:" in told[0])
    assert bool(spec.security.sasl) is ("SASL" in told[0])


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ((BEHIND, "kafka.listeners=PLAINTEXT://10.0.0.2:9092"), "is not a loopback address"),
        ((BEHIND, "kafka.listeners=PLAINTEXT://0.0.0.0:9092"), "is not a loopback address"),
        ((BEHIND, "kafka.listeners=SSL://127.0.0.1:9092"), "kafka.ssl.keystore.location"),
        ((BEHIND, "kafka.listeners=SASL_SSL://127.0.0.1:9092"), "kafka.ssl.keystore.location"),
        ((BEHIND, "kafka.listeners=SASL_PLAINTEXT://10.0.0.2:9092"), "read and changed on its way"),
        (("kafka.sasl.enabled.mechanisms=GSSAPI",), "SCRAM-SHA-512"),
        (("kafka.sasl.enabled.mechanisms=",), "SCRAM-SHA-512"),
        (("kafka.super.users=ann",), "User:ann"),
        (("members.principal=User:n",), "needs kafka.listeners = SSL://HOST:PORT"),
        ((BEHIND, SASL, "members.principal=User:n"), "needs kafka.listeners = SSL://HOST:PORT"),
        (
            (
                BEHIND,
                "kafka.listeners=SSL://:9092",
                *STORES,
                "kafka.ssl.client.auth=none",
                "members.principal=User:n",
            ),
            "and kafka.ssl.client.auth = required",
        ),
        (("kafka.ssl.principal.mapping.rules=lower",), "no rule begins at 'lower'"),
        ((BEHIND, SASL, "kafka.sasl=broker"), "needs kafka.upstream.security.protocol = SASL_SSL"),
        (
            (BEHIND, SASL, "kafka.sasl.enabled.mechanisms=OAUTHBEARER", f"{BEARER}.issuer=i"),
            "needs kafka.sasl.oauthbearer.jwks.endpoint.url, kafka.sasl.oauthbearer.expected.aud",
        ),
        (
            ("kafka.sasl.oauthbearer.jwks.endpoint.url=http://id.example/keys",),
            "an https URL, or nothing",
        ),
        (
            (BEHIND, SASL, "kafka.upstream.security.protocol=SASL_SSL"),
            "needs kafka.upstream.sasl.mechanism, kafka.upstream.sasl.username",
        ),
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


def test_tokens_and_stores_of_pkcs12_are_passed_to_the_listener(tmp_path: Path) -> None:
    (tmp_path / "secrets").write_text("store=open sesame\n")
    spec = kafka_spec(
        load_config(
            None,
            {},
            (
                *(BEHIND, "kafka.listeners=SASL_SSL://127.0.0.1:9092"),
                "kafka.ssl.keystore.location=/k.p12",
                f"kafka.ssl.keystore.password=${{file:{tmp_path}/secrets:store}}",
                "kafka.sasl.enabled.mechanisms=OAUTHBEARER",
                "kafka.sasl.oauthbearer.jwks.endpoint.url=file:///etc/keys.json",
                *(f"{BEARER}.issuer=https://id", f"{BEARER}.audience=fairlead, others"),
            ),
        )
    )
    assert spec is not None
    assert KafkaSpec.read(json.loads(json.dumps(asdict(spec)))) == spec
    assert spec.security.bearer == BearerSpec(
        jwks="/etc/keys.json", issuer="https://id", audiences=("fairlead", "others")
    )
    resolved = resolve_secrets(spec, tmp_path / "data").security
    assert resolved.tls["kafka.ssl.keystore.password"] == "open sesame"
    assert "sesame" not in repr(resolved)


def test_rights_are_passed_to_the_listener() -> None:
    told = (BEHIND, "kafka.listeners=SASL_PLAINTEXT://127.0.0.1:9092", "kafka.acls=/acls")
    supers = "kafka.super.users=User:root; User:CN=a,O=b"
    spec = kafka_spec(load_config(None, {}, [*told, supers]))
    assert spec is not None
    assert KafkaSpec.read(json.loads(json.dumps(asdict(spec)))) == spec
    assert spec.security == KafkaSecurity(
        sasl="here",
        mechanisms=("SCRAM-SHA-512", "SCRAM-SHA-256"),
        users=spec.security.users,
        acls="/acls",
        super_users=("User:root", "User:CN=a,O=b"),
    )


def test_the_names_of_nodes_are_passed_to_the_listener() -> None:
    names = "members.principal=User:CN=n1,O=b; User:CN=n2,O=b"
    spec = kafka_spec(
        load_config(None, {}, [BEHIND, "kafka.listeners=SSL://:9092", *STORES, names])
    )
    assert spec is not None
    assert KafkaSpec.read(json.loads(json.dumps(asdict(spec)))) == spec
    assert spec.security.nodes == ("User:CN=n1,O=b", "User:CN=n2,O=b")
