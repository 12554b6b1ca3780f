"""The commands `version` and `cluster-info`: which program asks, which answers, and where."""

import platform
from importlib.metadata import version as version_of
from typing import Annotated

from msgspec import Struct

from ....pipeline.installed import DISTRIBUTION
from ...replies.node import ServerInfo
from ...replies.overview import NodeStatus
from ..adapters.parameters import Option
from ..output.printing import FactList, Failed, Output, show
from ..requests.client import find_client
from ..requests.options import RemoteReadOptions, with_options


class Versions(Struct, frozen=True, omit_defaults=True):
    """The versions of this program, and of the node that it asks."""

    client: str
    python: str
    url: str = ""
    origin: str = ""
    """What has said that this cluster is meant."""
    server: str = ""
    connect: str = ""
    """The version of Kafka Connect whose REST API the node has."""
    cluster_id: str = ""


class Endpoints(Struct, frozen=True):
    """Where a cluster is, and how it is."""

    url: str
    origin: str
    cluster_id: str
    version: str
    health: str
    groups: int
    workers: int
    connectors: int
    metrics: str
    openapi: str


@with_options(RemoteReadOptions)
def version(
    options: RemoteReadOptions,
    *,
    client: Annotated[
        bool, Option("--client", help="Only of this program; no cluster is asked.")
    ] = False,
) -> None:
    """Show the versions of this program and of the node that it asks, and what chose that node."""
    own = Versions(version_of(DISTRIBUTION), platform.python_version())
    if client:
        show(options.output, own, [_tabulate(own)])
        return
    try:
        cluster = find_client(options)
        server = cluster.get(ServerInfo)
    except Failed:
        if options.output is Output.TABLE:  # this is known nevertheless
            show(options.output, own, [_tabulate(own)])
        raise
    whole = Versions(
        own.client,
        own.python,
        cluster.base,
        cluster.origin,
        server.fairlead_version,
        server.version,
        server.kafka_cluster_id,
    )
    show(options.output, whole, [_tabulate(whole)])


def _tabulate(versions: Versions) -> FactList:
    own = [("Client", versions.client), ("Python", versions.python)]
    if not versions.server:
        return FactList(own)
    return FactList(
        [
            *own,
            ("Server", versions.server),
            ("REST", f"of Kafka Connect {versions.connect}"),
            ("Cluster", f"{versions.cluster_id} at {versions.url} ({versions.origin})"),
        ]
    )


@with_options(RemoteReadOptions)
def cluster_info(options: RemoteReadOptions) -> None:
    """Show where the cluster is: its address, what chose it, its health, its metrics and REST."""
    cluster = find_client(options)
    node = cluster.get(NodeStatus, "status")
    server = node.server
    endpoints = Endpoints(
        cluster.base,
        cluster.origin,
        server.kafka_cluster_id,
        server.fairlead_version,
        f"{node.verdict.status}: {node.verdict.message}",
        len(node.groups),
        len(node.workers.workers),
        len(node.connectors),
        f"{cluster.base}/metrics",
        f"{cluster.base}/openapi.json",
    )
    facts = [
        ("Cluster", f"{endpoints.cluster_id}, fairlead {endpoints.version}"),
        ("Address", f"{endpoints.url} ({endpoints.origin})"),
        ("Health", endpoints.health),
        ("Groups", str(endpoints.groups)),
        ("Workers", str(endpoints.workers)),
        ("Connectors", str(endpoints.connectors)),
        ("Metrics", endpoints.metrics),
        ("OpenAPI", endpoints.openapi),
    ]
    show(options.output, endpoints, [FactList(facts)])
