"""Clients that log in, each with its own library: what each of them hears.

`python -m fairlead_tests.kafka_clients.logins CLIENT` reads a list of logins as JSON. It prints a
list of what the client heard. Kafka's own client is `LoginsPeer.java`.
"""
# pyright: basic

import asyncio
import json
import ssl
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import aiokafka.errors
import kafka
import kafka.errors
import kafka.net.sasl.oauth
from aiokafka.abc import AbstractTokenProvider
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from fairlead_tests.kafka_clients.login import Login

SECONDS = 60.0
KAFKA: Any = kafka
"""It has types for none of its names."""


def by_confluent(login: Login) -> str:
    config: dict[str, Any] = {
        "bootstrap.servers": login.address,
        "security.protocol": login.protocol,
        "ssl.ca.location": login.authority,
        "log_level": 0,
    }
    if login.certificate:
        config |= dict.fromkeys(("ssl.key.location", "ssl.certificate.location"), login.certificate)
    if login.mechanism == "OAUTHBEARER":
        config["oauth_cb"] = lambda _: (login.read_token(), time.time() + 600)
    elif login.mechanism:
        config |= {"sasl.username": login.user, "sasl.password": login.password}
    if login.mechanism:
        config["sasl.mechanism"] = login.mechanism
    errors: list[str] = []
    admin = AdminClient({**config, "error_cb": lambda error: errors.append(error.name())})
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        admin.poll(0)  # also asks for the token
        with suppress(KafkaException):
            admin.list_topics(timeout=0.3)
            return "let in"
        if failed := [each for each in errors if "AUTH" in each]:
            return failed[0]
    return "nothing"


def encryption_of(login: Login) -> ssl.SSLContext | None:
    """Return the TLS of a client, None if it has none."""
    if not login.authority:
        return None
    context = ssl.create_default_context(cafile=login.authority)
    if login.certificate:
        context.load_cert_chain(login.certificate)
    return context


def by_kafka_python(login: Login) -> str:
    class Tokens(KAFKA.net.sasl.oauth.AbstractTokenProvider):
        def token(self) -> str:
            return login.read_token()

    try:
        admin = KAFKA.KafkaAdminClient(
            bootstrap_servers=login.address,
            security_protocol=login.protocol,
            ssl_context=encryption_of(login),
            sasl_mechanism=login.mechanism or None,
            sasl_plain_username=login.user or None,
            sasl_plain_password=login.password or None,
            sasl_oauth_token_provider=Tokens() if login.mechanism == "OAUTHBEARER" else None,
            bootstrap_timeout_ms=int(SECONDS * 1_000),
        )
    except KAFKA.errors.KafkaError as error:
        return type(error).__name__
    admin.close()
    return "let in"


def by_aiokafka(login: Login) -> str:
    class Tokens(AbstractTokenProvider):
        async def token(self) -> str:
            return login.read_token()

    async def run() -> str:
        admin = AIOKafkaAdminClient(
            bootstrap_servers=login.address,
            security_protocol=login.protocol,
            ssl_context=encryption_of(login),
            sasl_mechanism=login.mechanism or "PLAIN",
            sasl_plain_username=login.user or None,
            sasl_plain_password=login.password or None,
            sasl_oauth_token_provider=Tokens() if login.mechanism == "OAUTHBEARER" else None,
        )
        try:
            await admin.start()
        except aiokafka.errors.KafkaError as error:
            return type(error).__name__
        finally:
            await admin.close()
        return "let in"

    return asyncio.run(run())


CLIENTS = {"confluent": by_confluent, "kafka-python": by_kafka_python, "aiokafka": by_aiokafka}

if __name__ == "__main__":
    logins = [Login(**each) for each in json.load(sys.stdin)]
    with ThreadPoolExecutor(len(logins)) as pool:
        print(json.dumps([*pool.map(CLIENTS[sys.argv[1]], logins)]))
