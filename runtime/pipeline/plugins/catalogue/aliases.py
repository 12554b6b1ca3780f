"""The short names of plugins, as Kafka has them (`PluginUtils.computeAliases`)."""

from collections.abc import Iterable, Mapping
from typing import Final

INTERFACES: Final[Mapping[str, str]] = {
    "source": "org.apache.kafka.connect.source.SourceConnector",
    "sink": "org.apache.kafka.connect.sink.SinkConnector",
    "converter": "org.apache.kafka.connect.storage.Converter",
    "header_converter": "org.apache.kafka.connect.storage.HeaderConverter",
    "transformation": "org.apache.kafka.connect.transforms.Transformation",
    "predicate": "org.apache.kafka.connect.transforms.predicates.Predicate",
    "configprovider": "org.apache.kafka.common.config.provider.ConfigProvider",
    "rest_extension": "org.apache.kafka.connect.rest.ConnectRestExtension",
    "connector_client_config_override_policy": (
        "org.apache.kafka.connect.connector.policy.ConnectorClientConfigOverridePolicy"
    ),
}
"""The interface or base class of each type of plugins (`PluginType`)."""


def compute_aliases(plugins: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return the aliases of classes, of plugins that are given by type and class.

    A name that several classes could have is none's.
    """
    classes: dict[str, set[str]] = {}
    for kind, name in plugins:
        for alias in (simple_name(name), _pruned_name(kind, name)):
            classes.setdefault(alias, set()).add(name)
    aliases: dict[str, list[str]] = {}
    for alias in sorted(classes):
        if len(classes[alias]) == 1:
            (name,) = classes[alias]
            aliases.setdefault(name, []).append(alias)
    return {name: tuple(each) for name, each in aliases.items()}


def simple_name(class_name: str) -> str:
    """Return the name of a class without those of packages and of classes around it."""
    return class_name.rpartition(".")[2].rpartition("$")[2]


def _pruned_name(kind: str, class_name: str) -> str:
    """Return the simple name up to that of the type, if that occurs in it."""
    simple = simple_name(class_name)
    suffix = "Connector" if kind in {"source", "sink"} else simple_name(INTERFACES.get(kind, ""))
    at = simple.rfind(suffix) if suffix else 0
    return simple[:at] if at > 0 else simple
