"""Connect's own plugins, as REST describes them and validates their configs.

What a plugin says may have a secret of the config in it. The values of keys that sound secret, or
that the plugin defines as passwords, are masked in its words, and in the log of its JVM.
"""

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from threading import Lock, Semaphore
from typing import Any, Final, TypeVar

import msgspec

from .....actors.settings import HIDDEN, SettingType
from ....config.connect_worker import secrets_of
from ....config.references.redaction import Redaction
from ....config.references.resolving import ReferenceBroken, resolve
from ....config.secrets import mask
from ....pipeline.installed import hint_by_last_part
from ....pipeline.plugins.catalogue.aliases import simple_name
from ....pipeline.plugins.catalogue.answers import PluginAnswers
from ....pipeline.plugins.catalogue.catalogue import Catalogue, ConnectPlugin, open_catalogue
from ....pipeline.plugins.catalogue.host_scanner import HostScanner
from ....pipeline.plugins.catalogue.scanning import NoScanner
from ....pipeline.plugins.catalogue.settings import PluginSettings
from ....pipeline.plugins.host import HostDied, HostLaunch, HostSlow, PluginFailed, PluginHost
from ....pipeline.plugins.options import HostOptions
from ....pipeline.plugins.setup import NotSetUp, find_installation
from ....processes.java import JavaNotFound, find_java
from ...replies.connectors import ConfigInfos, ConfigKeyInfo, PluginInfo
from ..server.errors import ApiError
from ..validation.secret_keys import secret_keys_of

MOST_AT_ONCE: Final = 8
"""The maximum number of questions to plugins at once: each has a thread of the requests."""
TURN_SECONDS: Final = 2.0
"""How long a question waits for its turn."""
SECRETS_KEPT: Final = 100
"""How many secrets of the last configs are masked in the log."""
_SECRET: Final = SettingType.PASSWORD.value
T = TypeVar("T")


class LogMask:
    """Masks secrets in the log of the plugins' JVM: the worker's, and those of the last configs.

    A form validates a config with each letter that is typed, so most of these are no secrets yet.
    """

    def __init__(self) -> None:
        """Mask nothing yet."""
        self._lock = Lock()
        self._lasting: dict[str, str] = {}
        """The replacement of each secret of the worker."""
        self._recent: deque[str] = deque(maxlen=SECRETS_KEPT)
        self._redaction = Redaction()

    def add(self, lasting: Mapping[str, str], recent: Collection[str] = ()) -> None:
        """Mask more secrets; lasting ones have their replacement."""
        with self._lock:
            self._lasting.update(lasting)
            self._recent.extend(each for each in recent if each not in self._recent)
            redaction = Redaction()
            redaction.learn({**dict.fromkeys(self._recent, HIDDEN), **self._lasting})
            self._redaction = redaction

    def hide(self, text: str) -> str:
        """Return a text without these secrets."""
        return self._redaction.hide(text)


class ConnectPlugins:
    """The plugins of Kafka Connect that this node has; usable from any thread."""

    def __init__(self, answers: PluginAnswers, mask: LogMask) -> None:
        """`mask` is that of the log of the plugins' JVM."""
        self._answers = answers
        self._mask = mask
        self._free = Semaphore(MOST_AT_ONCE)
        """How many more plugins may be asked now."""

    def listed(self) -> list[PluginInfo]:
        """Return the plugins that configs may name."""
        return [
            PluginInfo(each.class_name, each.type, each.version) for each in self._answers.listed()
        ]

    def find(self, name: str) -> ConnectPlugin | None:
        """Return the plugin of a class or of one of its aliases."""
        return self._answers.find(name)

    def hint(self, name: str) -> str:
        """Return the most similar names, and what keeps plugins from being there; "" for none."""
        known = {simple_name(each.class_name) for each in self._answers.listed()}
        flaws = self._answers.catalogue().flaws
        wrong = "`fairlead plugins list` tells what is wrong with plugins here" if flaws else ""
        return "; ".join(filter(None, (hint_by_last_part(name, sorted(known)), wrong)))

    def keys(self, name: str, version: str) -> list[ConfigKeyInfo]:
        """Return the definitions of a plugin's keys; raises `ApiError`."""
        answer = self._ask(lambda: self._answers.keys(name, version), ())
        for each in answer:
            _complete(each)
        return msgspec.convert(answer, list[ConfigKeyInfo])

    def validate(self, config: Mapping[str, str | None]) -> ConfigInfos:
        """Return the plugin's validation of a config, for which it may look outside.

        Raises `ApiError`.
        """
        plain = {key: value for key, value in config.items() if value is not None}
        secrets = {plain[key] for key in secret_keys_of(plain, {}, ())} - {""}
        self._mask.add({}, secrets)
        answer = self._ask(lambda: self._answers.validate(config), secrets)
        defined = [each["definition"] for each in answer["configs"] if each["definition"]]
        passwords = {each["name"] for each in defined if each["type"] == _SECRET}
        secrets |= {plain[key] for key in passwords & plain.keys()} - {""}
        self._mask.add({}, secrets)
        for each in defined:
            _complete(each)
        for each in answer["configs"]:
            if value := each["value"]:
                told = (text or "it is refused without a reason" for text in value["errors"])
                value["errors"] = [mask(text, secrets) for text in told]
                value["recommended_values"] = [*filter(None, value["recommended_values"])]
                value["value"] = value["value"] and mask(value["value"], secrets)
        return msgspec.convert(answer, ConfigInfos)

    def close(self) -> None:
        """End the plugins' JVM, if there is one."""
        self._answers.close()

    def _ask(self, question: Callable[[], T], secrets: Collection[str]) -> T:
        if not self._free.acquire(timeout=TURN_SECONDS):
            busy = f"{MOST_AT_ONCE} plugins are being asked already: try again in a moment"
            raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, busy)
        try:
            return question()
        except PluginFailed as error:
            status = HTTPStatus(error.status or HTTPStatus.INTERNAL_SERVER_ERROR)
            raise ApiError(status, mask(self._mask.hide(str(error)), secrets)) from None
        except HostSlow as error:
            told = f"Request timed out: the plugin gives {error}"
            raise ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, mask(told, secrets)) from None
        except (HostDied, NotSetUp, JavaNotFound, ReferenceBroken) as error:
            told = f"the plugin could not be asked: {error}; nothing was changed"
            raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, mask(told, secrets)) from None
        finally:
            self._free.release()


def open_plugins(data_dir: Path, brief: Mapping[str, Any]) -> ConnectPlugins:
    """Return the plugins of a node; `brief` as `RestBrief` has it. No JVM is started yet."""
    log_mask = LogMask()
    settings = PluginSettings(
        data_dir, [Path(each) for each in brief["path"]], allow=tuple(brief["allow"])
    )

    def launch(log: str) -> HostLaunch:
        options = HostOptions(**brief["host"])
        path = data_dir / "logs" / log
        return HostLaunch(find_installation(), find_java(), path, options, log_mask.hide)

    def read_catalogue() -> Catalogue:
        try:
            return open_catalogue(settings, HostScanner(launch("plugin-scan.log")))
        except (NotSetUp, JavaNotFound) as error:
            return open_catalogue(settings, NoScanner(str(error)))

    def start(paths: Sequence[str]) -> PluginHost:
        references: dict[str, str] = {}
        properties = resolve(brief["properties"], references, own=str(data_dir))
        log_mask.add({**dict.fromkeys(secrets_of(properties), HIDDEN), **references})
        # To Kafka an empty path is the working folder.
        path = {"plugin.path": ",".join(paths)} if paths else {}
        return PluginHost(launch("plugin-host.log"), {**properties, **path})

    answers = PluginAnswers(settings, read_catalogue, start, brief["idle_ms"] / 1000)
    return ConnectPlugins(answers, log_mask)


def _complete(definition: dict[str, Any]) -> None:
    """Fill in the texts of a key that Connect lets a plugin leave out."""
    definition["documentation"] = definition["documentation"] or ""
    definition["display_name"] = definition["display_name"] or definition["name"]
