"""Jars that a plugin must not bring along, because Connect's own class path has them.

Archives and dependencies of plugins often hold them. A class of Jackson that a plugin has once more
is another class than Connect's, and starting it fails (`BlackbirdModule not a subtype`).

A jar is told by its name or, where names were changed, by what it holds: a class that only this jar
has, and no class of anybody else. So a jar into which all dependencies were packed is never taken
for one of them. Kafka's own plugins (connect-file, connect-mirror) stay: Connect does not have
these.
"""

import re
from pathlib import Path
from typing import Final, NamedTuple

from .jars import classes_of, jars_of, opened_jar


class _ConnectJar(NamedTuple):
    """One of the jars of Connect's class path, by what it holds."""

    marker: str
    """A class that only this jar has."""
    home: str
    """The package that all its classes are in."""


_NAMES: Final = re.compile(
    r"(connect-(api|json|runtime|transforms)"
    r"|kafka-(clients|server|server-common|raft|metadata|storage|storage-api|tools|tools-api"
    r"|(group|share|transaction)-coordinator(-api)?|coordinator-common)"
    r"|slf4j-api|log4j(-[a-z0-9.]+)*"
    r"|jackson-(core|databind|annotations))"
    r"-v?\d.*\.jar"
)
_MARKED: Final = (
    _ConnectJar("org/apache/kafka/clients/producer/KafkaProducer", "org/apache/kafka/"),
    _ConnectJar("org/apache/kafka/connect/connector/Connector", "org/apache/kafka/connect/"),
    _ConnectJar("org/apache/kafka/connect/json/JsonConverter", "org/apache/kafka/connect/json/"),
    _ConnectJar("org/apache/kafka/connect/runtime/Worker", "org/apache/kafka/connect/"),
    _ConnectJar("org/apache/kafka/connect/transforms/Flatten", "org/apache/kafka/connect/"),
    _ConnectJar("org/slf4j/LoggerFactory", "org/slf4j/"),
    _ConnectJar("org/apache/logging/log4j/Logger", "org/apache/logging/log4j/"),
    _ConnectJar("org/apache/logging/log4j/core/LoggerContext", "org/apache/logging/log4j/"),
    _ConnectJar("org/apache/log4j/Logger", "org/apache/log4j/"),
    _ConnectJar("com/fasterxml/jackson/core/JsonFactory", "com/fasterxml/jackson/core/"),
    _ConnectJar("com/fasterxml/jackson/databind/ObjectMapper", "com/fasterxml/jackson/databind/"),
    _ConnectJar("com/fasterxml/jackson/annotation/JsonView", "com/fasterxml/jackson/annotation/"),
)


def leave_out_connects(folder: Path) -> list[str]:
    """Remove the jars of a folder that Connect has itself; return their names.

    Raises `PluginRefused` for a damaged jar, `OSError`.
    """
    removed = [each for each in jars_of(folder) if is_connects(each)]
    for each in removed:
        each.unlink()
    return [each.name for each in removed]


def is_connects(path: Path) -> bool:
    """Return whether a jar is one of Connect's class path; raises `PluginRefused`."""
    if _NAMES.fullmatch(path.name):
        return True
    with opened_jar(path) as jar:
        classes = [each.removesuffix(".class") for each in classes_of(jar)]
    names = {*classes} - {"module-info"}
    return any(
        each.marker in names and all(name.startswith(each.home) for name in names)
        for each in _MARKED
    )
