"""The listener for Kafka clients as its setting names it: a security protocol, and HOST:PORT."""

from typing import Final, NamedTuple

from ....actors.transport.ports import LOOPBACK, HostPort

PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL = "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"
PROTOCOLS: Final = (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL)
REQUIRED, REQUESTED, NO_CLIENT_AUTH = "required", "requested", "none"
PORT_MAX: Final = 65_535


class KafkaListener(NamedTuple):
    """The address of the listener for Kafka's clients, and its security protocol."""

    address: HostPort
    protocol: str = PLAINTEXT

    @property
    def is_encrypted(self) -> bool:
        """Whether connections are encrypted."""
        return self.protocol in {SSL, SASL_SSL}

    @property
    def has_sasl(self) -> bool:
        """Whether clients authenticate with SASL."""
        return self.protocol in {SASL_PLAINTEXT, SASL_SSL}

    def client_auth(self, value: str) -> str:
        """Return whether clients need a certificate, for a value of `kafka.ssl.client.auth`."""
        return value or (NO_CLIENT_AUTH if self.has_sasl else REQUIRED)


def parse_kafka_listener(text: str) -> KafkaListener:
    """Parse a security protocol, `://` and HOST:PORT; raises `ValueError`."""
    protocol, separator, address = text.partition("://")
    if protocol not in PROTOCOLS or not separator:
        raise ValueError(f"it begins with none of {', '.join(f'{each}://' for each in PROTOCOLS)}")
    return KafkaListener(parse_address(address, LOOPBACK), protocol)


def parse_address(text: str, default_host: str = "") -> HostPort:
    """Parse HOST:PORT; raises `ValueError`."""
    host, separator, port = text.strip().rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or default_host
    if not separator or not host or not port.isdecimal() or not 0 < int(port) <= PORT_MAX:
        raise ValueError(f"{text!r} is not HOST:PORT")
    return HostPort(host, int(port))


def split_principals(text: str) -> tuple[str, ...]:
    """Return the principals in a list; names may have commas, so that there are semicolons."""
    return tuple(each.strip() for each in text.split(";") if each.strip())
