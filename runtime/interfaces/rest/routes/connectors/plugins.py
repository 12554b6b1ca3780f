"""The routes of plugins: connector classes, converters and transforms; config validation."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta
from msgspec.structs import replace

from ......events.log.errors import NoLogError
from .....pipeline.connectors.connect_configs.makers import origin_of
from .....pipeline.connectors.connect_configs.table import hint_for
from .....pipeline.connectors.plugins import Plugin
from .....pipeline.installed import LATEST, flaw_in_version
from .....pipeline.spi.config import ConfigDef, Definition
from .....pipeline.spi.errors import PluginUnknown
from .....pipeline.spi.keys.common import CONNECTOR_CLASS, NAME
from .....pipeline.stores.kafka.converters import converter_names, find_converter
from .....security.rights import Right
from ....replies.building.validations import describe_key, describe_validation
from ....replies.connectors import (
    ConfigInfo,
    ConfigInfos,
    ConfigKeyInfo,
    ConfigValueInfo,
    PluginInfo,
)
from ...commands.connect_plugins import ConnectPlugins
from ...commands.service import CallerAccess, RequireNames, Served, Service
from ...server.errors import ApiError, not_found
from ...server.parameters import Extended, GivenConfigBody, flag
from ...server.permissions import Reach, RouteRights
from ...server.routing import Routes
from ...validation.configs import NULL_VALUE, check_config

if TYPE_CHECKING:
    from .....pipeline.spi.transform import Transform
    from .....pipeline.stores.kafka.converters import ConverterPlugin
    from .....pipeline.transforms.connect.record_transform import Predicate

    _Find = Callable[[str], ConverterPlugin | type[Transform] | type[Predicate]]

routes = Routes("connector plugins")

_LOOKS_OUTSIDE = (
    "a plugin of Kafka Connect may connect to where a config leads while it validates it: that is"
    " for those who may put such a config"
)

CONNECTORS = ("source", "sink")
CONVERTER, TRANSFORMATION, PREDICATE = "converter", "transformation", "predicate"
OTHERS = (CONVERTER, "header_converter", TRANSFORMATION, PREDICATE)
"""Connect's plugin types other than connectors."""


@routes.add("GET /connector-plugins", RouteRights(Right.VIEW, Reach.NEUTRAL))
def list_plugins(
    service: Served,
    connectorsOnly: Annotated[bool, flag(default=True)] = True,  # noqa: FBT002, N803  # Connect's
    extended: Extended = False,  # noqa: FBT002
) -> list[PluginInfo]:
    """List the connector classes and, if requested, converters, transforms and predicates.

    With `extended`, each connector class has its delivery guarantee.
    """
    connectors = [describe_plugin(each) for each in service.plugins.plugins]
    if not extended:
        connectors = [replace(each, delivery="") for each in connectors]
    foreign = service.connect_plugins.listed() if service.connect_plugins else []
    connectors += [each for each in foreign if each.type in CONNECTORS]
    if connectorsOnly:
        return connectors
    from .....pipeline.transforms import types  # noqa: PLC0415  # loads Spark's libraries

    others: tuple[tuple[str, Sequence[str], _Find], ...] = (
        (CONVERTER, converter_names(), find_converter),
        (TRANSFORMATION, types.transform_names(), types.find_transform),
        (PREDICATE, types.predicate_names(), types.find_predicate),
    )
    own = [
        PluginInfo(name, kind, _version_of(find, name))
        for kind, names, find in others
        for name in names
    ]
    return [*connectors, *own, *(each for each in foreign if each.type in OTHERS)]


def _version_of(find: "_Find", name: str) -> str:
    """Return the version of a plugin; one that cannot be loaded has Connect's text for none."""
    try:
        return find(name).version
    except PluginUnknown:
        return "undefined"


@routes.add(
    "GET /connector-plugins/{plugin}/config",
    RouteRights(Right.VIEW, Reach.NEUTRAL),
    errors=(HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND),
)
def get_plugin_config(
    service: Served,
    plugin: str,
    version: Annotated[str, Meta(description="A version, a range of them, or latest.")] = LATEST,
    extended: Extended = False,  # noqa: FBT002
) -> list[ConfigKeyInfo]:
    """List the keys of a connector class, a converter, a transform or a predicate.

    With `extended` also those that only some configs have, such as those of a type of source. A
    class that fairlead has as well as a plugin of Kafka Connect is fairlead's unless `version` is
    another one.
    """
    own = _find_own(service, plugin)
    wanted = version.strip()
    is_range = wanted == LATEST or wanted.startswith(("[", "("))
    versions = wanted if is_range else f"[{wanted},{wanted}]"
    if own is None or not wanted or flaw_in_version(versions, own.version):
        if foreign := _find_foreign(service, plugin):
            return foreign.keys(plugin, version)
        if own is None:
            raise _unknown(service, plugin)
        told = (
            f"Plugin {own.name} not found that matches the version range {versions},"
            f" available versions: [{own.version}]"
        )
        raise ApiError(HTTPStatus.BAD_REQUEST, told)
    described = [describe_key(each) for each in (*own.keys.definitions, *own.keys.families)]
    if extended:
        described += [
            replace(describe_key(each), only_with=selection)
            for selection, selected in own.optional_keys().items()
            for each in selected
        ]
    return described


@routes.add(
    "PUT /connector-plugins/{plugin}/config/validate",
    RouteRights(Right.VIEW, Reach.BODY),
    errors=(HTTPStatus.NOT_FOUND,),
)
def validate_config(
    service: Served,
    require: RequireNames,
    access: CallerAccess,
    plugin: str,
    body: GivenConfigBody,
    extended: Extended = False,  # noqa: FBT002
) -> ConfigInfos:
    """Validate a config without using it; with `extended` also return warnings.

    Where it leads to is looked at for callers with the right to administer alone.
    """
    config = {key: value for key, value in body.items() if value is not None}
    names = [config[NAME]] if NAME in config else []
    require(names)  # it may be checked with its own secrets
    named = config.get(CONNECTOR_CLASS, plugin)
    if not _bare(named).endswith(_bare(plugin)):
        raise ApiError(
            HTTPStatus.BAD_REQUEST,
            f"Included connector type {named} does not match request type {plugin}",
        )
    limited = service.limited_to(access, names)
    if _find_own(service, named) is None and _find_foreign(service, named):
        if limited is not service:
            raise ApiError(HTTPStatus.FORBIDDEN, _LOOKS_OUTSIDE)
        stored = _stored(service, config.get(NAME, ""))
        return service.look_at(stored, limited.outside, {CONNECTOR_CLASS: named, **body})
    connector_class = _find(service, named)
    stored = _stored(service, config.get(NAME, ""))
    examined = check_config(
        connector_class, limited.vault, {CONNECTOR_CLASS: named, **config}, stored, limited.outside
    )
    infos = describe_validation(named, examined.validation)
    infos = _with_nulls(infos, [key for key in body if key not in config])
    return infos if extended else replace(infos, warnings=())


def _with_nulls(infos: ConfigInfos, keys: Sequence[str]) -> ConfigInfos:
    """Add an error for each key whose value is null."""
    by_name = {each.value.name: each for each in infos.configs if each.value}
    for key in keys:
        info = by_name.get(key, ConfigInfo(None, None))
        value = info.value or ConfigValueInfo(key, None, (), (), visible=True)
        value = replace(value, errors=(*value.errors, NULL_VALUE))
        by_name[key] = replace(info, value=value)
    count = infos.error_count + len(keys)
    return replace(infos, error_count=count, configs=[*by_name.values()])


def _bare(name: str) -> str:
    """Normalise the name of a class for comparison, as Connect does."""
    return name.removesuffix("Connector") or name


class _Found(NamedTuple):
    """A plugin of any type."""

    name: str
    version: str
    keys: ConfigDef
    optional_keys: Callable[[], Mapping[str, Sequence[Definition]]] = dict


def _find_own(service: Service, name: str) -> _Found | None:
    """Return a plugin of fairlead by its name."""
    from .....pipeline.transforms.types import (  # noqa: PLC0415  # loads Spark's libraries
        find_predicate,
        find_transform,
    )

    for find in (find_converter, find_transform, find_predicate):
        with suppress(PluginUnknown):
            found = find(name)
            return _Found(name, found.version, found.config())
    with suppress(PluginUnknown):
        connector = service.plugins.find(name)
        made_by = connector.made_by
        return _Found(connector.name, made_by.version, made_by.config(), made_by.optional_keys)
    return None


def _find_foreign(service: Service, name: str) -> ConnectPlugins | None:
    """Return the plugins of Kafka Connect if one has that name."""
    plugins = service.connect_plugins
    return plugins if plugins is not None and plugins.find(name) else None


def _find(service: Service, name: str) -> Plugin:
    try:
        return service.plugins.find(name)
    except PluginUnknown:
        raise _unknown(service, name) from None


def _unknown(service: Service, name: str) -> ApiError:
    foreign = service.connect_plugins
    hints = (foreign.hint(name) if foreign else "", hint_for(name), origin_of(name))
    told = "; ".join(filter(None, hints))
    return not_found(f"Unknown plugin {name}.{f' Note: {told}' if told else ''}")


def _stored(service: Service, name: str) -> dict[str, str]:
    """Return the config of an existing connector, whose secrets are kept."""
    try:
        with service.logs.reading(service.group_id) as logs:
            found = logs.group.connectors.get(name)
            return dict(found.config) if found else {}
    except NoLogError:
        return {}


def describe_plugin(plugin: Plugin) -> PluginInfo:
    """Return the entry of a connector class in `/connector-plugins`."""
    made_by = plugin.made_by
    return PluginInfo(plugin.name, made_by.kind, made_by.version, plugin.delivery.value)
