"""A connector's class, which is asked in the REST process about what the connector leads to.

It is asked without a task, with the logged config: its secrets are decrypted, but references to
files and variables of workers are not resolved.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Self

from .....actors.settings import HIDDEN
from .....events.records import ConnectorConfig
from ....config.references.redaction import Redaction
from ....config.secrets import CannotUnseal, Vault, is_sealed, passwords_in
from ....pipeline.connectors.plugins import Plugin, Plugins
from ....pipeline.spi.errors import PluginUnknown
from ..server.errors import ApiError
from .external_checks import ExternalChecks


@dataclass(frozen=True, slots=True)
class AskedConnector:
    """A connector's class with the connector's decrypted config."""

    plugin: Plugin
    config: Mapping[str, str]
    checks: ExternalChecks
    secrets: Redaction = field(default_factory=Redaction)
    """Hides the decrypted values in what is answered."""

    @classmethod
    def of(
        cls, plugins: Plugins, vault: Vault, checks: ExternalChecks, stored: ConnectorConfig
    ) -> Self:
        """Return the class of a connector; raises `ApiError` if it is not installed here."""
        name = stored.connector
        sealed = [key for key, value in stored.config.items() if is_sealed(value)]
        try:
            plugin = plugins.of(stored.config)
            plain = {key: vault.unseal(name, each) for key, each in stored.config.items()}
        except (PluginUnknown, CannotUnseal) as error:
            told = f"the class of {name} cannot be asked here: {error}; nothing was changed"
            raise ApiError(HTTPStatus.BAD_REQUEST, told) from None
        asked = cls(plugin, plain, checks)
        hidden = {plain[key] for key in sealed}
        hidden |= {part for value in hidden for part in passwords_in(value)}
        asked.secrets.learn(dict.fromkeys(hidden - {""}, HIDDEN))
        return asked
