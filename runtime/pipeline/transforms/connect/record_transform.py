"""The base class of record transforms, the transform Filter, and Connect's predicates.

The predicates have the names, keys and meanings of Connect's own classes.
"""

import re
import warnings
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final

from pyspark.sql.types import StructType

from .....actors.settings import Value
from ...engines.spelling import literal
from ...spi.config import ConfigDef, ConfigInvalid, ParsedConfig
from ...spi.context import Context
from ...spi.keys.kinds import text_key
from ...spi.transform import Transform
from ...untrusted.backtracking import flaw_in_backtracking
from .record import HEADERS, TOPIC, ConnectRecord, RecordPart

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BUILT_IN: Final = "1.0"
"""The version of the built-in transforms and predicates."""
_JAVA_ONLY: Final = re.compile(
    r"\\Q.*?(?:\\E|$)|\\[pP](?:\{\w+\}|\w)|\\[hHvVRXGzZeac]|\\k<\w+>|\(\?[a-zA-Z-]+\)"
    r"|(?<=\(\?)[a-zA-Z-]+(?=:)",
    re.DOTALL,
)
"""Syntax of Java's regular expressions that Python lacks."""
_NAMED_GROUP: Final = re.compile(r"(?<=\(\?)<(?=\w)")
_WRONG_ANYWHERE: Final = ("missing ), ", "unbalanced", "unterminated", "nothing to repeat")


class Predicate(ABC):
    """A condition on records that limits a transform to some of them."""

    version: ClassVar[str] = BUILT_IN

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definitions of its keys, without prefix."""
        return ConfigDef(())

    def __init__(self, settings: ParsedConfig) -> None:
        del settings

    @abstractmethod
    def condition(self, record: ConnectRecord) -> str:
        """Return the condition as SQL, which is true or false; raises `ConfigInvalid`."""


class RecordTransform(Transform):
    """A transform that maps each row to one row, or drops it."""

    version: ClassVar[str] = BUILT_IN
    may_use_file_names = False

    def __init__(self, settings: ParsedConfig, context: Context) -> None:
        """Choose the part to edit: type `X$Key` edits the key, `X` and `X$Value` the value."""
        super().__init__(settings, context)
        is_key = str(settings.values.get("type")).endswith("$Key")
        self._part = RecordPart.KEY if is_key else RecordPart.VALUE
        self._name = ""
        self._predicate: Predicate | None = None
        self._is_negated = False
        self._made: tuple[StructType, ConnectRecord] | None = None
        """The schema of the last batch with its result, as a cache."""

    @abstractmethod
    def edit(self, record: ConnectRecord) -> ConnectRecord:
        """Return the transformed record; raises `ConfigInvalid` if its columns do not fit."""

    def place(self, name: str, predicate: Predicate | None, *, is_negated: bool) -> None:
        """Set its name in the chain, and its predicate; None: it applies to all records."""
        self._name, self._predicate, self._is_negated = name, predicate, is_negated

    def made_of(self, schema: StructType) -> ConnectRecord:
        """Return the transformed record of a schema; raises `ConfigInvalid` with its name."""
        before = ConnectRecord.of(schema)
        try:
            after = self.edit(before)
            if self._predicate is None:
                return after
            condition = self._predicate.condition(before)
            return after.only_if(f"NOT ({condition})" if self._is_negated else condition, before)
        except ConfigInvalid as error:
            raise ConfigInvalid(f"transforms.{self._name}: {error}") from None

    def apply(self, frame: "DataFrame") -> "DataFrame":
        """Return the transformed rows."""
        schema = frame.schema
        if self._made is None or self._made[0] != schema:
            self._made = schema, self.made_of(schema)
        made = self._made[1]
        if made.where:
            frame = frame.where(made.where)
        return frame if made.keeps(schema) else frame.selectExpr(*made.select_list)


class Filter(RecordTransform):
    """Drops the records of its predicate."""

    def edit(self, record: ConnectRecord) -> ConnectRecord:
        """Keep no row."""
        return record.only_where("false")


class TopicNameMatches(Predicate):
    """Matches records whose whole topic matches a regular expression."""

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definition of the pattern."""
        return ConfigDef(
            (
                text_key(
                    "pattern",
                    "A Java regular expression that the whole name of the topic has to match.",
                    required=True,
                    validator=_pattern,
                ),
            )
        )

    def __init__(self, settings: ParsedConfig) -> None:
        super().__init__(settings)
        self._pattern = settings.text("pattern")

    def condition(self, record: ConnectRecord) -> str:
        """Match the topic; a record without one does not."""
        return f"coalesce({whole_match(record.metadata(TOPIC).sql, self._pattern)}, false)"


class HasHeaderKey(Predicate):
    """Matches records with a header of a name."""

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definition of the name."""
        return ConfigDef(
            (
                text_key(
                    "name",
                    "The header's name.",
                    required=True,
                    validator=not_empty,
                ),
            )
        )

    def __init__(self, settings: ParsedConfig) -> None:
        super().__init__(settings)
        self._header = settings.text("name")

    def condition(self, record: ConnectRecord) -> str:
        """Return whether the record has the header; rows without headers have null there."""
        headers = record.metadata(HEADERS).sql
        return f"coalesce(exists({headers}, h -> h.key = {literal(self._header)}), false)"


class RecordIsTombstone(Predicate):
    """Matches records without a value; see `record`."""

    def condition(self, record: ConnectRecord) -> str:
        """Return whether all columns of the value are null."""
        return f"({record.tombstone})" if record.tombstone else "false"


def whole_match(text: str, regex: str) -> str:
    """Return the condition that a Java regular expression matches a whole text."""
    from_end_to_end = rf"\A(?:{regex})\z"
    return f"{text} RLIKE {literal(from_end_to_end)}"


def not_empty(value: Value) -> str | None:
    """Refuse a blank text, as Connect does."""
    return "must not be empty" if value == "" else None


def valid_regex(value: Value) -> str | None:
    """Refuse a regular expression that Python or Java refuses, or that may take for ever.

    Java checks the rest.
    """
    try:
        with warnings.catch_warnings(action="ignore"):
            re.compile(_NAMED_GROUP.sub("P<", _JAVA_ONLY.sub("a", str(value))))
    except re.error as error:
        if error.msg.startswith(_WRONG_ANYWHERE):
            return f"is no regular expression: {error}"
    return flaw_in_backtracking(str(value)) or None


def _pattern(value: Value) -> str | None:
    return not_empty(value) or valid_regex(value)
