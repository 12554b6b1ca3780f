"""Validates the part of a config that is for the sink of another plugin, behind `sink.`."""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Final

from msgspec.structs import replace

from .....actors.settings import SettingType
from ....config.references.resolving import refers_to
from ....pipeline.spi.keys.common import CONNECTOR_CLASS
from ....pipeline.spi.keys.plugin_sink import (
    BESIDE_SOURCE,
    is_of_whole,
    name_at_plugin,
    name_beside_source,
)
from ...replies.connectors import ConfigInfo, ConfigInfos, ConfigKeyInfo, ConfigValueInfo
from .connect_configs import ELECTS, NOT_THERE, is_electing

_TYPE_OF_TRANSFORM: Final = re.compile(r"transforms\.[^.]+\.type")
_NO_CLASS: Final = (
    "it is missing: with sink.type=connect it names the sink connector of Kafka Connect that gets"
    " the records; its own keys stand behind sink. as well"
)
_NO_SINK: Final = (
    "{name} is a source connector of Kafka Connect's: the source is connector.class, and"
    " sink.connector.class names a sink"
)
_NOT_HERE: Final = "no sink connector of Kafka Connect's is called {name} here{hint}"
_IS_WHOLE: Final = "leave it out: {key} is for the whole connector, its source and its sink"
_OWN_TRANSFORM: Final = (
    "a transform of fairlead runs between the two plugins: name it in transforms, behind those of"
    " Kafka Connect"
)


def with_sink(
    infos: ConfigInfos,
    look: Callable[[Mapping[str, str | None]], ConfigInfos],
    config: Mapping[str, str | None],
) -> ConfigInfos:
    """Add what the plugin says of its keys that is the sink of another one.

    All has the names that the user has given, or would give, with `sink.` before them.
    """
    from ....pipeline.connectors.plugin_pipeline import (  # noqa: PLC0415  # loads Spark's libraries
        config_of_sink,
    )

    plain = {key: value for key, value in config.items() if value is not None}
    answer = look(config_of_sink(plain))
    sink: list[ConfigInfo] = []
    for each in answer.configs:
        definition, value = each.definition, each.value
        name = value.name if value else definition.name if definition else ""
        if is_of_whole(name):
            continue  # the other plugin tells of it
        own = name_beside_source(name)
        if definition:
            dependents = tuple(name_beside_source(key) for key in definition.dependents)
            definition = replace(definition, name=own, dependents=dependents)
        if value:
            errors = tuple(_error_of(own, name, text) for text in value.errors)
            value = replace(value, name=own, errors=errors)
        sink.append(ConfigInfo(definition, value))
    count = sum(len(each.value.errors) for each in sink if each.value)
    groups = [*dict.fromkeys((*infos.groups, *answer.groups))]
    return replace(
        infos,
        error_count=infos.error_count + count,
        groups=groups,
        configs=[*infos.configs, *sink],
    )


def _error_of(own: str, name: str, text: str) -> str:
    """Return an error of a plugin's key by the name of that key for the user."""
    said = text.replace(f'"{name}"', f'"{own}"')
    said = said.replace(f"configuration {name}", f"configuration {own}")
    return said if own in said else f"{own}: {text}"


def flaw_in_sink(name: str, kind: str, refusal: str, hint: str) -> str:
    """Return why a class cannot be the sink of another plugin; "" if it can.

    `kind` is what the plugin is, "" if none has that name; `refusal` is why configs may not name
    it, and `hint` what is similar.
    """
    if not name:
        return _NO_CLASS
    if refusal or not kind:
        return refusal or _NOT_HERE.format(name=name, hint=f"; {hint}" if hint else "")
    if kind != "sink":
        return _NO_SINK.format(name=name)
    return ELECTS if is_electing(name) else ""


def ask_for_sink(
    infos: ConfigInfos, config: Mapping[str, str | None], flaw: str, classes: Collection[str]
) -> ConfigInfos:
    """Add the key that names the sink of another plugin, with its flaw and what there is."""
    key = f"{BESIDE_SOURCE}{CONNECTOR_CLASS}"
    meaning = "The sink connector of Kafka Connect that gets the records."
    definition = ConfigKeyInfo(
        name=key,
        type=SettingType.STRING.value,
        required=True,
        default_value=None,
        importance="HIGH",
        documentation=meaning,
        group="Sink",
        order_in_group=2,
        width="LONG",
        display_name="Sink connector class",
        dependents=(),
    )
    value = ConfigValueInfo(key, config.get(key), (*classes,), (f"{key}: {flaw}",), visible=True)
    return replace(
        infos,
        error_count=infos.error_count + 1,
        configs=[*infos.configs, ConfigInfo(definition, value)],
    )


def flaws_beside(config: Mapping[str, str | None], providers: Collection[str]) -> Mapping[str, str]:
    """Return the flaws of keys of a sink beside a source that is a plugin as well."""
    flaws: dict[str, str] = {}
    for key, value in config.items():
        if not key.startswith(BESIDE_SOURCE) or value is None:
            continue
        own = name_at_plugin(key)
        if is_of_whole(own):
            flaws[key] = _IS_WHOLE.format(key=own)
        elif _TYPE_OF_TRANSFORM.fullmatch(own) and not {".", "$"} & {*value}:
            flaws[key] = _OWN_TRANSFORM
        elif own in {"topics", "topics.regex"} and refers_to(value, providers):
            flaws[key] = NOT_THERE
    try:
        re.compile(config.get(f"{BESIDE_SOURCE}topics.regex") or "")
    except re.error as error:
        flaws[f"{BESIDE_SOURCE}topics.regex"] = f"it is no regular expression: {error}"
    return {key: f"{key}: {why}" for key, why in flaws.items()}
