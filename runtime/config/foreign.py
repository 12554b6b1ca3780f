"""Tells the settings and environment variables that belong to other programs from ours.

A node is started where a Connect worker was, with its file, and in pods: Kubernetes gives each
process variables for the services beside it, and those of a service `fairlead` begin as ours do.
"""

import re
from typing import Final

CONNECT: Final = (
    "bootstrap.servers",
    "client.",
    "key.converter",
    "value.converter",
    "header.converter",
    "config.storage.",
    "offset.storage.",
    "status.storage.",
    "config.providers",
    "plugin.",
    "producer.",
    "consumer.",
    "admin.",
    "ssl.",
    "sasl.",
    "security.",
    "topic.",
    "inter.worker.",
    "worker.sync.",
    "worker.unsync.",
    "exactly.once.source.support",
    "connector.client.config.override.policy",
    "metric",
    "rest.extension.classes",
    "response.http.headers.config",
    "access.control.",
    "offset.flush.",
    "internal.key.converter",
    "internal.value.converter",
    "metadata.",
    "reconnect.backoff.",
    "retry.backoff.",
    "request.timeout.ms",
    "send.buffer.bytes",
    "receive.buffer.bytes",
    "connections.max.idle.ms",
    "socket.connection.setup.",
    "auto.include.jmx.reporter",
    "rest.advertised.listener",
    "enable.metrics.push",
)
"""Prefixes of Kafka Connect's worker settings (`WorkerConfig`, `DistributedConfig`) without a
meaning here."""

_SERVICE: Final = re.compile(
    r"FAIRLEAD(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?"
    r"|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)",
    re.ASCII,
)
"""The variables of a service that no setting can be meant by (the kubelet's `FromServices`)."""
_SERVICE_ADDRESS: Final = re.compile(r"(tcp|udp|sctp)://\S+:\d+", re.ASCII | re.IGNORECASE)


def is_of_connect(key: str) -> bool:
    """Return whether only a worker of Kafka Connect has this setting, if it is unknown here."""
    return key.startswith(CONNECT)


def is_of_kubernetes(variable: str, value: str) -> bool:
    """Return whether Kubernetes made a variable for a service whose name begins with `fairlead`.

    FAIRLEAD_ACTOR_PORT is one of a service `fairlead-actor` if it has a URL, else the setting.
    """
    if variable.endswith("_PORT") and _SERVICE_ADDRESS.fullmatch(value):
        return True
    return bool(_SERVICE.fullmatch(variable))
