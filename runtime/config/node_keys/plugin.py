"""The settings of a node about Kafka Connect's own plugins and the JVM that runs them."""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from ....actors.settings import word
from ....events.placement import split_list
from ...pipeline.plugins.options import BY_WORKER, ISOLATIONS
from . import kinds
from .setting import SAME, Domain, setting
from .store import StoreKeys

HOST_HEAP_MIN_MIB: Final = 64
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def _check_heap(text: str) -> str:
    if kinds.bytes_of(text) < HOST_HEAP_MIN_MIB << 20:
        raise ValueError("it is too small for Kafka's classes")
    return text


def _check_patterns(text: str) -> str:
    for pattern in split_list(text):
        if not re.fullmatch(r"[\w.$*?]+", pattern):
            raise ValueError(f"{pattern!r} is no pattern of names of classes")
    return text


def _check_repositories(text: str) -> str:
    for url in split_list(text):
        parts = urlsplit(url)
        is_here = parts.scheme == "file" or (parts.hostname or "") in _LOOPBACK
        if not (parts.scheme == "https" and parts.hostname) and not is_here:
            shown = url.rpartition("@")[2]
            raise ValueError(f"{shown!r} is no https URL: what it sends would be run")
        if "@" in parts.netloc:
            raise ValueError("a URL with a user would show the password to all")
    return text


_HEAP: Final = Domain(
    _check_heap, f"a size as Java spells it, such as 1g; at least {HOST_HEAP_MIN_MIB}m", "bytes"
)
_ISOLATION: Final = Domain(word(*ISOLATIONS), " or ".join(ISOLATIONS))
_PATH: Final = Domain(str.strip, "folders and jars, with commas between them, or nothing")
_CLASSES: Final = Domain(
    _check_patterns, "names of classes, with * and ? for any letters and commas between them"
)
_REPOSITORIES: Final = Domain(
    _check_repositories, "https or file URLs, without a password and with commas between them"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginKeys(StoreKeys):
    """The settings of a node about plugins, each of them valid; times in milliseconds."""

    plugin_path: str = setting(
        _PATH,
        "",
        "Folders of plugins of Kafka Connect, with commas, beside those that `fairlead plugins` has"
        " added: each folder and each jar in one of them is a plugin.",
        SAME,
    )
    plugin_allow: str = setting(
        _CLASSES,
        "*",
        "The classes of plugins of Kafka Connect that configs may name: patterns with commas, such"
        " as io.debezium.*",
    )
    plugins_repositories: str = setting(
        _REPOSITORIES,
        "",
        "URLs of Maven repositories, with commas, that `fairlead plugins fetch` asks after Maven"
        " Central.",
    )
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
    plugin_isolation: str = setting(
        _ISOLATION,
        BY_WORKER,
        "Whether all connectors of a worker share such a JVM, but for those that have ended it"
        " twice in ten minutes, or each connector has one of its own.",
    )
