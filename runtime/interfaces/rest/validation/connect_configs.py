"""Validates the config of a connector of Kafka Connect's own class, and seals its secrets.

The plugin itself validates it, by Connect's code, so the errors are those of a Connect worker.
"""

import re
from collections.abc import Callable, Collection, Mapping
from http import HTTPStatus
from typing import Final

from msgspec.structs import replace

from .....actors.settings import SettingType
from ....config.references.resolving import refers_to
from ....config.secrets import Vault
from ....pipeline.connectors.plugins import SINK_TYPE, SOURCE_TYPE
from ....pipeline.spi.keys.common import CONNECTOR_CLASS, NAME
from ....pipeline.spi.keys.plugin_sink import (
    BESIDE_SOURCE,
    has_two_plugins,
    is_of_whole,
    name_at_plugin,
    name_beside_source,
)
from ....pipeline.spi.keys.plugin_source import SUPPORT
from ...replies.connectors import ConfigInfo, ConfigInfos, ConfigKeyInfo, ConfigValueInfo
from ..server.errors import ApiError
from .configs import MOST_KEYS, SealedConfig, former_secrets, invalid, open_secrets
from .secret_keys import flaws_in_secrets, secret_keys_of

_OTHER: Final = SettingType.STRING
_TWO_SOURCES: Final = (
    "a source connector of Kafka Connect's reads by itself: leave source.type out, and give a"
    " sink.type if its records are to go to a sink of fairlead's"
)
_ELECTING: Final = "IcebergSink"
_TYPE_OF_TRANSFORM: Final = re.compile(r"transforms\.[^.]+\.type")
_ELECTS: Final = (
    "the Iceberg sink elects its leader from the members of its consumer group in Kafka, and"
    " commits by a topic there, so it only reads topics: leave source.type out, and it runs as in"
    " Connect. Write these topics by a connector of fairlead's with sink.type=kafka"
)
_NOT_THERE: Final = (
    "refers to a provider of config.providers, which resolves what the plugin gets, and nothing"
    " else: use one of fairlead's references that no such provider has the name of, such as"
    " ${env:NAME}"
)
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
_TWO_SINKS: Final = (
    "a sink connector of Kafka Connect's writes by itself: leave sink.type out, and it reads topics"
    " of Kafka as in Connect, or what source.type names"
)


def validate_both(
    look: Callable[[Mapping[str, str | None]], ConfigInfos],
    check: Callable[[Mapping[str, str]], ConfigInfos],
    config: Mapping[str, str | None],
    ask: Callable[[Mapping[str, str]], str],
) -> ConfigInfos:
    """Validate the config of a plugin with a source or a sink of fairlead's.

    `look` asks the plugin about its keys, `check` has what fairlead says of its own; an error of
    either is one. `ask` has the plugin say what it knows of its offsets, if there is no error.
    """
    from ....pipeline.connectors.plugin_pipeline import (  # noqa: PLC0415  # loads Spark's libraries
        config_of_plugin,
    )

    plain = {key: value for key, value in config.items() if value is not None}
    nulls = {key: None for key, value in config.items() if value is None}
    plain.pop(SUPPORT, None)  # the plugin says it
    of_plugin = config_of_plugin(plain)
    plugin = look({**of_plugin, **nulls})
    answer = "" if plugin.error_count or nulls else ask(of_plugin)
    own = check({**plain, SUPPORT: answer} if answer else plain)
    infos = {each.value.name: each for each in plugin.configs if each.value}
    for each in own.configs:
        if (value := each.value) is None or value.name == SOURCE_TYPE:
            continue  # the plugin is the source
        theirs = infos.get(value.name)
        if theirs is None or theirs.value is None:
            infos[value.name] = each
        else:
            errors = tuple(dict.fromkeys((*theirs.value.errors, *value.errors)))
            infos[value.name] = replace(theirs, value=replace(theirs.value, errors=errors))
    count = sum(len(each.value.errors) for each in infos.values() if each.value)
    groups = [*dict.fromkeys((*plugin.groups, *own.groups))]
    return ConfigInfos(plugin.name, count, groups, [*infos.values()], own.warnings, answer)


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
    return _ELECTS if _is_electing(name) else ""


def _is_electing(name: str) -> bool:
    return name.rpartition(".")[2].removesuffix("Connector") == _ELECTING


def ask_for_sink(
    infos: ConfigInfos, config: Mapping[str, str | None], flaw: str, classes: Collection[str]
) -> ConfigInfos:
    """Add the key that names the sink of another plugin, with its flaw and what there is."""
    key = f"{BESIDE_SOURCE}{CONNECTOR_CLASS}"
    meaning = "The sink connector of Kafka Connect that gets the records."
    definition = ConfigKeyInfo(
        name=key,
        type=_OTHER.value,
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
            flaws[key] = _NOT_THERE
    try:
        re.compile(config.get(f"{BESIDE_SOURCE}topics.regex") or "")
    except re.error as error:
        flaws[f"{BESIDE_SOURCE}topics.regex"] = f"it is no regular expression: {error}"
    return {key: f"{key}: {why}" for key, why in flaws.items()}


def refuse_ends(
    infos: ConfigInfos,
    kind: str,
    config: Mapping[str, str | None],
    providers: Collection[str],
) -> ConfigInfos:
    """Add the errors of a plugin of some kind, source or sink, with an end that it cannot have.

    An end of fairlead's is where none of Connect's `providers` is.
    """
    is_fed = SOURCE_TYPE in config and kind == "sink"
    has_two = kind == "source" and has_two_plugins(config)
    flaws = {
        key: _NOT_THERE
        for key, value in config.items()
        if key.startswith("source." if is_fed else "sink.")
        and not has_two
        and value
        and refers_to(value, providers)
    }
    if SOURCE_TYPE in config and not is_fed:
        flaws[SOURCE_TYPE] = _TWO_SOURCES
    if SINK_TYPE in config and kind == "sink":
        flaws[SINK_TYPE] = _TWO_SINKS
    if is_fed and _is_electing(config.get(CONNECTOR_CLASS) or ""):
        flaws[SOURCE_TYPE] = _ELECTS
    return with_flaws(infos, config, flaws)


def with_flaws(
    infos: ConfigInfos, config: Mapping[str, str | None], flaws: Mapping[str, str]
) -> ConfigInfos:
    """Add flaws of keys, each of which then has no other one."""
    if not flaws:
        return infos
    others = [each for each in infos.configs if each.value is None or each.value.name not in flaws]
    wrong = [
        ConfigInfo(None, ConfigValueInfo(key, config.get(key), (), (why,), visible=True))
        for key, why in flaws.items()
    ]
    count = sum(len(each.value.errors) for each in others if each.value) + len(wrong)
    return replace(infos, error_count=count, configs=[*others, *wrong])


def seal_connect_config(
    validate: Callable[[Mapping[str, str | None]], ConfigInfos],
    vault: Vault,
    body: Mapping[str, str | None],
    stored: Mapping[str, str],
    providers: Collection[str],
) -> SealedConfig:
    """Validate a config and seal its secrets for the log; `validate` asks the plugin.

    A reference to one of `providers` is no secret, and is resolved where the plugin runs. Raises
    `ApiError` with all errors, in Connect's format.
    """
    if len(body) > MOST_KEYS:
        told = f"the config has {len(body)} keys, and at most {MOST_KEYS} are taken"
        raise ApiError(HTTPStatus.BAD_REQUEST, told)
    given = {key: value for key, value in body.items() if value is not None}
    plain = open_secrets(vault, given, stored)
    infos = validate({**body, **plain})
    password = SettingType.PASSWORD  # of the other types, some are Connect's alone
    defined = {
        each.definition.name: password if each.definition.type == password.value else _OTHER
        for each in infos.configs
        if each.definition is not None
    }
    secret_keys = secret_keys_of(plain, defined, (), set(former_secrets(vault, stored)))
    referring = {key for key in secret_keys if refers_to(plain[key], providers)}
    errors = [text for each in infos.configs if each.value for text in each.value.errors]
    errors += [
        f"{key}: {flaw}"
        for key, flaw in flaws_in_secrets(plain, secret_keys)
        if not refers_to(plain[key], providers)
    ]
    if errors:
        raise invalid(errors)
    sealed = vault.seal_keys(plain[NAME], plain, secret_keys - referring)
    return SealedConfig(sealed, (), infos.exactly_once)
