"""The settings that a node needs before its jobs can run on a Spark cluster."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ..pipeline.distribution import pip_install
from ..pipeline.engines.connect.address import ConnectAddress, missing_packages
from ..pipeline.engines.settings import AUTH_SECRET, HOST, STANDALONE

CORES_MAX: Final = "spark.cores.max"
_IMAGES: Final = ("spark.kubernetes.container.image", "spark.kubernetes.executor.container.image")


class ClusterNeed(NamedTuple):
    """A missing or conflicting setting: the keys concerned, and the text for users."""

    keys: tuple[str, ...]
    text: str


def cluster_needs(
    master: str, conf: Mapping[str, str], folders: str, drivers: int
) -> Iterator[ClusterNeed]:
    """Yield the missing settings of a Spark master; `drivers` is the number of JVMs of the node.

    A standalone master has one shared secret. YARN and Kubernetes create one for each driver, but
    their executors connect to the driver, which so needs an address that is not loopback.
    """
    told = f"spark.master = {master}"
    is_standalone = master.startswith(STANDALONE)
    if is_standalone and not conf.get(AUTH_SECRET):
        yield ClusterNeed(
            ("spark.master",),
            f"{told} needs spark.conf.{AUTH_SECRET}: without it anybody who reaches a port of the"
            " driver or of an executor could run code there. The cluster's own daemons need the"
            " same secret, spark.authenticate and spark.network.crypto.enabled",
        )
    if not is_standalone and not conf.get(HOST):
        yield ClusterNeed(
            ("spark.master",),
            f"{told} needs spark.conf.{HOST}: the address at which executors reach this node",
        )
    if master.startswith("k8s://") and not any(map(conf.get, _IMAGES)):
        yield ClusterNeed(
            ("spark.master",),
            f"{told} needs spark.conf.{_IMAGES[0]}: what executors run, with the same Python and"
            " fairlead at the same path",
        )
    if not folders:
        yield ClusterNeed(
            ("spark.master", "paths.allow"),
            f"{told} needs paths.allow: the folders that this node and all executors share, in"
            " which sources and sinks lie; that they do is checked when Spark starts",
        )
    if is_standalone and drivers > 1 and CORES_MAX not in conf:
        yield ClusterNeed(
            ("spark.master", "workers", "engine.kind"),
            f"{told} would give all its cores to the first of {drivers} workers, and the"
            f" others would wait: leave out engine.kind, or set spark.conf.{CORES_MAX} for each",
        )


def connect_needs(master: str, folders: str, kind: str) -> Iterator[ClusterNeed]:
    """Yield the missing settings of a Spark Connect server; texts have no secrets of its URL."""
    address = ConnectAddress.parse(master)
    told = f"spark.master = {address}"
    if flaw := address.flaw():
        yield ClusterNeed(("spark.master",), f"{told} {flaw}")
    if missing := missing_packages():
        yield ClusterNeed(
            ("spark.master",),
            f"{told} needs packages that are not installed ({', '.join(missing)}):"
            f" {pip_install('connect')}",
        )
    if kind == "shared":
        yield ClusterNeed(
            ("spark.master", "engine.kind"),
            f"{told}: each worker has a session there, and no JVM is shared: leave out engine.kind",
        )
    if not folders:
        yield ClusterNeed(
            ("spark.master", "paths.allow"),
            f"{told} needs paths.allow: the folders that this node, the server and its executors"
            " share, in which sources and sinks lie; that they do is checked when a session begins",
        )
