"""A connector's config on its way in: examined with its plugin, then sealed for the log.

People read `********` for a secret. Where they send that back, it stands for the value that the
connector has already. A config is also held against what it leads to (`outside`).
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
from .....actors.settings import SettingType
from ....config.redaction import LONGEST
from ....config.secrets import PREFIX, CannotUnseal, Vault, is_sealed, passwords_in, sounds_secret
from ....config.sources import SPARK
from ....pipeline.connectors.builtin.plugins import Plugin, Plugins
from ....pipeline.connectors.common_keys import CONNECTOR_CLASS, NAME
from ....pipeline.connectors.placement_keys import with_placement
from ....pipeline.spi.config import HIDDEN, Validation, error_message
from ....pipeline.spi.connector import Delivery, Promise
from ....pipeline.spi.errors import PluginUnknown
from .errors import ApiError
from .outside import OutsideChecks

LOGGER = logging.getLogger(__name__)
CONFIGS_KEPT = 4_096
"""Of how many configs it is kept what they give rise to: each status tells it."""
NULL_VALUE = "Null value can not be supplied as the configuration value."
MOST_KEYS = 1_000
"""How many keys a config may have: each is compared with those that there are."""


@dataclass(frozen=True, slots=True)
class Examined:
    """A config with its secrets open, and all that is wrong with it, told without a secret.

    `flaws` are complaints about keys that no definition stands for.
    """

    plain: Mapping[str, str]
    secret_keys: frozenset[str]
    validation: Validation
    flaws: tuple[str, ...]

    @property
    def errors(self) -> list[str]:
        """All that is wrong, one line each, in the order of the keys."""
        return [*chain(*(each.error_messages for each in self.validation.checked)), *self.flaws]


class Prepared(NamedTuple):
    """A config as it goes to the log, and what is strange about it, or about what it leads to."""

    config: dict[str, str]
    warnings: tuple[str, ...]


def examine(
    plugin: Plugin,
    vault: Vault,
    config: Mapping[str, str],
    stored: Mapping[str, str],
    outside: OutsideChecks | None = None,
) -> Examined:
    """Find all that is wrong with a config; `stored` is the connector's present one, if any.

    A config that is sound in itself is held against what is `outside`, if that is given. Raises
    `ApiError` if the plugin itself fails, or a secret that is to be kept is lost.
    """
    if len(config) > MOST_KEYS:
        told = f"the config has {len(config)} keys, and at most {MOST_KEYS} are taken"
        raise ApiError(HTTPStatus.BAD_REQUEST, told)
    plain = _opened(vault, config, stored)
    found = with_placement(_validate(plugin, plain).validation, plain)
    validation = found.strict(plain)
    defined = {each.definition.name: each.definition.type for each in validation.checked}
    secret_keys = _secret_keys(plain, defined, found.misspelt.keys())
    flaws = dict(_flaws(plain, secret_keys))
    if outside and not (validation.errors or flaws):
        findings = outside.find(plugin, plain)
        validation = replace(
            validation.plus(findings.errors), warnings=(*validation.warnings, *findings.warnings)
        )
    secrets = {plain[key] for key in secret_keys}
    secrets |= {part for value in secrets for part in passwords_in(value)}
    validation = _without_secrets(validation, secrets - {"", HIDDEN}, secret_keys)
    undefined = tuple(error_message(key, HIDDEN, flaws[key]) for key in flaws if key not in defined)
    return Examined(plain, secret_keys, validation.plus(flaws), undefined)


def prepare(
    plugins: Plugins,
    vault: Vault,
    given: Mapping[str, str | None],
    stored: Mapping[str, str],
    outside: OutsideChecks | None = None,
) -> Prepared:
    """Return a config as it goes to the log, its secrets sealed.

    Raises `ApiError` in Connect's words with all that is wrong.
    """
    config = {key: value for key, value in given.items() if value is not None}
    nulls = [NULL_VALUE] * (len(given) - len(config))
    if CONNECTOR_CLASS not in config:
        keys = ", ".join(config)  # a value may be secret
        told = f"Connector config {{{keys}}} contains no connector type"
        raise ApiError(HTTPStatus.BAD_REQUEST, told)
    try:
        plugin = plugins.find(config[CONNECTOR_CLASS])
    except PluginUnknown as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, str(error)) from None
    examined = examine(plugin, vault, config, stored, None if nulls else outside)
    if examined.errors or nulls:
        raise invalid([*examined.errors, *nulls])
    sealed = vault.seal_keys(config[NAME], examined.plain, examined.secret_keys)
    return Prepared(sealed, examined.validation.warnings)


class Told(NamedTuple):
    """What a stored config gives rise to: what is strange about it, what it promises."""

    warnings: tuple[str, ...] = ()
    delivery: str = ""


def told_of(plugins: Plugins, config: Mapping[str, str]) -> Told:
    """Return what is told of a stored config; nothing if its class is not installed here.

    It is found once for each config: a status that is read again asks, and loads, no plugin.
    """
    with suppress(PluginUnknown, ApiError):
        plugin = plugins.find(config.get(CONNECTOR_CLASS, ""))
        return _told(plugin, tuple(sorted(config.items())))
    return Told()


@lru_cache(maxsize=CONFIGS_KEPT)
def _told(plugin: Plugin, config: tuple[tuple[str, str], ...]) -> Told:
    validation, promise = _validate(plugin, dict(config))
    return Told(validation.remarks, promise.delivery.value if promise else "")


def keeps_outside(plugins: Plugins, config: Mapping[str, str]) -> bool:
    """Tell whether a deletion of a stored connector has anything to remove outside."""
    try:
        return plugins.find(config.get(CONNECTOR_CLASS, "")).made_by.keeps_outside(config)
    except PluginUnknown:
        return False  # nobody could be asked to remove it
    except (Exception, SystemExit):
        LOGGER.exception("it is not known what %s keeps outside", config.get(CONNECTOR_CLASS))
        return True


def named(name: str, config: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return a config that says its connector's name; raises `ApiError` if it says another."""
    included = config.get(NAME)
    if included is not None and included != name:
        raise ApiError(
            HTTPStatus.BAD_REQUEST,
            f"Connector name configuration ({included}) doesn't match connector name in the URL"
            f" ({name})",
        )
    return {**config, NAME: name}


def check_name(name: str) -> None:
    """Raise `ApiError` for a name that no path could lead to, or no log could hold."""
    if name in {".", ".."}:
        flaw = "String may not be . or .., which no path leads to"
    elif len(name.encode(errors="replace")) > LONGEST_CONNECTOR:
        flaw = f"String may have at most {LONGEST_CONNECTOR} bytes"
    else:
        return
    raise invalid([f"Invalid value {name} for configuration {NAME}: {flaw}"])


def _opened(vault: Vault, config: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, str]:
    kept = {key for key, value in stored.items() if is_sealed(value)}
    name = config.get(NAME, "")
    try:
        return {
            key: vault.unseal(name, stored[key]) if value == HIDDEN and key in kept else value
            for key, value in config.items()
        }
    except CannotUnseal as error:
        raise ApiError(HTTPStatus.BAD_REQUEST, str(error)) from None


def _secret_keys(
    plain: Mapping[str, str], defined: Mapping[str, SettingType], misspelt: Collection[str]
) -> frozenset[str]:
    """Return the keys whose values are sealed: by definition, by name, or for what they hold."""

    def may_hold_anything(key: str) -> bool:
        return key not in defined or key in misspelt or key.startswith(SPARK)

    return frozenset(
        key
        for key, value in plain.items()
        if defined.get(key) is SettingType.PASSWORD
        or (may_hold_anything(key) and sounds_secret(key))
        or passwords_in(value)
    )


def _flaws(plain: Mapping[str, str], secret_keys: Collection[str]) -> Iterator[tuple[str, str]]:
    for key, value in plain.items():
        if len(value) > LONGEST and key in secret_keys:
            yield key, f"a secret has at most {LONGEST} letters"
        if PREFIX in value:
            yield key, f"{PREFIX}...}} is how the cluster stores a secret: give the secret itself"
        elif value == HIDDEN:
            yield key, f"{HIDDEN} stands for a value that is kept, and there is none"


def _without_secrets(
    validation: Validation, secrets: Collection[str], secret_keys: Collection[str]
) -> Validation:
    """Return a validation that neither shows nor quotes what is secret, however it is worded."""

    def hushed(told: str) -> str:
        for secret in secrets:
            told = told.replace(secret, HIDDEN)
        return told

    checked = (
        replace(
            each,
            given=None if each.given is None else hushed(each.given),
            errors=tuple(map(hushed, each.errors)),
            is_secret=each.definition.name in secret_keys,
        )
        for each in validation.checked
    )
    warnings = tuple(map(hushed, validation.warnings))
    return replace(validation, checked=tuple(checked), warnings=warnings)


class _Judged(NamedTuple):
    """What a plugin finds in a config, and what it promises under it if that is sound."""

    validation: Validation
    promise: Promise | None


def _validate(plugin: Plugin, plain: Mapping[str, str]) -> _Judged:
    try:
        validation = plugin.made_by.validate(plain).plus(plugin.flaws_in_version(plain))
        if validation.errors:
            return _Judged(validation, None)
        promise = plugin.made_by.delivery_of(plain)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # what others install fails in any way
        frames = "".join(format_tb(error.__traceback__))  # the error's words may hold a secret
        kind = type(error).__name__
        LOGGER.error("%s failed on a config: %s\n%s", plugin.name, kind, frames)  # noqa: TRY400
        raise ApiError(
            HTTPStatus.INTERNAL_SERVER_ERROR,
            f"connector class {plugin.name} failed to examine the config"
            f" ({kind}): nothing was changed; this is a fault of that class,"
            " logs/rest.log of the data folder says where",
        ) from None
    told = _less_than(plugin.delivery, promise)
    return _Judged(replace(validation, warnings=(*validation.warnings, *told)), promise)


def _less_than(best: Delivery, promise: Promise) -> tuple[str, ...]:
    """Return a warning if a config promises less than its class can do."""
    if Promise(best).and_also(promise).delivery is best:
        return ()
    why = "".join(f"; {each}" for each in promise.why)
    return (f"delivery is {promise.delivery.value}, and not {best.value}{why}",)


def invalid(errors: list[str]) -> ApiError:
    """Return the error for a config, with all that is wrong with it."""
    lines = "\n".join(errors)
    return ApiError(
        HTTPStatus.BAD_REQUEST,
        "Connector configuration is invalid and contains the following"
        f" {len(errors)} error(s):\n{lines}\nYou can also find the above list of errors at the"
        " endpoint `/connector-plugins/{connectorType}/config/validate`",
    )
