"""The route that reads a few rows as a config would have them read, and changes nothing."""

from http import HTTPStatus

from ......actors.settings import trimmed
from .....security.rights import Right
from ....replies.connectors import SampleDescription
from ...commands.service import RequireNames, Served
from ...server.errors import ApiError
from ...server.permissions import Reach, RouteRights
from ...server.routing import Routes
from ...validation.configs import check_name, seal_config, with_name
from .config_changes import NamedConfig
from .descriptions import find_connector

routes = Routes("connectors")
NO_ENGINE = (
    "no sample was read: this node has engine=noop, which reads no rows. Start it with"
    " engine=spark, or ask another node"
)

OF_CONNECT = (
    "no sample was read: the rows of Kafka Connect's own classes are read by their tasks alone"
)


@routes.add(
    "POST /sample",
    RouteRights(Right.ADMINISTER, Reach.BODY),
    errors=(HTTPStatus.SERVICE_UNAVAILABLE,),
)
def read_sample(service: Served, require: RequireNames, body: NamedConfig) -> SampleDescription:
    """Read ten rows as a config would have them read, with types, before and after its transforms.

    They are the first rows that there are, whatever a connector of that name has read. Nothing is
    written, no offset moves, and no slot or consumer group is made. A secret that is sent back as
    it is shown is the one of the connector of that name.
    """
    name = trimmed(body.name)
    require([name])
    check_name(name)
    present = find_connector(service, name)
    config = with_name(name, body.config)
    stored = present.config if present else dict[str, str]()
    if service.is_of_connect({key: value for key, value in config.items() if value is not None}):
        raise ApiError(HTTPStatus.BAD_REQUEST, OF_CONNECT)
    sealed = seal_config(service.plugins, service.vault, config, stored)
    if service.samples is None:
        raise ApiError(HTTPStatus.BAD_REQUEST, NO_ENGINE)
    return service.samples.read(name, sealed.config)
