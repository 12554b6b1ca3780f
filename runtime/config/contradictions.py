"""Conflicts between settings that are each valid, such as timeouts that do not fit together."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ...actors.group.state.settings import flaw_in_bounds
from ...actors.worker.instructions import flaw_in_session
from ..pipeline.distribution import pip_install
from ..pipeline.engines.connect.address import ConnectAddress, missing_packages
from ..pipeline.engines.settings import AUTH_SECRET, HOST, STANDALONE
from .keys import NodeSettings
from .setting import Contradiction

CORES_MAX: Final = "spark.cores.max"
_IMAGES: Final = ("spark.kubernetes.container.image", "spark.kubernetes.executor.container.image")


class Contradictory(Exception):  # noqa: N818  # says what the settings are
    """Settings conflict with one another; `found` has all conflicts."""

    def __init__(self, found: Sequence[Contradiction]) -> None:
        self.found = found
        super().__init__("; ".join(each.text for each in found))


def flaws_in_times(config: NodeSettings) -> Iterator[Contradiction]:
    """Yield conflicts between timeouts and intervals."""
    session = config.session_timeout_ms
    flaw = flaw_in_session(session, config.heartbeat_interval_ms, config.fence_margin_ms)
    if flaw:
        keys = "session.timeout.ms", "heartbeat.interval.ms", "fence.margin.ms"
        yield Contradiction(keys, flaw)
    if config.rebalance_timeout_ms < session:
        yield Contradiction(
            ("rebalance.timeout.ms", "session.timeout.ms"),
            f"rebalance.timeout.ms = {config.rebalance_timeout_ms} is too short: a lost worker that"
            " has to give up work is detected only after its session, so it must be"
            f" at least session.timeout.ms = {session}",
        )
    least, longest = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
    if flaw := flaw_in_bounds(least, longest):
        yield Contradiction(("group.min.session.timeout.ms", "group.max.session.timeout.ms"), flaw)
    if config.worker_restart_backoff_max_ms < config.worker_restart_backoff_ms:
        yield Contradiction(
            ("worker.restart.backoff.max.ms", "worker.restart.backoff.ms"),
            f"worker.restart.backoff.max.ms = {config.worker_restart_backoff_max_ms} must be at"
            f" least worker.restart.backoff.ms = {config.worker_restart_backoff_ms}",
        )


def cluster_needs(
    master: str, conf: Mapping[str, str], folders: str, drivers: int
) -> Iterator[Contradiction]:
    """Yield the missing settings of a Spark master; `drivers` is the number of JVMs of the node.

    A standalone master has one shared secret. YARN and Kubernetes create one for each driver, but
    their executors connect to the driver, which so needs an address that is not loopback.
    """
    at = f"spark.master = {master}"
    is_standalone = master.startswith(STANDALONE)
    if is_standalone and not conf.get(AUTH_SECRET):
        yield Contradiction(
            ("spark.master",),
            f"{at} needs spark.conf.{AUTH_SECRET}: without it anybody who reaches a port of the"
            " driver or of an executor could run code there. The cluster's own daemons need the"
            " same secret, spark.authenticate and spark.network.crypto.enabled",
        )
    if not is_standalone and not conf.get(HOST):
        yield Contradiction(
            ("spark.master",),
            f"{at} needs spark.conf.{HOST}: the address at which executors reach this node",
        )
    if master.startswith("k8s://") and not any(map(conf.get, _IMAGES)):
        yield Contradiction(
            ("spark.master",),
            f"{at} needs spark.conf.{_IMAGES[0]}: what executors run, with the same Python and"
            " fairlead at the same path",
        )
    if not folders:
        yield Contradiction(
            ("spark.master", "paths.allow"),
            f"{at} needs paths.allow: the folders that this node and all executors share, in"
            " which sources and sinks lie; that they do is checked when Spark starts",
        )
    if is_standalone and drivers > 1 and CORES_MAX not in conf:
        yield Contradiction(
            ("spark.master", "workers", "engine.kind"),
            f"{at} would give all its cores to the first of {drivers} workers, and the"
            f" others would wait: leave out engine.kind, or set spark.conf.{CORES_MAX} for each",
        )


def connect_needs(master: str, folders: str, kind: str) -> Iterator[Contradiction]:
    """Yield the missing settings of a Spark Connect server; texts have no secrets of its URL."""
    address = ConnectAddress.parse(master)
    at = f"spark.master = {address}"
    if flaw := address.flaw():
        yield Contradiction(("spark.master",), f"{at} {flaw}")
    if missing := missing_packages():
        yield Contradiction(
            ("spark.master",),
            f"{at} needs packages that are not installed ({', '.join(missing)}):"
            f" {pip_install('connect')}",
        )
    if kind == "shared":
        yield Contradiction(
            ("spark.master", "engine.kind"),
            f"{at}: each worker has a session there, and no JVM is shared: leave out engine.kind",
        )
    if not folders:
        yield Contradiction(
            ("spark.master", "paths.allow"),
            f"{at} needs paths.allow: the folders that this node, the server and its executors"
            " share, in which sources and sinks lie; that they do is checked when a session begins",
        )
