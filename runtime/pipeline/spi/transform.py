"""The interface of a transform, a step between source and sink."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from .config import ConfigDef, ParsedConfig
from .context import Context
from .rows import Rejects

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Transform(ABC):
    """A step between source and sink; its result must depend on the batch alone.

    `transforms.<name>.type` names a built-in transform, or an entry point of the group
    `fairlead.transforms`, which names a subclass.
    """

    version: ClassVar[str] = "0"
    """The version at `/connector-plugins`, and for `transforms.<name>.plugin.version`."""

    may_use_file_names: bool = True
    """Whether it may use the name of a row's file; if no transform does, small files are merged."""

    keeps_rows: ClassVar[bool] = False
    """Whether it only leaves rows out: each other row, with all its columns, stays as it was."""

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definitions of its keys, without the prefix: `field`.

        Users choose the `<name>` in a key such as `lookup.<name>.path`.
        """
        return ConfigDef(())

    @classmethod
    def flaws(cls, settings: ParsedConfig) -> Mapping[str, str]:
        """Return errors of valid keys that do not fit together, by the key to change."""
        del settings
        return {}

    def __init__(self, settings: ParsedConfig, context: Context) -> None:  # noqa: B027
        """Configure it with its parsed keys, without their prefix; raises `ConfigInvalid`."""

    @abstractmethod
    def apply(self, frame: "DataFrame") -> "DataFrame":
        """Return the transformed frame; runs no job."""

    def conclude(self) -> None:  # noqa: B027  # most have nothing to check
        """Check the batch after its job; raises `BadInput` if it must not be committed."""

    def rejects(self) -> Sequence[Rejects]:
        """Return the bad rows of the last frame; called after the batch's job."""
        return ()
