"""Makes the engine of a worker, before the other modules that run its work are loaded.

Starting the JVM takes as long as the rest of a worker's start, so both happen at the same time.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from ....actors.settings import HIDDEN
from ...cluster.node_files import spark_folder
from ...cluster.run_folder import RunFolder
from ...cluster.spec import NodeSpec
from ...config.references.redaction import Redaction
from ...pipeline.engines.connect.address import ConnectAddress
from ...pipeline.engines.embedded.engine import Embedded
from ...pipeline.engines.engine import Engine
from ...pipeline.engines.executors.cluster import SparkCluster
from ...pipeline.engines.settings import is_connect
from ...pipeline.engines.shared.client import SharedEngine


class WorkerEngine(NamedTuple):
    """An engine, and the redaction of its logs and errors."""

    engine: Engine
    redaction: Redaction


def make_engine(node: NodeSpec, worker: str) -> WorkerEngine:
    """Return a worker's engine, with redacted logs; once opened it warms up in the background."""
    # At INFO, py4j logs each connection.
    logging.getLogger("py4j").setLevel(max(logging.WARNING, logging.root.level))
    redaction = Redaction()
    redaction.watch_logs()
    return WorkerEngine(_engine_of(node, worker, redaction), redaction)


def _engine_of(node: NodeSpec, worker: str, redaction: Redaction) -> Engine:
    engine = node.engine
    folder = spark_folder(node.data_dir, worker)
    cluster = SparkCluster.of(engine.master, node.reach.paths)
    if cluster is not None and is_connect(engine.master):
        return _connect_engine(folder, cluster, engine.conf, redaction)
    if engine.is_shared:
        place = RunFolder(node.data_dir).engine
        return SharedEngine(place, worker, hide=redaction.hide, secrets=redaction.known)
    return Embedded(
        folder,
        cores=engine.cores,
        heap=engine.heap,
        conf=engine.conf,
        hide=redaction.hide,
        cluster=cluster,
    )


def _connect_engine(
    folder: Path, cluster: SparkCluster, conf: Mapping[str, str], redaction: Redaction
) -> Engine:
    """Return the engine of a worker whose jobs run on a Spark Connect server."""
    from ...pipeline.engines.connect.engine import ConnectEngine  # noqa: PLC0415  # an extra

    redaction.learn(dict.fromkeys(ConnectAddress.parse(cluster.master).secrets, HIDDEN))
    return ConnectEngine(folder, cluster, conf=conf, hide=redaction.hide)
