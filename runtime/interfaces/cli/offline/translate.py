"""The command `translate`: configs of Kafka Connect's connectors as configs of pipelines."""

import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from ....pipeline.connectors.connect_configs.draft import BOOTSTRAP, TranslatedConfig
from ....pipeline.connectors.connect_configs.table import (
    COUNTERPARTS,
    MOUNT,
    PIPELINE,
    hint_for,
)
from ....pipeline.connectors.connect_configs.table import (
    translate as translate_config,
)
from ..adapters.parameters import Argument, Option
from ..output.printing import Failed, escape_controls, format_json, format_yaml, say_aside
from ..requests.files import Recursive, read_all_connectors


class ConfigFormat(StrEnum):
    """The formats in which configs are written."""

    YAML = "yaml"
    JSON = "json"


def translate(
    files: Annotated[
        list[Path],
        Argument(
            metavar="FILE...",
            help="Configs of Connect's connectors: JSON, YAML or .properties, folders, or -.",
        ),
    ],
    *,
    recursive: Recursive = False,
    bootstrap: Annotated[
        str,
        Option(
            "--bootstrap-servers",
            metavar="HOST:PORT",
            help="The brokers, which a worker's file names there.",
        ),
    ] = BOOTSTRAP,
    mount: Annotated[
        str, Option("--mount", metavar="DIR", help="Below which folder buckets are mounted.")
    ] = MOUNT,
    output: Annotated[
        ConfigFormat, Option("--output", "-o", help="The output format.")
    ] = ConfigFormat.YAML,
) -> None:
    """Write fairlead's configs for those of Kafka Connect's well-known connectors.

    FileStream, the JDBC connectors of Confluent and Aiven, Debezium's for PostgreSQL,
    MirrorSourceConnector, and sinks to S3, GCS, Azure and HDFS. What has no counterpart stands in
    comments, in JSON on standard error. Nothing is created: `fairlead diff` and `fairlead create`
    take what is written.
    """
    translated: list[TranslatedConfig] = []
    unknown: list[str] = []
    for name, config in read_all_connectors(files, recursive=recursive).items():
        written = translate_config(name, config, bootstrap=bootstrap, mount=mount)
        if written is not None:
            translated.append(written)
        else:
            unknown.append(_why_not(name, config.get("connector.class", "")))
    if output is ConfigFormat.JSON:
        _write_json(translated)
    else:
        sys.stdout.write("---\n".join(map(_as_commented_yaml, translated)))
    if unknown:
        raise Failed("\n".join(unknown))


def _why_not(name: str, connector: str) -> str:
    if connector.rpartition(".")[2] == PIPELINE:
        return f"{name} is a config of fairlead's already"
    known = ", ".join(key for key, each in COUNTERPARTS.items() if each.translate)
    hint = hint_for(connector) or f"those that are known are {known}"
    return f"{name} cannot be translated: its class is {connector or 'not named'}; {hint}"


def _as_commented_yaml(written: TranslatedConfig) -> str:
    """Return a connector as YAML, below what is to be known about it."""
    remarks = [f"# {key}: {told}" for key, told in written.remarks]
    head = [f"# {len(remarks)} remarks:" if remarks else "# nothing was left out", *remarks]
    comments = "".join(f"{escape_controls(line)}\n" for line in head)
    return comments + format_yaml({"name": written.name, "config": written.config})


def _write_json(found: Sequence[TranslatedConfig]) -> None:
    connectors = [{"name": each.name, "config": each.config} for each in found]
    for each in found:
        for key, told in each.remarks:
            say_aside(f"{each.name}: {key}: {told}")
    sys.stdout.write(format_json(connectors[0] if len(connectors) == 1 else connectors, 2) + "\n")
