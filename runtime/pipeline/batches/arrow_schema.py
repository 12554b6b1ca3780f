"""Schemas of Spark's in Arrow's types, by every release of PySpark that is supported."""

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
"""What has moments be in UTC: they are before PySpark 4.2, which asks for the zone."""


def arrow_schema_of(schema: "StructType") -> ArrowSchema:
    """Return a schema in Arrow's types, moments in UTC."""
    return cast("ArrowSchema", to_arrow_schema(schema, **_UTC))
