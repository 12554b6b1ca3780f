"""Validates the config of a connector with its plugin, and seals its secrets for the log.

Users read `********` in place of a secret; if they send that back, the connector's present value is
kept. A config may also be checked against external systems (`outside`).
"""

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from http import HTTPStatus
from itertools import chain
from traceback import format_tb
from typing import NamedTuple

from .....actors.group.state.validate import LONGEST_CONNECTOR
from .....actors.settings import HIDDEN
from ....config.secrets import CannotUnseal, Vault, is_sealed, mask, passwords_in
from ....pipeline.connectors.plugins import Plugin, Plugins
from ....pipeline.spi.config import Validation, error_message
from ....pipeline.spi.connector import Delivery, Promise
from ....pipeline.spi.errors import PluginUnknown
from ....pipeline.spi.keys.common import CONNECTOR_CLASS, NAME
from ....pipeline.spi.keys.placement import with_placement
from ..server.errors import ApiError
from .external_checks import ExternalChecks
from .secret_keys import flaws_in_secrets, secret_keys_of, unresolved

LOGGER = logging.getLogger(__name__)
CONFIGS_KEPT = 4_096
"""The size of the cache of config warnings, which each status shows."""
NULL_VALUE = "Null value can not be supplied as the configuration value."
MOST_KEYS = 1_000
"""The maximum number of keys in a config: each is compared with all known keys."""


@dataclass(frozen=True, slots=True)
class CheckedConfig:
    """A config with plain secrets, and its errors, whose texts have no secrets.

    `flaws` are errors about undefined keys.
    """

    plain: Mapping[str, str]
    secret_keys: frozenset[str]
    validation: Validation
    flaws: tuple[str, ...]

    @property
    def errors(self) -> list[str]:
        """All errors, one line each, in the order of the keys."""
        return [*chain(*(each.error_messages for each in self.validation.checked)), *self.flaws]


class SealedConfig(NamedTuple):
    """A config with sealed secrets, as it is logged, and its warnings."""

    config: dict[str, str]
    warnings: tuple[str, ...]
    exactly_once: str = ""
    """As `ConfigInfos` has it."""


def check_config(
    plugin: Plugin,
    vault: Vault,
    config: Mapping[str, str],
    stored: Mapping[str, str],
    outside: ExternalChecks | None = None,
) -> CheckedConfig:
    """Validate a config; `stored` is the connector's present one, if any.

    A valid config is also checked against external systems, if `outside` is given. Raises
    `ApiError` if the plugin itself fails, or if a secret to keep cannot be decrypted.
    """
    if len(config) > MOST_KEYS:
        told = f"the config has {len(config)} keys, and at most {MOST_KEYS} are taken"
        raise ApiError(HTTPStatus.BAD_REQUEST, told)
    plain = open_secrets(vault, config, stored)
    verdict = with_placement(_validate(plugin, plain).validation, plain)
    validation = verdict.strict(plain)
    defined = {each.definition.name: each.definition.type for each in validation.checked}
    before = set(former_secrets(vault, stored))
    secret_keys = secret_keys_of(plain, defined, verdict.misspelt.keys(), before)
    flaws = dict(flaws_in_secrets(plain, secret_keys))
    if outside and not (validation.errors or flaws):
        findings = outside.find(plugin, plain)
        validation = replace(
            validation.plus(findings.errors), warnings=(*validation.warnings, *findings.warnings)
        )
    validation = replace(validation, warnings=(*validation.warnings, *unresolved(plain)))
    secrets = {plain[key] for key in secret_keys}
    secrets |= {part for value in secrets for part in passwords_in(value)}
    validation = _without_secrets(validation, secrets - {"", HIDDEN}, secret_keys)
    undefined = tuple(error_message(key, HIDDEN, flaws[key]) for key in flaws if key not in defined)
    return CheckedConfig(plain, secret_keys, validation.plus(flaws), undefined)


def seal_config(
    plugins: Plugins,
    vault: Vault,
    body: Mapping[str, str | None],
    stored: Mapping[str, str],
    outside: ExternalChecks | None = None,
) -> SealedConfig:
    """Validate a config and seal its secrets for the log.

    Raises `ApiError` with all errors, in Connect's format.
    """
    config = {key: value for key, value in body.items() if value is not None}
    nulls = [NULL_VALUE] * (len(body) - len(config))
    if CONNECTOR_CLASS not in config:
        keys = ", ".join(config)  # not the values, which may be secret
        missing = f"Connector config {{{keys}}} contains no connector type"
        raise ApiError(HTTPStatus.BAD_REQUEST, missing)
    try:
        plugin = plugins.of(config)
    except PluginUnknown as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, str(error)) from None
    checked = check_config(plugin, vault, config, stored, None if nulls else outside)
    if checked.errors or nulls:
        raise invalid([*checked.errors, *nulls])
    sealed = vault.seal_keys(config[NAME], checked.plain, checked.secret_keys)
    return SealedConfig(sealed, checked.validation.warnings)


class ConfigRemarks(NamedTuple):
    """The warnings and the delivery guarantee of a stored config."""

    warnings: tuple[str, ...] = ()
    delivery: str = ""


def remarks_on(plugins: Plugins, config: Mapping[str, str]) -> ConfigRemarks:
    """Return the warnings and the guarantee of a stored config; empty if its class is missing.

    The result is cached, so that the next status needs no plugin.
    """
    with suppress(PluginUnknown, ApiError):
        plugin = plugins.of(config)
        return _remarks_on(plugin, tuple(sorted(config.items())))
    return ConfigRemarks()


@lru_cache(maxsize=CONFIGS_KEPT)
def _remarks_on(plugin: Plugin, config: tuple[tuple[str, str], ...]) -> ConfigRemarks:
    stored = dict(config)
    validation, promise = _validate(plugin, stored)
    remarks = (*validation.remarks, *unresolved(stored))
    return ConfigRemarks(remarks, promise.delivery.value if promise else "")


def has_external_state(plugins: Plugins, config: Mapping[str, str]) -> bool:
    """Return whether deleting a stored connector has to remove external state."""
    try:
        return plugins.of(config).made_by.has_external_state(config)
    except PluginUnknown:
        return False  # without its class it cannot be removed
    except (Exception, SystemExit):
        LOGGER.exception("it is not known what %s keeps outside", config.get(CONNECTOR_CLASS))
        return True


def with_name(name: str, config: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return a config with the connector's name in it; raises `ApiError` if it has another."""
    included = config.get(NAME)
    if included is not None and included != name:
        raise ApiError(
            HTTPStatus.BAD_REQUEST,
            f"Connector name configuration ({included}) doesn't match connector name in the URL"
            f" ({name})",
        )
    return {**config, NAME: name}


def check_name(name: str) -> None:
    """Raise `ApiError` for a name that cannot be in a URL path or in the log."""
    if name in {".", ".."}:
        flaw = "String may not be . or .., which no path leads to"
    elif len(name.encode(errors="replace")) > LONGEST_CONNECTOR:
        flaw = f"String may have at most {LONGEST_CONNECTOR} bytes"
    else:
        return
    raise invalid([f"Invalid value {name} for configuration {NAME}: {flaw}"])


def open_secrets(
    vault: Vault, config: Mapping[str, str], stored: Mapping[str, str]
) -> dict[str, str]:
    """Return a config with plain secrets: a hidden one stands for that which is stored.

    Raises `ApiError`.
    """
    kept = {key for key, value in stored.items() if is_sealed(value)}
    name = config.get(NAME, "")
    try:
        return {
            key: vault.unseal(name, stored[key]) if value == HIDDEN and key in kept else value
            for key, value in config.items()
        }
    except CannotUnseal as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, str(error)) from None


def former_secrets(vault: Vault, stored: Mapping[str, str]) -> Iterator[str]:
    """Yield the secrets of a stored config; those of another key are gone."""
    for value in filter(is_sealed, stored.values()):
        with suppress(CannotUnseal):
            yield vault.unseal(stored.get(NAME, ""), value)


def _without_secrets(
    validation: Validation, secrets: Collection[str], secret_keys: Collection[str]
) -> Validation:
    """Redact all secrets in the values and errors of a validation."""
    if not (secrets or secret_keys):
        return validation

    checked = (
        replace(
            each,
            given=None if each.given is None else mask(each.given, secrets),
            errors=tuple(mask(text, secrets) for text in each.errors),
            is_secret=each.definition.name in secret_keys,
        )
        for each in validation.checked
    )
    warnings = tuple(mask(text, secrets) for text in validation.warnings)
    return replace(validation, checked=tuple(checked), warnings=warnings)


class PluginVerdict(NamedTuple):
    """The result of a plugin's validation, and the delivery guarantee of a valid config."""

    validation: Validation
    promise: Promise | None


def _validate(plugin: Plugin, plain: Mapping[str, str]) -> PluginVerdict:
    try:
        validation = plugin.made_by.validate(plain).plus(plugin.flaws_in_version(plain))
        if validation.errors:
            return PluginVerdict(validation, None)
        promise = plugin.made_by.delivery_of(plain)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # third-party code may raise anything
        frames = "".join(format_tb(error.__traceback__))  # the error's message may have a secret
        kind = type(error).__name__
        LOGGER.error("%s failed on a config: %s\n%s", plugin.name, kind, frames)  # noqa: TRY400
        raise ApiError(
            HTTPStatus.INTERNAL_SERVER_ERROR,
            f"connector class {plugin.name} failed to examine the config"
            f" ({kind}): nothing was changed; this is a fault of that class,"
            " logs/rest.log of the data folder says where",
        ) from None
    told = _less_than(plugin.delivery, promise)
    return PluginVerdict(replace(validation, warnings=(*validation.warnings, *told)), promise)


def _less_than(best: Delivery, promise: Promise) -> tuple[str, ...]:
    """Return a warning if the guarantee of a config is weaker than its class allows."""
    if Promise(best).and_also(promise).delivery is best:
        return ()
    why = "".join(f"; {each}" for each in promise.why)
    return (f"delivery is {promise.delivery.value}, and not {best.value}{why}",)


def invalid(errors: list[str]) -> ApiError:
    """Return the response for an invalid config, with all its errors."""
    lines = "\n".join(errors)
    return ApiError(
        HTTPStatus.BAD_REQUEST,
        "Connector configuration is invalid and contains the following"
        f" {len(errors)} error(s):\n{lines}\nYou can also find the above list of errors at the"
        " endpoint `/connector-plugins/{connectorType}/config/validate`",
    )
