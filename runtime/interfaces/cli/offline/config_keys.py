"""The keys of all configs as this installation knows them, without a node."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from ....pipeline.spi.config import Definition, Importance
from ..output.printing import Misused

FILES: Final = "files"
ENDS: Final = ("source", "sink")
_FAMILY: Final = re.compile(r"<name>|\*")


class KeyCatalogue(NamedTuple):
    """The keys that any config may have, and those that go with a type of source or sink."""

    common: Sequence[Definition]
    families: Sequence[Definition]
    """The keys with a part of any name, `transforms.<name>.type`."""
    by_type: dict[str, Sequence[Definition]]
    """By `source.type=kafka` and the like."""

    def types_of(self, end: str) -> list[str]:
        """Return the types of sources or of sinks."""
        return [key.partition("=")[2] for key in self.by_type if key.startswith(f"{end}.type=")]

    def keys_of(self, end: str, kind: str) -> Sequence[Definition]:
        """Return the keys of a type of sources or sinks; raises `Misused`."""
        keys = self.by_type.get(f"{end}.type={kind}")
        if keys is None:
            there = ", ".join(self.types_of(end))
            raise Misused(f"there is no {end} type {kind}; there is: {there}")
        return keys


def read_catalogue() -> KeyCatalogue:
    """Return the keys of pipelines, with those of all installed types."""
    from ....pipeline.connectors.spark_pipeline import SparkPipeline  # noqa: PLC0415  # slow

    config = SparkPipeline.config()
    of_files = {end: [each for each in config.definitions if _is_of(end, each)] for end in ENDS}
    common = [each for each in config.definitions if not any(each in of_files[end] for end in ENDS)]
    by_type: dict[str, Sequence[Definition]] = {
        f"{end}.type={FILES}": of_files[end] for end in ENDS
    }
    by_type |= SparkPipeline.optional_keys()
    return KeyCatalogue(common, config.families, by_type)


def _is_of(end: str, key: Definition) -> bool:
    return key.name.startswith(f"{end}.") and key.name != f"{end}.type"


def pattern_of(family: str) -> str:
    """Return the regular expression of the keys of a family, such as `source.option.*`."""
    parts = (re.escape(each) for each in _FAMILY.split(family))
    return f"^{'[^.]+'.join(parts)}$" if "<" in family else f"^{'.+'.join(parts)}$"


def is_usual(key: Definition) -> bool:
    """Return whether most configs have a key."""
    return key.required or key.importance is Importance.HIGH
