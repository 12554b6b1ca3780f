"""The connector classes that can be run here, and what they say of a config."""

from http import HTTPStatus

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from ....events.log.errors import NoLogError
from ...connectors.builtin.plugins import Plugin, PluginUnknown
from ...connectors.common_keys import CONNECTOR_CLASS, NAME
from ..backend.configs import examine
from ..backend.service import Served, Service
from ..http.bodies import ConfigBody, RequiresJson
from ..http.errors import ApiError, not_found

router = APIRouter(tags=["connector plugins"])


@router.get("/connector-plugins")
def list_plugins(
    service: Served,
    connectorsOnly: bool = True,  # noqa: ARG001, FBT001, FBT002, N803  # Connect's parameter
) -> JSONResponse:
    """List the connector classes; there are no plugins of other kinds yet."""
    return JSONResponse([plugin.to_json() for plugin in service.plugins.plugins])


@router.get("/connector-plugins/{plugin}/config")
def get_plugin_config(service: Served, plugin: str) -> JSONResponse:
    """List the keys of a connector class: type, default, meaning."""
    keys = _found(service, plugin).made_by.config()
    return JSONResponse([each.to_json() for each in (*keys.definitions, *keys.families)])


@router.put("/connector-plugins/{plugin}/config/validate", dependencies=[RequiresJson])
def validate_config(service: Served, plugin: str, config: ConfigBody) -> JSONResponse:
    """Examine a config without putting it to use."""
    found = _found(service, plugin)
    given = config.get(CONNECTOR_CLASS, plugin)
    try:
        matches = service.plugins.find(given) == found
    except PluginUnknown:
        matches = False
    if not matches:
        raise ApiError(
            HTTPStatus.BAD_REQUEST,
            f"Included connector type {given} does not match request type {plugin}",
        )
    stored = _stored(service, config.get(NAME, ""))
    examined = examine(
        found, service.vault, {CONNECTOR_CLASS: plugin, **config}, stored, service.outside
    )
    return JSONResponse(examined.validation.to_json(found.name))


def _found(service: Service, name: str) -> Plugin:
    try:
        return service.plugins.find(name)
    except PluginUnknown as error:
        raise not_found(str(error)) from None


def _stored(service: Service, name: str) -> dict[str, str]:
    """Return the config of a connector that exists already: it keeps its secrets."""
    try:
        with service.logs.reading(service.group_id) as logs:
            found = logs.group.connectors.get(name)
            return dict(found.config) if found else {}
    except NoLogError:
        return {}
