"""The settings of a node about Kafka Connect's own plugins and the JVM that runs them."""

from dataclasses import dataclass
from typing import Final

from . import kinds
from .rest import RestKeys
from .setting import Domain, setting

HOST_HEAP_MIN_MIB: Final = 64


def _check_heap(text: str) -> str:
    if kinds.bytes_of(text) < HOST_HEAP_MIN_MIB << 20:
        raise ValueError("it is too small for Kafka's classes")
    return text


_HEAP: Final = Domain(
    _check_heap, f"a size as Java spells it, such as 1g; at least {HOST_HEAP_MIN_MIB}m", "bytes"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginKeys(RestKeys):
    """The settings of a node about plugins, each of them valid; times in milliseconds."""

    plugin_host_heap: str = setting(
        _HEAP, "512m", "The heap of each JVM that runs plugins of Kafka Connect."
    )
    plugin_host_java_options: str = setting(
        kinds.TEXT, "", "Further options of these JVMs, as in a shell."
    )
    plugin_host_truststore: str = setting(
        kinds.FILE,
        "",
        "The certificates that these JVMs trust. Empty: those of the system for Java, where it has"
        " some, or else those of the JVM.",
    )
    plugin_host_wrapper: str = setting(
        kinds.TEXT,
        "",
        "A command that runs these JVMs, as in a shell: it may confine them, as bwrap and"
        " systemd-run do. The JVM's command line is appended.",
    )
    plugin_host_idle_ms: int = setting(
        kinds.MILLISECONDS, 60_000, "How long such a JVM waits for more to do before it ends."
    )
