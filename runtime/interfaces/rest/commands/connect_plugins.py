"""Connect's own plugins, as REST describes them and validates their configs.

What a plugin says may have a secret of the config in it. The values of keys that sound secret, or
that the plugin defines as passwords, are masked in its words, and in the log of its JVM.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from .....actors.settings import HIDDEN, SettingType
from ....config.references.redaction import Redaction
from ....config.references.resolving import ReferenceBroken, resolve
from ....pipeline.plugins.catalogue.answers import PluginAnswers
from ....pipeline.plugins.catalogue.catalogue import Catalogue, ConnectPlugin, open_catalogue
from ....pipeline.plugins.catalogue.host_scanner import HostScanner
from ....pipeline.plugins.catalogue.scanning import NoScanner
from ....pipeline.plugins.catalogue.settings import PluginSettings
from ....pipeline.plugins.host import (
    HostDied,
    HostLaunch,
    HostOptions,
    HostSlow,
    PluginFailed,
    PluginHost,
)
from ....pipeline.plugins.setup import NotSetUp, find_installation
from ....processes.java import JavaNotFound, find_java
from ...replies.connectors import ConfigInfos, ConfigKeyInfo, PluginInfo
from ..server.errors import ApiError
from ..validation.secret_keys import secret_keys_of

_DISCOVERY: Final = {"plugin.discovery": "service_load"}
"""The catalogue sees to it that all plugins have service files."""
_SECRET: Final = SettingType.PASSWORD.value
T = TypeVar("T")


class ConnectPlugins:
    """The plugins of Kafka Connect that this node has; usable from any thread."""

    def __init__(self, answers: PluginAnswers, redaction: Redaction) -> None:
        """`redaction` masks secrets in the log of the plugins' JVM."""
        self._answers = answers
        self._redaction = redaction

    def listed(self) -> list[PluginInfo]:
        """Return the plugins that configs may name."""
        return [
            PluginInfo(each.class_name, each.type, each.version) for each in self._answers.listed()
        ]

    def find(self, name: str) -> ConnectPlugin | None:
        """Return the plugin of a class or of one of its aliases."""
        return self._answers.find(name)

    def keys(self, name: str, version: str) -> list[ConfigKeyInfo]:
        """Return the definitions of a plugin's keys; raises `ApiError`."""
        answer = self._ask(lambda: self._answers.keys(name, version), ())
        return msgspec.convert(answer, list[ConfigKeyInfo])

    def validate(self, config: Mapping[str, str | None]) -> ConfigInfos:
        """Return the plugin's validation of a config, for which it may look outside.

        Raises `ApiError`.
        """
        plain = {key: value for key, value in config.items() if value is not None}
        secrets = {plain[key] for key in secret_keys_of(plain, {}, ())} - {""}
        self._redaction.learn(dict.fromkeys(secrets, HIDDEN))
        answer = self._ask(lambda: self._answers.validate(config), secrets)
        defined = filter(None, (each["definition"] for each in answer["configs"]))
        passwords = {each["name"] for each in defined if each["type"] == _SECRET}
        secrets |= {plain[key] for key in passwords & plain.keys()} - {""}
        self._redaction.learn(dict.fromkeys(secrets, HIDDEN))
        for each in answer["configs"]:
            if value := each["value"]:
                value["errors"] = [_hush(text, secrets) for text in value["errors"]]
                value["value"] = value["value"] and _hush(value["value"], secrets)
        return msgspec.convert(answer, ConfigInfos)

    def close(self) -> None:
        """End the plugins' JVM, if there is one."""
        self._answers.close()

    @staticmethod
    def _ask(question: Callable[[], T], secrets: Collection[str]) -> T:
        try:
            return question()
        except PluginFailed as error:
            status = HTTPStatus(error.status or HTTPStatus.INTERNAL_SERVER_ERROR)
            raise ApiError(status, _hush(str(error), secrets)) from None
        except HostSlow as error:
            told = f"Request timed out: the plugin gives {error}"
            raise ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, _hush(told, secrets)) from None
        except (HostDied, NotSetUp, JavaNotFound, ReferenceBroken) as error:
            told = f"the plugin could not be asked: {error}; nothing was changed"
            raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, _hush(told, secrets)) from None


def open_plugins(data_dir: Path, brief: Mapping[str, Any]) -> ConnectPlugins:
    """Return the plugins of a node; `brief` as `RestBrief` has it. No JVM is started yet."""
    redaction = Redaction()
    settings = PluginSettings(
        data_dir, [Path(each) for each in brief["path"]], allow=tuple(brief["allow"])
    )

    def launch(log: str) -> HostLaunch:
        options = HostOptions(**brief["host"])
        path = data_dir / "logs" / log
        return HostLaunch(find_installation(), find_java(), path, options, redaction.hide)

    def read_catalogue() -> Catalogue:
        try:
            return open_catalogue(settings, HostScanner(launch("plugin-scan.log")))
        except (NotSetUp, JavaNotFound) as error:
            return open_catalogue(settings, NoScanner(str(error)))

    def start(paths: Sequence[str]) -> PluginHost:
        references: dict[str, str] = {}
        properties = resolve(brief["properties"], references, own=str(data_dir))
        redaction.learn(references)
        secrets = {properties[key] for key in secret_keys_of(properties, {}, ())} - {""}
        redaction.learn(dict.fromkeys(secrets, HIDDEN))
        # To Kafka an empty path is the working folder.
        path = {"plugin.path": ",".join(paths)} if paths else {}
        return PluginHost(launch("plugin-host.log"), {**properties, **_DISCOVERY, **path})

    answers = PluginAnswers(settings, read_catalogue, start, brief["idle_ms"] / 1000)
    return ConnectPlugins(answers, redaction)


def _hush(text: str, secrets: Collection[str]) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text
