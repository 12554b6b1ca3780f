"""Validates the config of a connector of Kafka Connect's own class, and seals its secrets.

The plugin itself validates it, by Connect's code, so the errors are those of a Connect worker.
"""

from collections.abc import Callable, Collection, Mapping
from http import HTTPStatus
from typing import Final

from msgspec.structs import replace

from .....actors.settings import SettingType
from ....config.references.resolving import refers_to
from ....config.secrets import Vault
from ....pipeline.connectors.plugins import SINK_TYPE, SOURCE_TYPE
from ....pipeline.spi.keys.common import CONNECTOR_CLASS, NAME
from ....pipeline.spi.keys.plugin_sink import has_two_plugins
from ....pipeline.spi.keys.plugin_source import SUPPORT
from ...replies.connectors import ConfigInfo, ConfigInfos, ConfigValueInfo
from ..server.errors import ApiError
from .configs import MOST_KEYS, SealedConfig, former_secrets, invalid, open_secrets
from .secret_keys import flaws_in_secrets, secret_keys_of

_OTHER: Final = SettingType.STRING
_TWO_SOURCES: Final = (
    "a source connector of Kafka Connect's reads by itself: leave source.type out, and give a"
    " sink.type if its records are to go to a sink of fairlead's"
)
_ELECTING: Final = "IcebergSink"
ELECTS: Final = (
    "the Iceberg sink elects its leader from the members of its consumer group in Kafka, and"
    " commits by a topic there, so it only reads topics: leave source.type out, and it runs as in"
    " Connect. Write these topics by a connector of fairlead's with sink.type=kafka"
)
NOT_THERE: Final = (
    "refers to a provider of config.providers, which resolves what the plugin gets, and nothing"
    " else: use one of fairlead's references that no such provider has the name of, such as"
    " ${env:NAME}"
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


def is_electing(name: str) -> bool:
    """Return whether a class is that of a sink that needs Kafka's consumer group."""
    return name.rpartition(".")[2].removesuffix("Connector") == _ELECTING


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
        key: NOT_THERE
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
    if is_fed and is_electing(config.get(CONNECTOR_CLASS) or ""):
        flaws[SOURCE_TYPE] = ELECTS
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
