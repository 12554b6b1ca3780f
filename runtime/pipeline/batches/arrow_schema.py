"""Spark's schemas in Arrow's types, by each supported release of PySpark."""

from collections.abc import Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, cast

from pyspark.sql.pandas.types import (
    to_arrow_schema,  # pyright: ignore[reportUnknownVariableType]
)

from ..spi.rows import ArrowSchema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_IS_NAMED: Final = "timezone" in signature(cast("Any", to_arrow_schema)).parameters
_UTC: Final[Mapping[str, Any]] = {"timezone": "UTC"} if _IS_NAMED else {}
"""The time zone of timestamps, UTC: PySpark asks for it from 4.2 on, and takes UTC before."""


def arrow_schema_of(schema: "StructType") -> ArrowSchema:
    """Convert a Spark schema to Arrow's types; timestamps with a zone are in UTC."""
    return cast("ArrowSchema", to_arrow_schema(schema, **_UTC))
