"""Connector classes for tests: one with a secret, and a broken one."""

from collections.abc import Mapping, Sequence

from fairlead.actors.settings import SettingType
from fairlead.runtime.pipeline.spi.config import ConfigDef, Definition, Importance, Validation
from fairlead.runtime.pipeline.spi.connector import Connector, Pipeline
from fairlead.runtime.pipeline.spi.context import Context
from fairlead.runtime.pipeline.spi.keys.common import COMMON


def _no_spaces(value: object) -> str | None:
    return f"{value} has a space in it" if " " in str(value) else None


class Locked(Connector):
    """Needs a password, and passes on all keys below `extra.`."""

    @classmethod
    def config(cls) -> ConfigDef:
        password = Definition(
            "password",
            SettingType.PASSWORD,
            "A secret.",
            default="",
            importance=Importance.HIGH,
            validator=_no_spaces,
        )
        return ConfigDef((*COMMON.definitions, password), ("extra.",))

    def start(self, context: Context, config: Mapping[str, str]) -> None: ...

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [dict[str, str]()] * max_tasks

    def pipeline(self, context: Context, task_config: Mapping[str, str]) -> Pipeline:
        raise NotImplementedError


class Broken(Locked):
    """Fails on every config."""

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Validation:
        raise RuntimeError(f"no idea what to make of {config}")
