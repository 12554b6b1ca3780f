# pyright: basic
"""Unchanged clients log in at the listener, by users of the node and by those of the broker."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from fairlead.actors.transport.ports import HostPort
from fairlead.runtime.cluster.kafka_security import BearerSpec, KafkaSecurity
from fairlead.runtime.kafka.security.access import open_access
from fairlead.runtime.kafka.security.authenticators import OwnAuthenticator
from fairlead.runtime.security.kafka.users import keys_of_password, save_users
from fairlead_tests.certificates import Authority
from fairlead_tests.kafka.broker import Broker
from fairlead_tests.kafka.topics import Topics
from fairlead_tests.kafka_clients.login import Login, heard_by, write_by_java
from fairlead_tests.kafka_listener.node import ListenerNode, listener_node
from fairlead_tests.kafka_listener.served import listening
from fairlead_tests.kafka_listener.tokens import AUDIENCE, ISSUER, Provider
from fairlead_tests.soaks import thinned

pytestmark = pytest.mark.cluster

USER, PASSWORD = "ann", "open sesame"
OF_BROKER = "reader", "open sesame"
SECONDS = 60.0
GROUP = "doors-1"
WITH_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
ACLS = """
allow User:ann read group prefixed doors-
allow User:* read topic literal *
deny User:ann describe topic prefixed doors.hidden
"""
LET_IN = "let in"
SOAKED = ("aiokafka", "java", "kafka-python")
"""Clients of a soak: the last hears of a wrong password at the end of its timeout alone."""


@dataclass(frozen=True)
class Guarded:
    """A node that verifies users, passwords and tokens itself, on an encrypted listener."""

    node: ListenerNode
    authority: Path
    token: Path
    expired: Path

    def login(self, mechanism: str, password: str = "", token: Path | None = None) -> Login:
        """Return a login of its user."""
        by = {"token": str(token)} if token else {"password": password}
        at = self.node.bootstrap
        return Login(at, mechanism, USER, **by, authority=str(self.authority))


def owned(path: Path, content: str | bytes) -> Path:
    """Write a file that only its owner may read."""
    path.touch(0o600)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.fixture(scope="module")
def guarded(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A node with a user, a provider and rules, which logs in to the broker over TLS."""
    folder = tmp_path_factory.mktemp("guarded")
    save_users(folder / "users.json", {USER: keys_of_password(PASSWORD)})
    (folder / "acls").write_text(ACLS)
    broker.let_in("node", "of the node")
    authority, provider = Authority(), Provider(folder)
    owned(folder / "secret", PASSWORD)
    with listener_node(
        folder / "data",
        broker.encrypted,
        protocol="SASL_SSL",
        kafka_group_shards=1,
        kafka_ssl_keystore_location=owned(
            folder / "store.p12", authority.issue("127.0.0.1").pkcs12(PASSWORD)
        ),
        kafka_ssl_keystore_password=f"${{dir:{folder}:secret}}",
        kafka_sasl_enabled_mechanisms=",".join((*WITH_PASSWORD, "OAUTHBEARER")),
        kafka_sasl_oauthbearer_jwks_endpoint_url=f"file://{provider.jwks}",
        kafka_sasl_oauthbearer_expected_issuer=ISSUER,
        kafka_sasl_oauthbearer_expected_audience=AUDIENCE,
        kafka_sasl_users=folder / "users.json",
        kafka_acls=folder / "acls",
        kafka_upstream_security_protocol="SASL_SSL",
        kafka_upstream_ssl_truststore_location=broker.authority.path,
        kafka_upstream_sasl_mechanism="SCRAM-SHA-512",
        kafka_upstream_sasl_username="node",
        kafka_upstream_sasl_password_file=owned(folder / "password", "of the node\n"),
    ) as node:
        yield Guarded(
            node,
            authority.write(folder / "authority.pem"),
            owned(folder / "token", provider.sign(sub=USER)),
            owned(folder / "expired", provider.sign(sub=USER, exp=int(time.time()) - 60)),
        )


def permit(
    broker: Broker, kind: ResourceType, prefix: str, principal: str, operation: AclOperation
) -> None:
    """Have the broker permit something with all resources of a prefix."""
    pattern = ResourcePatternType.PREFIXED
    rule = AclBinding(kind, prefix, pattern, principal, "*", operation, AclPermissionType.ALLOW)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_acls([rule])[rule].result(SECONDS)


@pytest.fixture(scope="module")
def passing(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ListenerNode]:
    """A node that has the broker authenticate its clients, by whose rules its groups go as well."""
    folder = tmp_path_factory.mktemp("passing")
    permit(broker, ResourceType.GROUP, "doors-", "User:reader", AclOperation.READ)
    permit(broker, ResourceType.TOPIC, "doors.", "User:*", AclOperation.ALL)
    broker.let_in("scram", PASSWORD)
    with listener_node(
        folder / "data",
        broker.encrypted,
        protocol="SASL_PLAINTEXT",
        kafka_group_shards=1,
        kafka_sasl="broker",
        kafka_sasl_enabled_mechanisms="PLAIN,SCRAM-SHA-512,OAUTHBEARER",
        kafka_acls="broker",
        kafka_upstream_security_protocol="SASL_SSL",
        kafka_upstream_ssl_truststore_location=broker.authority.path,
        kafka_upstream_sasl_mechanism="PLAIN",
        kafka_upstream_sasl_username=OF_BROKER[0],
        kafka_upstream_sasl_password_file=owned(folder / "password", OF_BROKER[1]),
    ) as node:
        yield node


def log_in_by_certificate(
    broker: Broker, folder: Path, hear: Callable[[Login], list[str]]
) -> list[str]:
    """Return what is heard with the login of a client that has a certificate."""
    authority = Authority()
    trusted = authority.write(folder / "authority.pem")
    tls = {
        "kafka.ssl.keystore.location": str(
            authority.issue("127.0.0.1").write(folder / "listener.pem", PASSWORD)
        ),
        "kafka.ssl.key.password": PASSWORD,
        "kafka.ssl.truststore.location": str(trusted),
        "kafka.ssl.client.auth": "required",
    }
    own = authority.issue("ann").write(folder / "ann.pem")

    async def run() -> list[str]:
        port = int(broker.bootstrap.rpartition(":")[2])
        access = open_access(KafkaSecurity(tls=tls), b"")
        async with listening(folder, port, access=access) as served:
            at = f"127.0.0.1:{served.port}"
            login = Login(at, authority=str(trusted), certificate=str(own))
            return await asyncio.to_thread(hear, login)

    return asyncio.run(run())


@pytest.mark.parametrize(
    "client",
    ["confluent", *(pytest.param(each, marks=pytest.mark.soak) for each in SOAKED)],
)
@pytest.mark.usefixtures("jars")
def test_every_client_logs_in_in_every_way_and_hears_what_a_broker_says(
    guarded: Guarded, passing: ListenerNode, broker: Broker, tmp_path: Path, client: str
) -> None:
    there, direct = passing.bootstrap, broker.with_password
    name, password = OF_BROKER
    wrong = "wrong password"
    let_in = [
        *(guarded.login(each, PASSWORD) for each in WITH_PASSWORD),
        guarded.login("OAUTHBEARER", token=guarded.token),
        Login(there, "PLAIN", name, password),
        Login(there, "SCRAM-SHA-512", "scram", PASSWORD),
        Login(there, "OAUTHBEARER", "bearer"),
    ]
    refused = [
        Login(direct, "PLAIN", name, wrong),
        guarded.login("PLAIN", wrong),
        guarded.login("OAUTHBEARER", token=guarded.expired),
        Login(there, "PLAIN", name, wrong),
    ]
    heard = log_in_by_certificate(
        broker, tmp_path, lambda login: heard_by(client, [login, *let_in, *refused])
    )
    assert heard[:8] == [LET_IN] * 8
    assert heard[8:] == [heard[8]] * 4
    assert heard[8] != LET_IN


@pytest.mark.soak
@pytest.mark.usefixtures("jars")
def test_java_renews_its_session_on_its_connection_while_it_writes(
    broker: Broker, topics: Topics, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, provider = topics.make("doors.renewed"), Provider(tmp_path)
    begun = Counter[object]()
    begin = OwnAuthenticator.begin

    async def count(*of: Any) -> Any:
        begun[of[-1].__self__] += 1  # the connection
        return await begin(*of)

    monkeypatch.setattr(OwnAuthenticator, "begin", count)
    spec = KafkaSecurity(
        sasl="here",
        mechanisms=("OAUTHBEARER",),
        users=str(tmp_path / "users.json"),
        session_ms=4_000,
        bearer=BearerSpec(jwks=str(provider.jwks), issuer=ISSUER, audiences=(AUDIENCE,)),
    )

    async def run() -> None:
        port = int(broker.bootstrap.rpartition(":")[2])
        async with listening(tmp_path, port, access=open_access(spec, b"")) as served:
            token = owned(tmp_path / "token", provider.sign())
            login = Login(f"127.0.0.1:{served.port}", "OAUTHBEARER", token=str(token))
            await served.listener.open_broker_ports([HostPort("127.0.0.1", port)])
            await asyncio.to_thread(write_by_java, login, topic, records=280, per_second=20)

    asyncio.run(run())
    assert max(begun.values()) > 2, begun
    assert len(topics.values(topic)) == 280


@pytest.mark.parametrize(("group", "error"), [(GROUP, ""), ("other", "GROUP_AUTHORIZATION")])
@pytest.mark.parametrize("protocol", thinned(["classic", "consumer"], 2))
@pytest.mark.parametrize("by", ["guarded", "passing"])
def test_a_consumer_joins_the_groups_that_it_may_read(
    request: pytest.FixtureRequest, topics: Topics, by: str, protocol: str, group: str, error: str
) -> None:
    door: ListenerNode | Guarded = request.getfixturevalue(by)
    is_own = isinstance(door, Guarded)
    node = door.node if isinstance(door, Guarded) else door
    encryption = {"ssl.ca.location": str(door.authority)} if isinstance(door, Guarded) else {}
    name, password = (USER, PASSWORD) if is_own else OF_BROKER
    topic = topics.make(f"doors.{by}.{protocol}.{group}")
    heard: list[str] = []
    consumer: Any = Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "security.protocol": "SASL_SSL" if is_own else "SASL_PLAINTEXT",
            **encryption,
            "sasl.mechanism": "SCRAM-SHA-256" if is_own else "PLAIN",
            "sasl.username": name,
            "sasl.password": password,
            "group.id": f"{group}-{protocol}",
            "group.protocol": protocol,
            "log_level": 0,
            "error_cb": lambda each: heard.append(each.name()),
        }
    )
    with contextlib.closing(consumer):
        consumer.subscribe([topic])
        for _ in range(int(SECONDS / 0.05)):
            message = consumer.poll(0.05)
            if message is not None and message.error():
                heard.append(message.error().name())
            if consumer.assignment() or any("AUTHORIZATION" in each for each in heard):
                break
        if error:
            assert any(error in each for each in heard), heard
        assert [each.topic for each in consumer.assignment()] == ([] if error else [topic])


def test_a_pattern_of_a_consumer_leaves_out_what_it_may_not_describe(
    guarded: Guarded, topics: Topics
) -> None:
    seen = topics.make("doors.seen.1")
    topics.make("doors.hidden.1")
    consumer: Any = Consumer(
        {
            "bootstrap.servers": guarded.node.bootstrap,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(guarded.authority),
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": USER,
            "sasl.password": PASSWORD,
            "group.id": f"{GROUP}-pattern",
            "group.protocol": "consumer",
        }
    )
    with contextlib.closing(consumer):
        consumer.subscribe(["^doors[.](seen|hidden)[.].*"])
        deadline = time.monotonic() + SECONDS
        while not consumer.assignment() and time.monotonic() < deadline:
            assert consumer.poll(0.05) is None
        assert [each.topic for each in consumer.assignment()] == [seen]
