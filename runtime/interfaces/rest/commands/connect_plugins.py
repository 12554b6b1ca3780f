"""Connect's own plugins, as REST describes them and validates their configs.

What a plugin says may have a secret of the config in it. The values of keys that sound secret, or
that the plugin defines as passwords, are masked in its words, and in the log of its JVM. Instead
of what a reference leads to the reference is shown.
"""

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from threading import Lock, Semaphore
from typing import Any, Final, TypeVar

import msgspec

from .....actors.settings import HIDDEN, SettingType
from ....config.connect_worker import resolve_properties
from ....config.references.redaction import SHORTEST, Redaction
from ....config.references.resolving import ReferenceBroken, resolve
from ....config.secrets import mask_as
from ....pipeline.installed import hint_by_last_part
from ....pipeline.plugins.catalogue.aliases import simple_name
from ....pipeline.plugins.catalogue.answers import KafkaAway, PluginAnswers
from ....pipeline.plugins.catalogue.catalogue import ConnectPlugin
from ....pipeline.plugins.catalogue.of_node import NodePlugins
from ....pipeline.plugins.host import HostDied, HostListener, HostSlow, PluginFailed, PluginHost
from ....pipeline.plugins.options import PluginSpec
from ....pipeline.plugins.setup import NotSetUp
from ....pipeline.spi.keys.common import CONNECTOR_CLASS, CONNECTOR_VERSION, NAME
from ....processes.java import JavaNotFound
from ...replies.connectors import ConfigInfo, ConfigInfos, ConfigKeyInfo, PluginInfo
from ...replies.node import Message
from ...replies.progress import ConnectorOffsets
from ..server.errors import ApiError
from ..validation.secret_keys import secret_keys_of

MOST_AT_ONCE: Final = 8
"""The maximum number of questions to plugins at once: each has a thread of the requests."""
TURN_SECONDS: Final = 2.0
"""How long a question waits for its turn."""
SECRETS_KEPT: Final = 100
"""How many secrets of the last configs are masked in the log."""
_NOTHING_SET: Final = PluginSpec()
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


class LookedUp(HostListener):
    """The values that the JVM has looked up for references in configs, by connector."""

    def __init__(self, mask: LogMask) -> None:
        self.mask = mask
        """That of the log of the JVM."""
        self._by_connector: dict[str, dict[str, str]] = {}

    def answer(self, question: str, about: Mapping[str, Any]) -> object:
        """Mask values from now on, by the references that led to them."""
        if question == "mask":
            self.mask.add(about["shown"])
            self._by_connector.setdefault(about["connector"], {}).update(about["shown"])
            if len(self._by_connector) > SECRETS_KEPT:
                self._by_connector.pop(next(iter(self._by_connector)))
        return True

    def of(self, connector: str) -> Mapping[str, str]:
        """Return the values of a connector, and what to show instead of each."""
        return _maskable(self._by_connector.get(connector, {}))


class ConnectPlugins:
    """The plugins of Kafka Connect that this node has; usable from any thread."""

    def __init__(
        self,
        answers: PluginAnswers,
        looked_up: LookedUp,
        own: str = "",
        spec: PluginSpec = _NOTHING_SET,
    ) -> None:
        """`looked_up` hears what their JVM says, `own` is the folder of the node."""
        self._answers = answers
        self._mask = looked_up.mask
        self._looked_up = looked_up
        self._own = own
        self.spec = spec
        """The settings of the node for plugins."""
        self._free = Semaphore(MOST_AT_ONCE)
        """How many more plugins may be asked now."""

    def listed(self) -> list[PluginInfo]:
        """Return the plugins that configs may name."""
        return [
            PluginInfo(each.class_name, each.type, each.version) for each in self._answers.listed()
        ]

    def connectors(self) -> tuple[str, ...]:
        """Return the classes of connectors that configs may name."""
        found = (each for each in self._answers.listed() if each.is_connector)
        return tuple(dict.fromkeys(each.class_name for each in found))

    def find(self, name: str) -> ConnectPlugin | None:
        """Return the plugin of a class or of one of its aliases."""
        return self._answers.find(name)

    def refusal(self, name: str) -> str:
        """Return why configs may not name a class that is here; "" if they may."""
        return self._answers.refusal(name)

    def hint(self, name: str) -> str:
        """Return the most similar names, and what keeps plugins from being there; "" for none."""
        known = {simple_name(each.class_name) for each in self._answers.listed()}
        flaws = self._answers.catalogue().flaws
        wrong = "`fairlead plugins list` tells what is wrong with plugins here" if flaws else ""
        return "; ".join(filter(None, (hint_by_last_part(name, sorted(known)), wrong)))

    def keys(self, name: str, version: str) -> list[ConfigKeyInfo]:
        """Return the definitions of a plugin's keys; raises `ApiError`."""
        answer = self._ask(lambda: self._answers.keys(name, version), str)
        for each in answer:
            _complete(each)
        return msgspec.convert(answer, list[ConfigKeyInfo])

    def describe(self, config: Mapping[str, str | None]) -> ConfigInfos:
        """Return the keys of a config's class, without looking at their values.

        Raises `ApiError`.
        """
        name, version = config.get(CONNECTOR_CLASS) or "", config.get(CONNECTOR_VERSION) or ""
        infos = [ConfigInfo(each, None) for each in self.keys(name, version)]
        return ConfigInfos(name, 0, [], infos)

    def validate(self, config: Mapping[str, str | None], *, batches: bool = False) -> ConfigInfos:
        """Return the plugin's validation of a config, for which it may look outside.

        `batches` is for a source whose records go to a sink of fairlead's.

        Raises `ApiError`.
        """
        plain = {key: value for key, value in config.items() if value is not None}
        secrets = {plain[key] for key in secret_keys_of(plain, {}, ())} - {""}
        self._mask.add({}, secrets)
        references, broken = dict[str, str](), dict[str, str]()
        resolved = self._resolve(plain, references, broken)
        self._mask.add(references)

        def hide(text: str) -> str:
            shown = {**_maskable(references), **self._looked_up.of(plain.get(NAME, ""))}
            return mask_as(text, {**shown, **dict.fromkeys(secrets, HIDDEN)})

        answer = self._ask(
            lambda: self._answers.validate({**config, **resolved}, batches=batches), hide
        )
        defined = [each["definition"] for each in answer["configs"] if each["definition"]]
        passwords = {each["name"] for each in defined if each["type"] == _SECRET}
        secrets |= {plain[key] for key in passwords & plain.keys()} - {""}
        self._mask.add({}, secrets)
        for each in defined:
            _complete(each)
        for value in filter(None, (each["value"] for each in answer["configs"])):
            told = (text or "it is refused without a reason" for text in value["errors"])
            value["errors"] = [hide(text) for text in told]
            value["errors"] += filter(None, [broken.get(value["name"])])
            value["recommended_values"] = [*filter(None, value["recommended_values"])]
            if value["value"] is not None:  # the value of a wrong type is none
                given = plain.get(value["name"], "")
                value["value"] = given if "${" in given else hide(value["value"])
        answer["error_count"] += len(broken)
        return msgspec.convert(answer, ConfigInfos)

    def exactly_once(self, config: Mapping[str, str]) -> str:
        """Return the answer of a source with a valid config; "": there is none, or it is a sink.

        See `SUPPORT`.
        """
        with suppress(ApiError):  # a promise is no reason to refuse what is valid
            resolved = self._resolve(config, {}, {})
            return self._ask(lambda: self._answers.exactly_once({**config, **resolved}), str)
        return ""

    def offsets(self, config: Mapping[str, str], secrets: Mapping[str, str]) -> ConnectorOffsets:
        """Return the offsets of a connector with this config, of which `secrets` are masked.

        Raises `ApiError`.
        """
        answer = self._at_work("offsets", config, secrets)
        return msgspec.convert(answer, ConnectorOffsets)

    def alter_offsets(
        self,
        config: Mapping[str, str],
        secrets: Mapping[str, str],
        offsets: Sequence[Mapping[str, object]] | None,
        tasks: int,
    ) -> Message:
        """Change offsets of a connector that is stopped; None: remove all.

        `tasks` is how many it had. Raises `ApiError`.
        """
        if offsets is None:
            answer = self._at_work("reset offsets", config, secrets, tasks=tasks)
        else:
            given = {"offsets": offsets}
            answer = self._at_work("alter offsets", config, secrets, offsets=given, tasks=tasks)
        return msgspec.convert(answer, Message)

    def ask_for_offsets(
        self,
        config: Mapping[str, str],
        secrets: Mapping[str, str],
        offsets: Sequence[Mapping[str, object]] | None,
        partitions: Sequence[Mapping[str, object]],
    ) -> Message:
        """Ask a source that feeds a sink whether its offsets may change; None: remove all.

        `partitions` are those that it has offsets of. Raises `ApiError`.
        """
        about = {
            "config": config,
            "offsets": None if offsets is None else {"offsets": offsets},
            "partitions": partitions,
        }
        hide = self._hiding(config, secrets)
        return msgspec.convert(
            self._ask(lambda: self._answers.ask_for_offsets(**about), hide), Message
        )

    def _at_work(
        self,
        question: str,
        config: Mapping[str, str],
        secrets: Mapping[str, str],
        **about: object,
    ) -> Any:  # noqa: ANN401  # JSON
        hide = self._hiding(config, secrets)
        return self._ask(lambda: self._answers.at_work(question, config=config, **about), hide)

    def _hiding(
        self, config: Mapping[str, str], secrets: Mapping[str, str]
    ) -> Callable[[str], str]:
        """Return what masks the secrets of a config, in the log from now on as well."""
        self._mask.add(secrets)

        def hide(text: str) -> str:
            shown = {**_maskable(secrets), **self._looked_up.of(config.get(NAME, ""))}
            return mask_as(text, shown)

        return hide

    def _resolve(
        self, plain: Mapping[str, str], references: dict[str, str], broken: dict[str, str]
    ) -> dict[str, str]:
        """Replace the references of fairlead in a config; those that are broken stay."""
        resolved: dict[str, str] = {}
        for key, value in plain.items():
            try:
                resolved |= resolve({key: value}, references, self._own, self.spec.providers)
            except ReferenceBroken as error:
                resolved[key], broken[key] = value, str(error)
        references.pop("", None)
        return resolved

    def set_levels(self, levels: Mapping[str, str]) -> None:
        """Set the levels of loggers of the plugins' JVM here."""
        self._answers.set_levels(levels)

    def close(self) -> None:
        """End the plugins' JVM, if there is one."""
        self._answers.close()

    def _ask(self, question: Callable[[], T], hide: Callable[[str], str]) -> T:
        if not self._free.acquire(timeout=TURN_SECONDS):
            busy = f"{MOST_AT_ONCE} plugins are being asked already: try again in a moment"
            raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, busy)
        try:
            return question()
        except PluginFailed as error:
            status = HTTPStatus(error.status or HTTPStatus.INTERNAL_SERVER_ERROR)
            raise ApiError(status, hide(self._mask.hide(str(error)))) from None
        except HostSlow as error:
            late = f"Request timed out: the plugin gives {error}"
            raise ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, hide(late)) from None
        except KafkaAway as error:
            away = f"Kafka does not answer: {error}; nothing was changed"
            raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, hide(away)) from None
        except (HostDied, NotSetUp, JavaNotFound, ReferenceBroken) as error:
            text = f"the plugin could not be asked: {error}; nothing was changed"
            raise ApiError(HTTPStatus.SERVICE_UNAVAILABLE, hide(text)) from None
        finally:
            self._free.release()


def open_plugins(data_dir: Path, spec: PluginSpec) -> ConnectPlugins:
    """Return the plugins of a node. No JVM is started yet."""
    log_mask = LogMask()

    def resolved(properties: Mapping[str, str]) -> Mapping[str, str]:
        return resolve_properties(properties, str(data_dir), log_mask.add)

    plugins = NodePlugins(data_dir, spec, "plugin-host.log", log_mask.hide, resolved)
    looked_up, idle_seconds = LookedUp(log_mask), spec.idle_ms / 1000

    def start(paths: Sequence[str]) -> PluginHost:
        return plugins.start(paths, looked_up)

    answers = PluginAnswers(plugins.settings, plugins.catalogue, start, idle_seconds)
    return ConnectPlugins(answers, looked_up, str(data_dir), spec)


def _maskable(secrets: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets that do not occur in texts by chance."""
    return {each: shown for each, shown in secrets.items() if len(each) >= SHORTEST}


def _complete(definition: dict[str, Any]) -> None:
    """Fill in the texts of a key that Connect lets a plugin leave out."""
    definition["documentation"] = definition["documentation"] or ""
    definition["display_name"] = definition["display_name"] or definition["name"]
