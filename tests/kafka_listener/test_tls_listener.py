"""An encrypted listener: certificates of clients are their names, and its own may be replaced."""
# pyright: basic

import asyncio
import contextlib
import shutil
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.x509 import load_pem_x509_certificate

from fairlead.projections.metrics.exposition import Exposition
from fairlead.projections.metrics.processes import RequestMetrics
from fairlead.runtime.cluster.kafka_security import KafkaSecurity
from fairlead.runtime.kafka.security.access import open_access
from fairlead.runtime.kafka.wire.served import LIST_GROUPS
from fairlead.runtime.security.kafka.principal_mapping import map_subject, parse_mapping
from fairlead_tests import certificates
from fairlead_tests.kafka.certificates import Authority
from fairlead_tests.kafka_listener.behind import behind
from fairlead_tests.kafka_listener.sasl import PASSWORDS, SECRET, scram, write_users
from fairlead_tests.kafka_listener.served import Client, Served, listening
from fairlead_tests.kafka_listener.spoken import ask

HOST = "127.0.0.1"
CERTIFICATE_END = 'fairlead_certificate_not_after_timestamp_seconds{listener="kafka"}'


def encrypted(
    folder: Path, play: Callable[[Served, Authority], Awaitable[Any]], **security: Any
) -> None:
    """Play against a listener that asks clients for certificates of an authority."""
    authority = Authority(folder)
    tls = {
        "kafka.ssl.keystore.location": str(authority.sign("listener")),
        "kafka.ssl.truststore.location": str(authority.path),
        "kafka.ssl.client.auth": security.pop("client_auth", "required"),
    }

    async def run() -> None:
        access = open_access(KafkaSecurity(tls=tls, **security), SECRET)
        async with behind() as broker, listening(folder, broker.port, access=access) as served:
            await play(served, authority)

    asyncio.run(run())


async def dial(served: Served, authority: Authority, own: Path | None = None) -> Client:
    """Connect with a certificate, or without one."""
    context = ssl.create_default_context(cafile=str(authority.path))
    if own is not None:
        context.load_cert_chain(own)
    client = Client(*await asyncio.open_connection(HOST, served.port, ssl=context))
    served.clients.append(client)
    return client


async def groups_of(client: Client) -> list[str]:
    """Return the groups that a client may see."""
    return [each["GroupId"] for each in (await ask(client, LIST_GROUPS, 0))["Groups"]]


def test_the_subject_of_a_certificate_is_the_name_of_its_client(tmp_path: Path) -> None:
    (tmp_path / "acls").write_text("deny User:* all group literal *")

    async def play(served: Served, authority: Authority) -> None:
        for name in ("ann", "bob"):
            client = await dial(served, authority, authority.sign(name))
            await ask(client, 12, 2, GroupId="g", GenerationId=1, MemberId="m")
        assert served.counts.told == [
            f"no right: 'User:CN={name}' may not read group 'g'" for name in ("ann", "bob")
        ]

    encrypted(tmp_path, play, acls=str(tmp_path / "acls"))


def test_rules_make_names_of_subjects_and_a_subject_without_a_rule_has_none(
    tmp_path: Path,
) -> None:
    (tmp_path / "acls").write_text("")

    async def play(served: Served, authority: Authority) -> None:
        client = await dial(served, authority, authority.sign("ANN"))
        assert await groups_of(client) == []
        await ask(client, 12, 2, GroupId="g", GenerationId=1, MemberId="m")
        assert served.counts.told == ["no right: 'User:ann' may not read group 'g'"]
        client = await dial(served, authority, authority.sign("x1"))
        assert await client.receive() == b""
        assert served.counts.reasons == ["not authenticated"]
        assert served.counts.mechanisms == ["mtls"]

    rules = "RULE:^CN=([A-Za-z]+)$/$1/L"
    encrypted(tmp_path, play, acls=str(tmp_path / "acls"), principal_rules=rules)


@pytest.mark.parametrize(
    ("rules", "subject", "name"),
    [
        ("DEFAULT", "CN=ann,O=x", "CN=ann,O=x"),
        ("RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/", "CN=a,OU=ServiceUsers,O=x", "a"),
        ("RULE:^CN=(.*?),OU=(.*?)$/$1@$2/U, DEFAULT", "CN=a,OU=b", "A@B"),
        ("RULE:^CN=x$/y/,RULE:^CN=a$/z/", "CN=a", "z"),
        (r"RULE:^CN=a\/b$/c\/d/", "CN=a/b", "c/d"),
        ("RULE:^CN=x$/y/", "CN=a", None),
        ("RULE:^CN=x$/y/\nDEFAULT", "CN=a", "CN=a"),
    ],
)
def test_a_mapping_rule_means_what_it_means_to_kafka(
    rules: str, subject: str, name: str | None
) -> None:
    assert map_subject(parse_mapping(rules), subject) == name


@pytest.mark.parametrize(
    "rules", ["", "default", "RULE:", "RULE:/a/", "RULE:(/a/", "RULE:^CN=a$/$1/", "RULE:a/b/X"]
)
def test_a_text_that_is_no_mapping_rule_is_refused(rules: str) -> None:
    with pytest.raises(ValueError, match=r"no rule|no pattern|names a group"):
        parse_mapping(rules)


def test_a_client_without_a_certificate_is_let_in_where_none_is_needed(tmp_path: Path) -> None:
    async def play(served: Served, authority: Authority) -> None:
        assert await groups_of(await dial(served, authority)) == []

    encrypted(tmp_path, play, client_auth="requested")


@pytest.mark.parametrize("is_foreign", [False, True])
def test_no_other_client_is_let_in(tmp_path: Path, is_foreign: bool) -> None:
    async def play(served: Served, authority: Authority) -> None:
        own = Authority(tmp_path, "other").sign("ann") if is_foreign else None
        with contextlib.suppress(ssl.SSLError, ConnectionError):  # in TLS 1.3 at the first read
            client = await dial(served, authority, own)
            assert await client.receive() == b""
        while served.counts.opened:
            await asyncio.sleep(0)
        assert served.counts.reasons == ["TLS"]

    encrypted(tmp_path, play)


def test_a_client_without_tls_is_closed(tmp_path: Path) -> None:
    async def play(served: Served, _: Authority) -> None:
        client = await served.dial()
        await client.send(b"\0\x12\0\0\0\0\0\0\xff\xff")
        assert (await client.reader.read())[:1] in {b"", b"\x15"}  # an alert of TLS
        assert served.counts.reasons == ["TLS"]
        following = asyncio.create_task(served.listener.follow_files())
        await asyncio.sleep(0)
        page = Exposition("1", RequestMetrics(), tmp_path).write("", ())[0]
        own = load_pem_x509_certificate((tmp_path / "listener.pem").read_bytes())
        lines = page.decode().splitlines()
        assert 'fairlead_tls_failed_handshakes_total{listener="kafka"} 1.0' in lines
        (end,) = (each.split() for each in lines if each.startswith(CERTIFICATE_END))
        assert float(end[-1]) == own.not_valid_after_utc.timestamp()
        following.cancel()

    encrypted(tmp_path, play)


def test_users_log_in_over_tls(tmp_path: Path) -> None:
    write_users(tmp_path / "users.json", PASSWORDS)

    async def play(served: Served, authority: Authority) -> None:
        client = await dial(served, authority)
        answer = await scram(client, "SCRAM-SHA-512", "ann", PASSWORDS["ann"])
        assert answer["ErrorCode"] == 0
        assert await groups_of(client) == []

    users = {"sasl": "here", "users": str(tmp_path / "users.json")}
    encrypted(tmp_path, play, client_auth="none", mechanisms=("SCRAM-SHA-512",), **users)


def test_a_new_certificate_is_used_for_new_connections(tmp_path: Path) -> None:
    async def play(served: Served, authority: Authority) -> None:
        async def serial() -> Any:
            client = await dial(served, authority)
            return client.writer.get_extra_info("peercert")["serialNumber"]

        first = await serial()
        shutil.move(authority.sign("renewed"), tmp_path / "listener.pem")
        second = await serial()
        assert first != second == await serial()

    encrypted(tmp_path, play, client_auth="none")


def test_stores_of_pkcs12_have_a_password_and_are_read_again_as_well(tmp_path: Path) -> None:
    authority, password, store = certificates.Authority(), "open sesame", tmp_path / "store.p12"
    trusted = authority.write(tmp_path / "authority.pem")

    def write(content: bytes) -> None:
        store.touch(0o600)
        store.write_bytes(content)

    write(authority.issue("127.0.0.1").pkcs12(password))
    tls = {
        "kafka.ssl.keystore.location": str(store),
        "kafka.ssl.keystore.password": password,
        "kafka.ssl.client.auth": "none",
    }
    context = ssl.create_default_context(cafile=str(trusted))

    async def serial(served: Served) -> Any:
        _, writer = await asyncio.open_connection(HOST, served.port, ssl=context)
        number = writer.get_extra_info("peercert")["serialNumber"]
        writer.transport.abort()
        return number

    async def run() -> None:
        access = open_access(KafkaSecurity(tls=tls), SECRET)
        async with listening(tmp_path, access=access) as served:
            first = await serial(served)
            renewed = authority.issue("127.0.0.1").pkcs12(password)
            write(renewed[:100])
            assert await serial(served) == first
            write(renewed)
            assert await serial(served) != first

    asyncio.run(run())


def test_who_connects_and_leaves_without_a_word_is_not_counted_as_refused(tmp_path: Path) -> None:
    async def play(served: Served, authority: Authority) -> None:
        _, writer = await asyncio.open_connection(HOST, served.port)  # as a probe of the port
        writer.close()
        await writer.wait_closed()
        client = await dial(served, authority, authority.sign("ann"))
        assert await groups_of(client) == []
        assert served.counts.reasons == []
        reader, writer = await asyncio.open_connection(HOST, served.port)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        assert await reader.read() == b""
        writer.close()
        assert served.counts.reasons == ["TLS"]

    encrypted(tmp_path, play)
