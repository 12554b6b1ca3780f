"""The settings of a node as people read them: with their meaning and source, without secrets."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ...actors.settings import HIDDEN, SettingType, sounds_secret
from ..config.connect_worker import hides_secret, meaning_of
from ..config.keys import KEYS, SETTINGS, SPARK_CONF
from ..config.load import Config
from ..config.node_keys.group import ASSIGNOR_CONF
from ..config.references.resolving import is_reference
from ..config.secrets import passwords_in
from ..config.sources import ASSIGNORS, SPARK
from ..pipeline.engines.settings import without_parameters

DEFAULT: Final = "default"
"""The source of a value that is the default."""
_MEANINGS: Final = {SPARK: "Passed on to Spark.", ASSIGNORS: "Handed to assignors."}
"""The meaning of settings that are passed through, by prefix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownSetting:
    """One setting with its value, and the source of that."""

    key: str
    value: str
    default: str = ""
    unit: str = ""
    allowed: str = ""
    """The values that it may have, in words."""
    meaning: str
    kafka: str = ""
    """Its name in Kafka Connect."""
    source: str
    """`DEFAULT`, or where the value was read."""


def list_settings(config: Config, sources: Mapping[str, str]) -> list[ShownSetting]:
    """Return all settings, including passed-through ones, with secrets hidden.

    `sources` has the source of each value that is not a default.
    """
    return [
        describe_setting(key, value, sources.get(key, DEFAULT))
        for key, value in _shown_values(config)
    ]


def describe_setting(key: str, value: str, source: str) -> ShownSetting:
    """Complete a setting by what does not depend on a node; an unknown one has no meaning."""
    if (setting := SETTINGS.get(key)) is None:
        meanings = (text for prefix, text in _MEANINGS.items() if key.startswith(prefix))
        return ShownSetting(
            key=key, value=value, meaning=next(meanings, meaning_of(key)), source=source
        )
    return ShownSetting(
        key=key,
        value=value,
        default=str(setting.default),
        unit=setting.unit,
        allowed=setting.allowed,
        meaning=setting.documentation,
        kafka=setting.in_connect,
        source=source,
    )


def _shown_values(config: Config) -> Iterator[tuple[str, str]]:
    """Yield the value of each setting, without what is secret in it."""
    for key, name in KEYS.items():
        if key in {SPARK_CONF, ASSIGNOR_CONF}:
            continue
        value = without_parameters(str(getattr(config, name)))
        is_secret = SETTINGS[key].type is SettingType.PASSWORD and not is_reference(value)
        is_hidden = value and (is_secret or passwords_in(value))
        yield key, HIDDEN if is_hidden else value
    for prefix, values in ((SPARK, config.spark_conf), (ASSIGNORS, config.assignor_conf)):
        for name, value in sorted(values.items()):
            is_hidden = sounds_secret(name) or passwords_in(value)
            yield prefix + name, HIDDEN if is_hidden else value
    for key, value in sorted(config.connect_worker.items()):
        if key not in KEYS:
            yield key, HIDDEN if hides_secret(key, value) else value
