"""The answers of Connect's source plugins about their offsets, for the promises of connectors.

A plugin is asked by the process that validates a config, and by the worker that splits the work;
the log has the second answer, with each task's config. An answer counts for the config that it was
given for. The promise is no stronger than what a task says of its work now.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Final

from .....events.group import Group
from .....events.records import ConnectorConfig
from ....config.secrets import is_sealed
from ....pipeline.connectors.plugins import feeds_sink
from ....pipeline.spi.connector import Delivery
from ....pipeline.spi.keys.plugin_source import SUPPORT, delivers

_MOST: Final = 4_096
"""How many answers are kept: a connector needs its own until its first tasks are known."""


class PluginAnswersKept:
    """The answers to the last validations, by the config as it is logged; for any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._answers: OrderedDict[frozenset[tuple[str, str]], str] = OrderedDict()

    def keep(self, config: Mapping[str, str], answer: str) -> None:
        """Keep an answer; "" is none."""
        if answer:
            with self._lock:
                self._answers[frozenset(config.items())] = answer
                while len(self._answers) > _MOST:
                    self._answers.popitem(last=False)

    def added_to(self, config: Mapping[str, str]) -> dict[str, str]:
        """Return a config with its answer, if there is one, and with no other one."""
        with self._lock:
            answer = self._answers.get(frozenset(config.items()), "")
        plain = {key: value for key, value in config.items() if key != SUPPORT}
        return {**plain, SUPPORT: answer} if answer else plain


def with_answer(
    kept: PluginAnswersKept, group: Group, connector: ConnectorConfig
) -> Mapping[str, str]:
    """Return the config of a connector with what its plugin has said, if that is known."""
    if not feeds_sink(connector.config):
        return connector.config
    split = group.task_configs.get(connector.connector)
    config = kept.added_to(connector.config)
    if SUPPORT in config or split is None or not split.tasks:
        return config
    from ....pipeline.connectors.plugin_pipeline import (  # noqa: PLC0415  # loads Spark's libraries
        answer_in,
    )

    hidden = [key for key, value in config.items() if is_sealed(value) or "${" in value]
    answer = answer_in(split.tasks[0].config, config, hidden)
    return {**config, SUPPORT: answer} if answer else config


def weaker(promised: str, remarks: Iterable[str]) -> str:
    """Return a promise, or the weakest that one of the remarks of tasks tells instead."""
    ranks = [each.value for each in Delivery]
    told = [each for each in ranks if any(delivers(each) in remark for remark in remarks)]
    return max([promised, *told], key=ranks.index) if promised else promised
