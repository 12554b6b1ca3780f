"""The route that compares a config with the connector's present one, and changes nothing."""

from collections.abc import Iterator, Mapping

from .....events.log.errors import NoLogError
from ....config.secrets import hide_secrets
from ...replies.connectors import ConfigChange, ConfigDiff
from ..backend.configs import check_name, prepare, with_name
from ..backend.schema import ChangesBody, Routes
from ..backend.service import Served, Service

routes = Routes("connectors")


@routes.add("PUT /connectors/{connector}/config/diff", takes_json=True)
def diff_config(service: Served, connector: str, config: ChangesBody) -> ConfigDiff:
    """Validate a config as a PUT of it does, and return what that would change.

    Secrets are compared, but not shown.
    """
    check_name(connector)
    stored = _stored(service, connector)
    given = with_name(connector, config)
    prepared = prepare(service.plugins, service.vault, given, stored or {}, service.outside)
    changes = list(_changes(stored or {}, prepared.config))
    return ConfigDiff(connector, stored is None, changes, prepared.warnings)


def _stored(service: Service, name: str) -> Mapping[str, str] | None:
    """Return the config of a connector in the log; None for one that is being deleted, too."""
    try:
        with service.logs.reading(service.group_id) as logs:
            found = logs.group.connectors.get(name)
            return found.config if found is not None and not found.deleting else None
    except NoLogError:
        return None


def _changes(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[ConfigChange]:
    shown_old, shown_new = hide_secrets(old), hide_secrets(new)
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            yield ConfigChange(key, shown_old.get(key), shown_new.get(key))
