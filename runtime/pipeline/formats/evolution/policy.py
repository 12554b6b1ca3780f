# pyright: basic
"""`source.schema.evolution`: how a source handles input with new columns or wider types."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, cast

from pyspark.errors import ParseException
from pyspark.sql.types import StructType

from .....actors.settings import Value
from ...spi.config import ConfigInvalid, Width
from ...spi.errors import SchemaRefused
from ...spi.keys.kinds import text_key
from .names import find_duplicates
from .rules import Difference, Union, unite_schemas

EVOLUTION: Final = "source.schema.evolution"
FAIL, ADD_COLUMNS, WIDEN, DEAD_LETTER = "fail", "add-columns", "widen", "dead-letter"
_CHOICES: Final = (FAIL, ADD_COLUMNS, WIDEN, DEAD_LETTER)
_GIVEN_BY: Final = "source.schema"
"""The key of the schema that users give."""
_NAMED: Final = 3
"""How many columns a remark lists."""
LEAVE_OUT: Final = ""
"""The default mode if the user gave the schema: ignore other columns, with a remark."""


def _choice(value: Value) -> str | None:
    if value in {*_CHOICES, LEAVE_OUT, None}:
        return None
    return f"must be one of {', '.join(_CHOICES)}"


EVOLUTION_KEY: Final = text_key(
    EVOLUTION,
    "How input with new columns or wider types than the schema is handled. "
    "`fail`: the task fails with an error that names them. `add-columns`: new columns are added. "
    "`widen`: new columns are added and types are widened without loss (INT to BIGINT to DECIMAL, "
    "FLOAT to DOUBLE, DATE to TIMESTAMP). `dead-letter`: such input goes to "
    "errors.deadletterqueue.path. Empty: `fail`; but if the schema is given, other columns "
    "are left out, with a remark in the status.",
    LEAVE_OUT,
    validator=_choice,
    recommended=_CHOICES,
    width=Width.SHORT,
)


class AdmittedSchema(NamedTuple):
    """The schema that some input is read with, and the columns of it that are left out."""

    schema: StructType
    left_out: tuple[str, ...] = ()
    """The names of the other columns."""


@dataclass(frozen=True, slots=True)
class SchemaPolicy:
    """The schema evolution settings of one config."""

    mode: str = LEAVE_OUT
    """The value of the key, or `LEAVE_OUT`."""
    is_exact: bool = False
    """Whether column names are case sensitive."""
    given_by: str = _GIVEN_BY
    """The key that gives the schema."""

    @classmethod
    def of(cls, mode: str, *, is_given: bool, is_exact: bool) -> "SchemaPolicy":
        """Return the policy for a value of the key; `is_given`: the user gave the schema."""
        return cls(mode or (LEAVE_OUT if is_given else FAIL), is_exact)

    @property
    def adds(self) -> bool:
        """Whether new columns are added."""
        return self.mode in {ADD_COLUMNS, WIDEN}

    @property
    def widens(self) -> bool:
        """Whether types are widened."""
        return self.mode == WIDEN

    def admit(
        self, declared: StructType, current: StructType, actual: StructType, where: str
    ) -> AdmittedSchema:
        """Return the schema to read an input of schema `actual` with; raises `SchemaRefused`.

        `current` is `declared` with the changes that this attempt has accepted so far. Refusals
        depend on `declared` alone, so that each attempt of a task decides alike. Incompatible types
        are left to the reader, which sees the values.
        """
        union = _united(current, actual, self.is_exact)
        wide = [each for each in union.differences if each.wider is not None]
        new = [each for each in wide if each.is_new]
        if self.mode == LEAVE_OUT:
            return AdmittedSchema(current, tuple(each.column for each in new))
        beyond = _united(declared, actual, self.is_exact).differences
        refused = [
            each
            for each in beyond
            if each.wider is not None and not (self.adds if each.is_new else self.widens)
        ]
        if refused:
            raise SchemaRefused(self._refusal(refused, where))
        if wide and self.is_exact and (duplicates := find_duplicates(union.schema)):
            known_as, named = duplicates
            raise SchemaRefused(
                f"{where}: column `{named}` differs from `{known_as}` in case only, so both "
                "cannot be columns. Nothing of it was read. To read it, have its producer name it "
                f"alike, or give {self.given_by} without one of them"
            )
        return AdmittedSchema(union.schema if wide else current)

    def remark(self, left_out: Sequence[str], of: str) -> str:
        """Return the status remark for columns that were left out; `of`: `files` or `records`."""
        if not left_out:
            return ""
        return (
            f"{len(left_out)} columns of its {of} are not in {self.given_by}, and left out "
            f"({', '.join(left_out[:_NAMED])}): add them there, or set {EVOLUTION}={ADD_COLUMNS}"
        )

    def _refusal(self, refused: Iterable[Difference], where: str) -> str:
        refused = list(refused)
        new = [str(each) for each in refused if each.is_new]
        wide = [str(each) for each in refused if not each.is_new]
        reasons = [
            *([f"the schema has no column {', '.join(new)}"] if new else ()),
            *([f"too narrow for column {', '.join(wide)}"] if wide else ()),
        ]
        return (
            f"{where}: {'; '.join(reasons)}. Nothing of it was read. To read it, set "
            f"{EVOLUTION}={WIDEN if wide else ADD_COLUMNS}, or add the columns to {self.given_by}"
        )


@lru_cache(256)
def _united(one: StructType, other: StructType, is_exact: bool) -> Union:  # noqa: FBT001
    """Return the union of two schemas; cached, since thousands of files may share a schema."""
    return unite_schemas(one, other, is_exact=is_exact)


@lru_cache(256)
def parse_ddl(ddl: str) -> StructType:
    """Parse a schema in DDL, which needs a JVM."""
    return cast(StructType, StructType.fromDDL(ddl)) if ddl else StructType([])


def parse_given(ddl: str) -> StructType:
    """Parse the schema that a user gives, which needs a JVM.

    Raises `ConfigInvalid` for a wrong one: only workers see what a reference in a config stands
    for. The text does not quote it, since it may be secret.
    """
    try:
        return parse_ddl(ddl)
    except ParseException as error:
        raise ConfigInvalid(
            f"{_GIVEN_BY}: Spark finds no columns in its value ({error.getCondition()}); write each"
            " with its name and type, as in `id BIGINT, name STRING`"
        ) from None
