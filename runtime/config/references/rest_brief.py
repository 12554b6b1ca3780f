"""The brief of the REST process: what reaches it through its stdin, as some of it is secret."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ...security.tls import ServerTls, tls_settings
from .resolving import resolve

ALPN = ("http/1.1",)
"""What clients of https agree on with the interface."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestBrief:
    """The settings of the REST process that are not in its command line."""

    tls: Mapping[str, str] | None = None
    """The `ssl.*` settings, with references; None if no listener is encrypted."""
    admin_listeners: tuple[str, ...] | None = None
    """The URLs of the listeners for /admin alone; None: it is served where everything is."""
    origins: str = ""
    """`access.control.allow.origin`."""
    methods: str = ""
    """`access.control.allow.methods`."""
    headers: str = ""
    """`response.http.headers.config`."""
    prefix: str = ""
    """`rest.path.prefix`."""
    traces: Mapping[str, str] | None = None
    """The `traces.*` settings, with references; None if no traces are sent."""
    spark_conf: Mapping[str, str] = field(default_factory=dict[str, str])
    """The settings of Spark, for samples."""
    kafka: Mapping[str, Any] | None = None
    """The brokers behind the listener for Kafka's clients, and the fields of `UpstreamSpec`, as
    `brokers` and `upstream`; None: there is no listener."""
    plugins: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The fields of `PluginSpec`."""
    settings: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """The value of each setting of the node, without secrets, and the source of it."""

    def encode(self) -> bytes:
        """Return it as JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, content: bytes) -> "RestBrief":
        """Return it from JSON."""
        return cls(**json.loads(content))


def open_tls(values: Mapping[str, str], data_dir: Path) -> ServerTls:
    """Read key and certificates of the `ssl.*` settings, in which secrets may be references.

    Raises `TlsRefusedError`, `ReferenceBroken`.
    """
    return ServerTls(tls_settings(resolve(values, own=str(data_dir))), ALPN)
