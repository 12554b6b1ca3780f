"""A login of a client, and what the client hears: each library in a process of its own."""

import json
import os
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from fairlead_tests import TESTS
from fairlead_tests.java_peer import tool
from fairlead_tests.kafka_clients.jars import SMALL, classpath

MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}

ALLOWED_URLS = "-Dorg.apache.kafka.sasl.oauthbearer.allowed"
TOKEN_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"


@dataclass(frozen=True)
class Login:
    """How a client logs in, and where."""

    address: str
    mechanism: str = ""
    """Empty: by its certificate alone."""
    user: str = ""
    password: str = ""
    token: str = ""
    """A file with a token; empty: one for the user that nobody has signed."""
    authority: str = ""
    """A file with the authority of the listener; empty: it is not encrypted."""
    certificate: str = ""
    """A file with the client's own key and certificate."""

    @property
    def protocol(self) -> str:
        """The security protocol."""
        encryption = "SSL" if self.authority else "PLAINTEXT"
        return f"SASL_{encryption}" if self.mechanism else encryption

    def read_token(self) -> str:
        """Return the token."""
        return Path(self.token).read_text() if self.token else unsigned_token(self.user)


def unsigned_token(user: str) -> str:
    """Return a token that a broker without a provider takes."""
    now = int(time.time())
    parts = {"alg": "none"}, {"sub": user, "iat": now, "exp": now + 600}
    encoded = (urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=").decode() for each in parts)
    return f"{'.'.join(encoded)}."


def java_properties(login: Login) -> dict[str, str]:
    """Return the properties of Kafka's own client."""
    options = f'username="{login.user}" password="{login.password}"'
    if login.mechanism == "OAUTHBEARER":
        options = "" if login.token else f'unsecuredLoginStringClaim_sub="{login.user}"'
    properties = {
        "bootstrap.servers": login.address,
        "security.protocol": login.protocol,
        "default.api.timeout.ms": "10000",
        "request.timeout.ms": "5000",
    }
    for kind, file in (("truststore", login.authority), ("keystore", login.certificate)):
        if file:
            properties |= {f"ssl.{kind}.type": "PEM", f"ssl.{kind}.location": file}
    if login.mechanism:
        jaas = f"{MODULES[login.mechanism]} required {options};"
        properties |= {"sasl.mechanism": login.mechanism, "sasl.jaas.config": jaas}
    if login.token:
        properties |= {
            "sasl.login.callback.handler.class": TOKEN_HANDLER,
            "sasl.oauthbearer.token.endpoint.url": f"file://{login.token}",
        }
    return properties


def heard_by(client: str, logins: Sequence[Login]) -> list[str]:
    """Return what a client hears at each login."""
    if client == "java":
        return heard_by_java(logins)
    command = [sys.executable, "-m", "fairlead_tests.kafka_clients.logins", client]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    spoken = json.dumps([asdict(each) for each in logins])
    ran = subprocess.run(command, input=spoken, stdout=-1, text=True, env=environment, check=True)
    answers: list[str] = json.loads(ran.stdout)
    return answers


def heard_by_java(logins: Sequence[Login]) -> list[str]:
    """Return what Kafka's own client hears at each login."""
    lines = [
        "\t".join("=".join(each) for each in java_properties(login).items()) for login in logins
    ]
    source = Path(__file__).with_name("LoginsPeer.java")
    ran = subprocess.run(
        [tool("java"), *SMALL, *_allowed(logins), "-cp", classpath(), str(source)],
        input="\n".join(lines),
        stdout=-1,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    return ran.stdout.splitlines()


def write_by_java(login: Login, topic: str, records: int, per_second: int) -> None:
    """Write records of one byte with Kafka's own client."""
    words = {
        "--topic": topic,
        "--num-records": str(records),
        "--record-size": "1",
        "--throughput": str(per_second),
    }
    properties = ["=".join(each) for each in java_properties(login).items()]
    command = [tool("java"), *SMALL, *_allowed([login]), "-cp", classpath()]
    command.append("org.apache.kafka.tools.ProducerPerformance")
    told = [word for each in words.items() for word in each]
    subprocess.run(
        [*command, *told, "--command-property", *properties],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def _allowed(logins: Sequence[Login]) -> list[str]:
    """Return the options of a JVM that let its clients read these files of tokens."""
    tokens = [each.token for each in logins if each.token]
    return [
        f"{ALLOWED_URLS}.urls={','.join(f'file://{each}' for each in tokens)}",
        f"{ALLOWED_URLS}.files={','.join(tokens)}",
    ]
