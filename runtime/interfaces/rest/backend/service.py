"""What every route works with, and how it gets hold of it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Annotated, cast

from fastapi import Depends
from starlette.requests import Request

from .....projections.metrics import Exposition, RequestMetrics
from ....cluster.spec import AssignorSpec, WorkerTraits
from ....config.secrets import Vault
from ....pipeline.connectors.builtin.plugins import Plugins, PluginUnknown
from ....pipeline.connectors.common_keys import CONNECTOR_CLASS
from .gateway import Commands
from .logs import NodeLogs
from .outside import OutsideChecks
from .serial_executor import SerialExecutor


@dataclass(frozen=True, slots=True)
class Service:
    """One REST process: what it reads, whom it asks, and what it knows by itself.

    `group_id` is the default group, which the paths of Connect's API mean.
    """

    group_id: str
    cluster_id: str
    version: str
    logs: NodeLogs
    commands: Commands
    plugins: Plugins
    vault: Vault
    requests: RequestMetrics
    exposition: Exposition
    assignors: AssignorSpec = field(default_factory=AssignorSpec)
    """What this node's workers compute with: plans are made by the same."""
    assignor_log: Path = Path(os.devnull)
    """Where what third-party assignors print goes."""
    run_folder: Path = Path(os.devnull)
    """Where the node's first process writes down which of the others are silent."""
    traits: WorkerTraits = field(default_factory=WorkerTraits)
    """What sets this node's workers apart from others, unless they are started otherwise."""
    outside: OutsideChecks | None = None
    """What holds new configs against this node; None: they are taken as they are."""
    planning: Lock = field(default_factory=Lock)
    """Held by who makes a plan: one at a time, since each costs as much as a large group."""
    explaining: SerialExecutor = field(default_factory=SerialExecutor)
    """Who is asked for what takes a whole log to tell."""

    def kind_of(self, config: Mapping[str, str]) -> str:
        """Return Connect's word for the direction of a connector: source, sink or unknown."""
        try:
            return self.plugins.find(config.get(CONNECTOR_CLASS, "")).made_by.kind
        except PluginUnknown:
            return "unknown"


def _service(request: Request) -> Service:
    return cast(Service, request.app.state.service)


Served = Annotated[Service, Depends(_service)]
"""The service, as a parameter of a route."""
