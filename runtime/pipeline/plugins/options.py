"""The settings of plugin hosts: a module that every verb of the command line can afford."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

BY_WORKER: Final = "worker"
BY_CONNECTOR: Final = "connector"
ISOLATIONS: Final = (BY_WORKER, BY_CONNECTOR)
"""Who has a host: all connectors of a worker together, or each one."""


@dataclass(frozen=True, slots=True)
class HostOptions:
    """The settings of each plugin host."""

    heap: str = "512m"
    """In Java's notation."""
    java_options: str = ""
    """Further options of the JVM, as in a shell."""
    truststore: str = ""
    """The certificates that it trusts; "" for the system's own, or else those of the JVM."""
    wrapper: str = ""
    """A command that runs the JVM, as in a shell; "" for none."""


@dataclass(frozen=True, slots=True)
class PluginSpec:
    """The settings of Kafka Connect's plugins that a node hands to its processes."""

    path: Sequence[str] = ()
    """Folders of plugins beside those that were added."""
    allow: Sequence[str] = ("*",)
    """Patterns of the names of classes that configs may name."""
    host: HostOptions = field(default_factory=HostOptions)
    idle_ms: int = 60_000
    """How long a host that nothing needs is kept."""
    isolation: str = BY_WORKER
    """One of `ISOLATIONS`."""
    properties: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Those of a Connect worker, with references; some are secret."""

    @property
    def providers(self) -> frozenset[str]:
        """The beginnings of the references that plugin hosts resolve, by Connect's providers."""
        named = self.properties.get("config.providers", "").split(",")
        return frozenset(filter(None, map(str.strip, named)))

    @property
    def tracks_topics(self) -> bool:
        """Whether the topics that connectors use are kept."""
        return self.properties.get("topic.tracking.enable", "").strip().lower() != "false"

    @property
    def may_reset_topics(self) -> bool:
        """Whether they may be forgotten on request."""
        return self.properties.get("topic.tracking.allow.reset", "").strip().lower() != "false"

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> "PluginSpec":
        """Return the spec of a decoded JSON object."""
        fields: dict[str, Any] = {**content, "host": HostOptions(**content["host"])}
        return cls(**fields)
