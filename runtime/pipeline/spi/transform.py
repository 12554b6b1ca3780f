"""What is done to the rows of a batch between source and sink."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from .config import ConfigDef, ParsedConfig
from .context import Context
from .rows import Rejects

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Transform(ABC):
    """A step between source and sink; must be a function of the batch alone.

    Configs name one by `transforms.<name>.type`: built in, or by the name of an entry point of the
    group `fairlead.transforms`, which names a subclass. It is made of its keys.
    """

    version: ClassVar[str] = "0"
    """What `/connector-plugins` tells, and what `transforms.<name>.plugin.version` means."""

    asks_files: bool = True
    """Whether it may ask from which file a row is; where none does, small files are read as one."""

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definitions of its keys, by their bare names: `field`.

        A family `<name>` in a key, `lookup.<name>.path`, is the user's to name.
        """
        return ConfigDef(())

    @classmethod
    def flaws(cls, settings: ParsedConfig) -> Mapping[str, str]:
        """Return what is wrong with keys that are sound each by itself, by the key to change."""
        del settings
        return {}

    def __init__(self, settings: ParsedConfig, context: Context) -> None:  # noqa: B027
        """Take its keys as they were parsed, by their bare names; raises `ConfigInvalid`."""

    @abstractmethod
    def apply(self, frame: "DataFrame") -> "DataFrame":
        """Describe the transformed rows."""

    def conclude(self) -> None:  # noqa: B027  # most have nothing to say
        """Learn that the job of the last frame is over; raises `BadInput` if it must not count."""

    def rejects(self) -> Sequence[Rejects]:
        """Return the rows of the last frame that are left out, since they are bad.

        Asked once the batch's job is over.
        """
        return ()
