"""The commands `schema` and `generate`: what helps to write a config in an editor."""

import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Annotated, Any, Final

from .....actors.settings import SettingType
from ....pipeline.spi.config import Definition, Importance
from ....pipeline.spi.keys.common import CONNECTOR_CLASS
from ....pipeline.spi.keys.plugin_sink import BESIDE_SOURCE, is_of_whole, name_beside_source
from ....pipeline.spi.keys.plugin_source import CONNECT
from ...replies.connectors import ConfigKeyInfo
from ..adapters.parameters import Option
from ..output.printing import format_json
from ..requests.client import find_client
from ..requests.options import RemoteOptions, with_options
from ..requests.plugins import fetch_keys
from .config_keys import ENDS, FILES, KeyCatalogue, is_usual, pattern_of, read_catalogue

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
PIPELINE: Final = "SparkPipeline"
WIDTH: Final = 96
"""The width of a comment."""
_WHOLE: Final = {SettingType.INT, SettingType.LONG}
_REFERENCE: Final = r"\$\{"
Schema = dict[str, Any]


def schema() -> None:
    """Print the JSON Schema of connector configs, with all keys that are installed here.

    Editors complete keys by it and show their meaning: `# yaml-language-server: $schema=FILE`
    in the first line of a YAML file.
    """
    sys.stdout.write(format_json(make_schema(read_catalogue()), 2) + "\n")


def make_schema(keys: KeyCatalogue) -> Schema:
    """Return the JSON Schema of a file of connectors."""
    named = {
        "type": "object",
        "required": ["name", "config"],
        "additionalProperties": False,
        "properties": {"name": {"type": "string"}, "config": {"$ref": "#/$defs/config"}},
    }
    plain = {"$ref": "#/$defs/config", "required": ["name"]}
    connector: Schema = {"if": {"required": ["config"]}, "then": named, "else": plain}
    return {
        "$schema": DIALECT,
        "title": "Connectors of fairlead",
        "if": {"type": "array"},
        "then": {"items": {"$ref": "#/$defs/connector"}},
        "else": {"$ref": "#/$defs/connector"},
        "$defs": {"connector": connector, "config": _config_schema(keys)},
    }


def _config_schema(keys: KeyCatalogue) -> Schema:
    """Return the schema of a config: of a pipeline all keys are known, of others a few."""
    common = {each.name: _value_schema(each) for each in keys.common}
    of_types = {
        each.name: _value_schema(each)
        for definitions in keys.by_type.values()
        for each in definitions
    }
    for end in ENDS:
        common[f"{end}.type"]["enum"] = keys.types_of(end)
    families = {pattern_of(each.name): _value_schema(each) for each in keys.families}
    families[r"^(transforms|predicates)\.[^.]+\..+$"] = {"type": ["string", "number", "boolean"]}
    pipeline: Schema = {
        "properties": of_types,
        "patternProperties": families,
        "propertyNames": {"anyOf": [{"enum": [*common, *of_types]}, *_patterns(families)]},
        "allOf": [*_of_types(keys)],
    }
    return {
        "type": "object",
        "required": ["connector.class"],
        "properties": common,
        "if": {"properties": {"connector.class": {"pattern": f"(^|\\.){PIPELINE}$"}}},
        "then": pipeline,
    }


def _patterns(families: Iterable[str]) -> Iterator[Schema]:
    return ({"pattern": each} for each in families)


def _of_types(keys: KeyCatalogue) -> Iterator[Schema]:
    """Yield what each type of sources and sinks requires."""
    for selected, definitions in keys.by_type.items():
        end, _, kind = selected.partition("=")
        required = [each.name for each in definitions if each.required]
        chosen: Schema = {"properties": {end: {"const": kind}}}
        if kind != FILES:  # which is meant without a type
            chosen["required"] = [end]
        if required:
            yield {"if": chosen, "then": {"required": required}}


def _value_schema(key: Definition) -> Schema:
    """Return the schema of a key's value: files may have texts, numbers and words."""
    described: Schema = {"description": key.documentation}
    if key.default_text is not None:
        described["default"] = key.default_text
    if key.type in _WHOLE:
        text = {"type": "string", "pattern": rf"^\s*[+-]?\d+\s*$|{_REFERENCE}"}
        return {**described, "anyOf": [{"type": "integer"}, text]}
    if key.type is SettingType.BOOLEAN:
        words = "[Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]"
        text = {"type": "string", "pattern": rf"^\s*({words})\s*$|{_REFERENCE}"}
        return {**described, "anyOf": [{"type": "boolean"}, text]}
    if key.recommended and key.type is SettingType.STRING:
        described["examples"] = [*key.recommended]
    return {**described, "type": ["string", "number", "boolean"]}


@with_options(RemoteOptions)
def generate_connector(
    options: RemoteOptions,
    name: Annotated[
        str, Option("--name", metavar="NAME", help="The connector's name.")
    ] = "my-connector",
    source: Annotated[
        str, Option("--source", metavar="TYPE", help="Where rows come from.")
    ] = FILES,
    sink: Annotated[
        str | None, Option("--sink", metavar="TYPE", help=f"Where rows go; without it {FILES}.")
    ] = None,
    plugin: Annotated[
        str,
        Option(
            "--class",
            metavar="CLASS",
            help="A connector of Kafka Connect's, whose keys the cluster is asked for; with --sink"
            " one that feeds that sink, which may be such a class as well.",
        ),
    ] = "",
    *,
    every: Annotated[bool, Option("--all", help="With all keys, not the usual ones.")] = False,
) -> None:
    """Print a config to start from: keys that are required, and the usual ones in comments.

    `fairlead lint` and `fairlead apply` take it once what is required is filled in.
    """
    if plugin:
        client = find_client(options)
        keys = [*map(_as_definition, fetch_keys(client, plugin))]
        of_plugin = sink is not None and sink not in read_catalogue().types_of("sink")
        lines = _write_plugin_config(name, plugin, keys, None if of_plugin else sink, every=every)
        if sink is not None and of_plugin:
            of_sink = [*map(_as_definition, fetch_keys(client, sink))]
            lines = chain(lines, _write_plugin_sink(sink, of_sink, every=every))
    else:
        lines = _write_config(name, source, sink or FILES, every=every)
    sys.stdout.writelines(f"{line}\n" for line in lines)


def _as_definition(key: ConfigKeyInfo) -> Definition:
    return Definition(
        key.name,
        SettingType.STRING,
        key.documentation or key.display_name,
        key.default_value,
        required=key.required,
        importance=Importance(key.importance),
    )


def _write_plugin_config(
    name: str, plugin: str, keys: Sequence[Definition], sink: str | None, *, every: bool
) -> Iterator[str]:
    yield f"name: {format_json(name)}"
    yield "config:"
    yield f"  connector.class: {plugin}"
    yield from _write_keys(keys, {"tasks.max": "1"}, every=every)
    if sink is not None:
        yield from _write_end("sink", sink, every=every)


def _write_plugin_sink(plugin: str, keys: Sequence[Definition], *, every: bool) -> Iterator[str]:
    yield ""
    yield f"  sink.type: {CONNECT}"
    yield f"  {BESIDE_SOURCE}{CONNECTOR_CLASS}: {plugin}"
    named = (
        replace(each, name=name_beside_source(each.name))
        for each in keys
        if not (is_of_whole(each.name) or each.name == CONNECTOR_CLASS)
    )
    yield from _write_keys([*named], {}, every=every)


def _write_config(name: str, source: str, sink: str, *, every: bool) -> Iterator[str]:
    yield f"name: {format_json(name)}"
    yield "config:"
    yield f"  connector.class: {PIPELINE}"
    yield from _write_keys(read_catalogue().common, {"tasks.max": "1"}, every=every)
    for end, kind in (("source", source), ("sink", sink)):
        yield from _write_end(end, kind, every=every)


def _write_end(end: str, kind: str, *, every: bool) -> Iterator[str]:
    yield ""
    yield f"  {end}.type: {kind}"
    yield from _write_keys(read_catalogue().keys_of(end, kind), {}, every=every)


def _write_keys(
    keys: Sequence[Definition], values: dict[str, str], *, every: bool
) -> Iterator[str]:
    written = {"name", "connector.class", "source.type", "sink.type"}
    for key in sorted(keys, key=lambda each: not each.required):
        if key.name in written or not (every or is_usual(key)):
            continue
        meaning = " ".join(key.documentation.split())
        if key.required:
            meaning = f"{meaning.removesuffix('.')}. Required."
        yield from textwrap.wrap(
            meaning,
            WIDTH,
            initial_indent="  # ",
            subsequent_indent="  # ",
            break_on_hyphens=False,
            break_long_words=False,
        )
        value = values.get(key.name) or key.default_text or ""
        comment = "" if key.required or key.name in values else "# "
        text = format_json(value) if value or not key.required else ""
        yield f"  {comment}{key.name}: {text}".rstrip()


VERBS: Final = {"connector": generate_connector}
