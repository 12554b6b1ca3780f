# pyright: basic, reportCallIssue=false, reportOptionalCall=false, reportArgumentType=false
"""The transforms that are built in, a query over the batch or its select list, and their rules.

A query may use its input, and functions of nothing but their arguments: a user who may create a
connector may not, by that, run programs, read files or look around on the node. The setting
`sql.allow` opens what an operator wants to be open, each by its name.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from pyspark.errors import AnalysisException, ParseException

from ...spark.query import SCRIPT, QueryUse, builtin_functions, has_current, use_of
from ..config import ConfigInvalid
from ..spi import Transform

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession

_SETTING: Final = "sql.allow"
LONGEST_QUERY: Final = 100_000
"""Letters of the longest query that is taken: each word of one is looked at."""

_GROUPS: Final[Mapping[str, str]] = {
    "calls any method of Java": "java_method reflect try_reflect",
    "hangs on the clock": (
        "now curdate current_date current_time current_timestamp current_timezone localtime"
        " localtimestamp unix_timestamp()"
    ),
    "is random": "rand randn random randstr uniform uuid shuffle",
    "hangs on how Spark shares out the work": "monotonically_increasing_id spark_partition_id",
    "tells of the node": (
        "current_catalog current_database current_path current_schema current_user"
        " input_file_block_length input_file_block_start input_file_name session_user user version"
    ),
    "reads files that its arguments name": (
        "from_avro from_protobuf from_xml schema_of_avro schema_of_xml to_avro to_protobuf"
    ),
}
ENVIRONMENT: Final = {name: why for why, names in _GROUPS.items() for name in names.split()}
"""Functions whose value is no function of their arguments, each with what is wrong with it."""

_WORDS: Final = """
    current_catalog current_database current_date current_path current_schema current_time
    current_timestamp current_user localtime localtimestamp session_user user
"""
WORDS: Final = frozenset(_WORDS.split())
"""Those that need no parentheses: names of columns, too, where there are such columns."""

_TABLE_FUNCTIONS: Final = """
    explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer range stack
    variant_explode variant_explode_outer
"""
TABLE_FUNCTIONS: Final = frozenset(_TABLE_FUNCTIONS.split())
"""Functions that make rows of their arguments alone."""

_SCRIPT: Final = "ScriptTransformation"

_PLACE: Final = re.compile(r"\(line (\d+), pos (\d+)\)")


class Sql(Transform):
    """A query over the table `input`, which is the batch; it sees no other batch.

    What it may use beside that is looked at before it runs: `allowed` is the setting `sql.allow`.
    No word of a query that holds a secret is told when it is refused: a quote in the secret may
    have made words of its parts.
    """

    def __init__(
        self, query: str, allowed: Collection[str] = (), *, holds_secret: bool = False
    ) -> None:
        self._query = query.strip().rstrip(";")
        self._allowed = allowed
        self._holds_secret = holds_secret
        self._use: QueryUse | None = None
        """What the query uses, once it was checked; each batch would find the same."""

    def apply(self, frame: "DataFrame") -> "DataFrame":
        """Describe the rows that the query makes of the batch; raises `ConfigInvalid`."""
        try:
            return self._made_of(frame)
        except (AnalysisException, ConfigInvalid) as error:
            if not self._holds_secret:
                raise
            raise ConfigInvalid(_refusal(error)) from None

    def _made_of(self, frame: "DataFrame") -> "DataFrame":
        self._use = self._use or self._checked(frame.sparkSession)
        # Views belong to the session, which all tasks share: each batch takes a name of its
        # own, and a common table expression gives it the name that the query knows.
        view = f"fairlead_{uuid4().hex}"
        frame.createOrReplaceTempView(view)
        try:
            made = frame.sparkSession.sql(
                f"WITH input AS (SELECT * FROM {view}) SELECT * FROM (\n{self._query}\n)"  # noqa: S608
            )
        finally:
            frame.sparkSession.catalog.dropTempView(view)
        if words := suspects(self._use, frame.columns, self._allowed):
            plan: JavaObject = made._jdf.queryExecution().analyzed()  # noqa: SLF001
            if has_current(plan, made.sparkSession._jvm):  # noqa: SLF001
                raise ConfigInvalid("; ".join(map(told_function, words)))
        return made

    def _checked(self, spark: "SparkSession") -> QueryUse:
        """Return what the query uses, if that is allowed; nothing is run before."""
        if len(self._query) > LONGEST_QUERY:
            raise ConfigInvalid(f"a query has at most {LONGEST_QUERY} letters")
        state: JavaObject = spark._jsparkSession.sessionState()  # noqa: SLF001
        use = use_of(state.sqlParser().parsePlan(self._query))
        wrong = flaws(use, builtin_functions(spark._jvm), self._allowed)  # noqa: SLF001
        if wrong:
            raise ConfigInvalid("; ".join(wrong))
        return use


def selected(columns: str) -> str:
    """Return the query that keeps a select list's columns: `carrier, dep_delay / 60 AS h`."""
    return f"SELECT {columns} FROM input"  # noqa: S608  # the user's own SQL, on his data


def flaws(use: QueryUse, builtin: Collection[str], allowed: Collection[str]) -> list[str]:
    """Return why a query is refused: nothing if it may run.

    `builtin` are the functions that Spark brings along, `allowed` what the setting opens.
    """
    return [
        *_strange(use, allowed),
        *(_told_table(name) for name in sorted(use.relations) if not _is_open(name, allowed)),
        *_functions(use, builtin, allowed),
        *(
            f"the table function {name} is none of its arguments alone{_way_out(name)}"
            for name in sorted(use.table_functions - TABLE_FUNCTIONS)
            if name not in allowed
        ),
    ]


def suspects(use: QueryUse, columns: Collection[str], allowed: Collection[str]) -> list[str]:
    """Return the words of a query that are functions if its plan asks for the environment.

    `columns` are those of its input. Where a function of that kind is opened, a word that is a
    column is taken for one.
    """
    opened = any(name.removesuffix("()") in allowed for name in use.functions)
    known = {column.lower() for column in columns} if opened else set[str]()
    return sorted((use.words & WORDS) - set(allowed) - known)


def told_function(name: str) -> str:
    """Say why a function of the environment is refused."""
    plain = name.removesuffix("()")
    why = ENVIRONMENT.get(name) or ENVIRONMENT.get(plain)
    if why is None:
        return f"Spark brings along no function {plain}{_way_out(plain)} if the node has it"
    return f"the function {plain} {why}{_way_out(plain)}"


def _refusal(error: AnalysisException | ConfigInvalid) -> str:
    """Tell why a query is refused, without a word of it."""
    told = "its words are not told, since it holds a secret"
    if isinstance(error, ConfigInvalid):
        return f"the query uses what the SQL of a transform may not; {told}"
    place = _PLACE.search(str(error)) if isinstance(error, ParseException) else None
    where = f" at line {place[1]}, position {place[2]}" if place else ""
    return f"Spark refuses the query{where} ({error.getCondition()}); {told}"


def _functions(use: QueryUse, builtin: Collection[str], allowed: Collection[str]) -> Iterator[str]:
    for name in sorted(use.functions):
        plain = name.removesuffix("()")
        is_free = plain in builtin and not {name, plain} & ENVIRONMENT.keys()
        if not is_free and plain not in allowed:
            yield told_function(name)


def _strange(use: QueryUse, allowed: Collection[str]) -> Iterator[str]:
    other = sorted(use.other)
    if _SCRIPT in use.other:
        other = [name for name in other if not name.startswith("Script")]
        if SCRIPT not in allowed:
            yield f"TRANSFORM … USING runs a program{_way_out(SCRIPT)}"
    if other:
        yield f"only a query can be a transform: this holds {', '.join(other)}"


def _is_open(relation: str, allowed: Collection[str]) -> bool:
    """Tell whether a table, or the format or schema in front of its name, is opened."""
    parts = relation.split(".")
    return any(".".join(parts[:count]) in allowed for count in range(1, len(parts) + 1))


def _told_table(name: str) -> str:
    first = name.partition(".")[0]
    return f"{name} is not its input: a transform sees the table input alone{_way_out(first)}"


def _way_out(name: str) -> str:
    return f"; the node's setting {_SETTING}={name} opens it"
