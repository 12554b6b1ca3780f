# pyright: basic
"""`source.schema.evolution`: what a source does with input that has more than its schema says."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, cast

from pyspark.sql.types import StructType

from .....actors.settings import Value
from ...spi.config import Width
from ...spi.errors import SchemaRefused
from ...spi.key_kinds import text_key
from .rules import Difference, Union, united

EVOLUTION: Final = "source.schema.evolution"
FAIL, ADD_COLUMNS, WIDEN, DEAD_LETTER = "fail", "add-columns", "widen", "dead-letter"
_CHOICES: Final = (FAIL, ADD_COLUMNS, WIDEN, DEAD_LETTER)
_NAMED: Final = 3
"""How many columns a remark names."""
LEAVE_OUT: Final = ""
"""What is done unless anything is said, where the user gave the schema."""


def _choice(value: Value) -> str | None:
    if value in {*_CHOICES, LEAVE_OUT, None}:
        return None
    return f"must be one of {', '.join(_CHOICES)}"


EVOLUTION_KEY: Final = text_key(
    EVOLUTION,
    "What happens to input with columns that the schema has not, or with types that are wider: "
    "`fail` ends the task with an error that names them; `add-columns` goes on with the columns; "
    "`widen` with the columns and the types, where no value is lost (INT to BIGINT to DECIMAL, "
    "FLOAT to DOUBLE, DATE to TIMESTAMP); `dead-letter` goes on without that input, and keeps it "
    "in errors.deadletterqueue.path. Empty: `fail`; where the schema is given, columns that it "
    "does not name are left out, and told in status.",
    LEAVE_OUT,
    validator=_choice,
    recommended=_CHOICES,
    width=Width.SHORT,
)


class Admitted(NamedTuple):
    """The schema that some input is read with, and the columns of it that are left out."""

    schema: StructType
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SchemaPolicy:
    """What one config says of changes of the schema."""

    mode: str = LEAVE_OUT
    is_exact: bool = False
    """Whether names that differ in upper and lower case are those of different columns."""
    given_by: str = "source.schema"
    """The key that gives the schema."""

    @classmethod
    def of(cls, mode: str, *, is_given: bool, is_exact: bool) -> "SchemaPolicy":
        """Return what a value of the key means; `is_given`: the user gave the schema."""
        return cls(mode or (LEAVE_OUT if is_given else FAIL), is_exact)

    @property
    def adds(self) -> bool:
        """Whether columns are added."""
        return self.mode in {ADD_COLUMNS, WIDEN}

    @property
    def widens(self) -> bool:
        """Whether types are widened."""
        return self.mode == WIDEN

    def admit(
        self, declared: StructType, known: StructType, found: StructType, where: str
    ) -> Admitted:
        """Return the schema to read some input with; raises `SchemaRefused`.

        What is refused is a matter of the declared schema alone, and not of what was taken in
        since: another attempt, which has forgotten that, decides the same. Types that nothing spans
        are left to the reader, which knows the values.
        """
        union = _united(known, found, self.is_exact)
        wide = [each for each in union.differences if each.wider is not None]
        new = [each for each in wide if each.is_new]
        if self.mode == LEAVE_OUT:
            return Admitted(known, tuple(each.column for each in new))
        beyond = _united(declared, found, self.is_exact).differences
        refused = [
            each
            for each in beyond
            if each.wider is not None and not (self.adds if each.is_new else self.widens)
        ]
        if refused:
            raise SchemaRefused(self._refusal(refused, where))
        return Admitted(union.schema if wide else known)

    def remark(self, left_out: Sequence[str], of: str) -> str:
        """Return what is told of columns that were left out; `of` names what has them."""
        if not left_out:
            return ""
        return (
            f"{len(left_out)} columns of its {of} are not in {self.given_by}, and left out "
            f"({', '.join(left_out[:_NAMED])}): name them there, or set {EVOLUTION}={ADD_COLUMNS}"
        )

    def _refusal(self, refused: Iterable[Difference], where: str) -> str:
        refused = list(refused)
        new = [str(each) for each in refused if each.is_new]
        wide = [str(each) for each in refused if not each.is_new]
        told = [
            *([f"the schema has no column {', '.join(new)}"] if new else ()),
            *([f"too narrow for column {', '.join(wide)}"] if wide else ()),
        ]
        return (
            f"{where}: {'; '.join(told)}. Nothing of it was read. To take it in, set "
            f"{EVOLUTION}={WIDEN if wide else ADD_COLUMNS}, or give the columns in {self.given_by}"
        )


@lru_cache(256)
def _united(known: StructType, found: StructType, is_exact: bool) -> Union:  # noqa: FBT001
    """Return the union of two schemas; a batch may have thousands of files that are alike."""
    return united(known, found, is_exact=is_exact)


@lru_cache(256)
def struct_of(ddl: str) -> StructType:
    """Return a schema of its DDL, which a JVM reads."""
    if not ddl:
        return StructType([])
    return cast(StructType, StructType.fromDDL(ddl))
