"""Texts of replies that are one of a few words, so that generated clients know these.

They are texts all the same: a client takes a word that only a later server has.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Annotated

from msgspec import Meta

from ....events.model import GroupState, MemberState, RunState, Why


def one_of(words: Iterable[str]) -> Meta:
    """Return the schema of a text with a few allowed words."""
    return Meta(extra_json_schema={"enum": [*words]})


def _values(kind: type[Enum]) -> list[str]:
    return [each.value for each in kind]


RunStateWord = Annotated[str, one_of(_values(RunState))]
GroupStateWord = Annotated[
    str, one_of([*_values(GroupState), "PreparingRebalance", "CompletingRebalance"])
]
"""Of a classic group in the words of Kafka, which has rounds."""
MemberStateWord = Annotated[str, one_of([*MemberState.__members__, "ended"])]
CauseWord = Annotated[str, one_of(_values(Why))]
GroupTypeWord = Annotated[str, one_of(["connect", "classic", "consumer"])]
ConnectorTypeWord = Annotated[str, one_of(["source", "sink", "unknown"])]
HealthWord = Annotated[str, one_of(["healthy", "slow", "unhealthy"])]
SettingSourceWord = Annotated[
    str, one_of(["default", "file", "environment", "command line", "group"])
]
