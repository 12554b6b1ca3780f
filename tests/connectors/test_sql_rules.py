"""SQL of a transform sees its input and nothing else, before it runs and whatever it is hidden in.

The same queries are held against Spark's parser without Spark, as a new config is, and against
a task.
"""

import json
from pathlib import Path

import pyspark
import pytest
from connectors.conftest import Run
from py4j.java_gateway import GatewayClient, GatewayConnection

from fairlead.events.model import Resource, RunState
from fairlead.runtime.pipeline.connectors.spark_pipeline import SparkPipeline
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.engines.queries.query_check import Columns, QueryCheck, QueryRefused
from fairlead.runtime.pipeline.engines.queries.query_rules import flaws, suspects, told_function
from fairlead.runtime.pipeline.spi.config import ConfigInvalid
from fairlead.runtime.pipeline.spi.context import Context
from fairlead_tests.soaks import thinned
from fairlead_tests.tasks.numbers import Reports

pytestmark = pytest.mark.spark

COLUMNS = Columns({"a": "INT", "b": "STRING", "c": "ARRAY<INT>", "user": "STRING"})

IDENTIFIER = "UnresolvedIdentifier" if pyspark.__version__ < "4.2" else "parquet./x is not"
"""What an identifier stands for that a text gives, parsers before 4.2 do not say."""

REFUSED = {
    "SELECT TRANSFORM(a) USING 'sh' AS (x) FROM input": "TRANSFORM … USING runs a program",
    "FROM input MAP a USING 'cat'": "TRANSFORM … USING runs a program",
    "FROM input REDUCE a USING 'cat'": "TRANSFORM … USING runs a program",
    "SELECT a FROM (SELECT TRANSFORM(a) USING 'sh' AS (a) FROM input)": "runs a program",
    "SELECT * FROM parquet.`/x`": "parquet./x is not its input",
    "SELECT * FROM binaryFile.`/run/key`": "binaryfile./run/key is not its input",
    "TABLE csv.`/etc/passwd`": "csv./etc/passwd is not",
    "SELECT * FROM customers": "customers is not its input",
    "WITH x AS (SELECT * FROM text.`/x`) SELECT a FROM input": "text./x is not",
    "SELECT * FROM t, (WITH t AS (SELECT 1) SELECT * FROM t)": "t is not its input",
    "SELECT * FROM input WHERE a IN (SELECT value FROM text.`/x`)": "text./x is not",
    "SELECT (SELECT max(value) FROM text.`/x`) FROM input": "text./x is not",
    "SELECT * FROM input, LATERAL (SELECT reflect('a', 'b'))": "reflect calls any method",
    "SELECT * FROM IDENTIFIER('parquet.`/x`')": IDENTIFIER,
    "SELECT IDENTIFIER('java_method')('a', 'b') FROM input": "ExpressionWithUnresolvedIdentifier",
    "SELECT java_method('java.lang.System', 'getenv', 'HOME')": "java_method calls any method",
    "SELECT system.builtin.Java_Method('a', 'b')": "java_method calls any method",
    "SELECT try_reflect('a', 'b') FROM input": "try_reflect calls any method",
    "SELECT a FROM input WINDOW w AS (PARTITION BY java_method('a', 'b'))": "java_method",
    "SELECT * FROM VALUES (1, java_method('a', 'b')) AS t(a, b)": "java_method",
    "SELECT transform(c, e -> java_method('a', 'b')) FROM input": "java_method",
    "SELECT a FROM input LATERAL VIEW explode(array(uuid())) t AS z": "uuid is random",
    "SELECT a FROM input ORDER BY rand()": "rand is random",
    "SELECT a FROM input TABLESAMPLE (10 PERCENT)": "tablesample is random",
    "FROM input TABLESAMPLE (BUCKET 1 OUT OF 4) REPEATABLE (7)": "tablesample is random",
    "SELECT now() FROM input": "now depends on the clock",
    "SELECT unix_timestamp() FROM input": "unix_timestamp depends on the clock",
    "SELECT current_timestamp FROM input": "current_timestamp depends on the clock",
    "SELECT date_add(current_date, 1) FROM input": "current_date depends on the clock",
    "SELECT current_user FROM input": "current_user reveals details of the node",
    "SELECT session_user() FROM input": "session_user reveals details of the node",
    "SELECT input_file_name() FROM input": "input_file_name reveals details of the node",
    "SELECT from_protobuf(b, 'M', '/etc/x.desc') FROM input": "from_protobuf reads files",
    "SELECT from_xml(b, 'x INT', map('rowValidationXSDPath', '/run/key')) FROM input": "from_xml",
    "SELECT xpath_string(b, 'a') FROM input": "xpath_string reads what a DOCTYPE",
    "SELECT TIMESTAMP 'now' FROM input": "now depends on the clock",
    'SELECT a FROM (SELECT date\t"Today" AS a)': "now depends on the clock",
    "SELECT * FROM sql_keywords()": "the table function sql_keywords",
    "SELECT nofun(a) FROM input": "Spark has no built-in function nofun",
    "SELECT spark_catalog.default.abs(a) FROM input": "function spark_catalog.default.abs",
    "SELECT * FROM input WHERE b RLIKE '(a+)+b'": "the expression (a+)+b takes for ever",
    "SELECT a FROM input WHERE NOT regexp(b, '(\\\\w+)*x')": "takes for ever over long texts",
    "SELECT regexp_replace(b, '(a|a)*c', '') FROM input": "the expression (a|a)*c takes for ever",
    "SELECT * FROM input, LATERAL (SELECT split(b, r'(\\s*)*x'))": "takes for ever",
    "SELECT * FROM input WHERE b RLIKE concat('(a+)', '+b')": "expression of rlike is computed",
    "SELECT regexp_replace(b, b, '') FROM input": "expression of regexp_replace is computed",
    "SET spark.sql.x=y": "SetCommand",
    "ADD JAR /x.jar": "AddJarsCommand",
    "CREATE FUNCTION f AS 'x'": "CreateFunction",
    "USE other": "SetCatalogAndNamespace",
    "CACHE TABLE input": "CacheTable",
    "SHOW TABLES": "ShowTables",
    "DESCRIBE TABLE parquet.`/x`": "DescribeRelation",
    "EXPLAIN SELECT 1": "ExplainCommand",
    "EXECUTE IMMEDIATE 'select 1'": "UnresolvedExecuteImmediate",
    "BEGIN SELECT 1; END": "CompoundBody",
    "DECLARE x INT": "CreateVariable",
    "INSERT OVERWRITE DIRECTORY '/x' USING csv SELECT * FROM input": "InsertIntoDir",
    "FROM input INSERT INTO t SELECT *": "InsertIntoStatement",
    "CREATE TABLE t AS SELECT 1": "CreateTableAsSelect",
    "SELECT * FROM input VERSION AS OF 1": "RelationTimeTravel",
    "SELECT 1) UNION ALL SELECT * FROM (SELECT 1": "Syntax error at or near ')'",
    "SELECT a FROM input; DROP TABLE t": "Syntax error",
    "SELEC a FROM input": "Syntax error",
    "SELECT missing FROM input": "`missing` cannot be resolved",
    "SELECT a FROM input WHERE b > ": "Syntax error",
    "SELECT abs(a, b, 3) FROM input": "abs",
    "SELECT a = true FROM input": "DATATYPE_MISMATCH",
}

ALLOWED = (
    "SELECT a, b || 'x' AS c, a > 1 AS late FROM input",
    "SELECT user, unix_timestamp(b) FROM input",
    "WITH t AS (SELECT * FROM input), u AS (SELECT * FROM t) SELECT * FROM u JOIN t USING (a)",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT * FROM r",
    "SELECT b, count(*) FILTER (WHERE a > 1) FROM input GROUP BY ALL HAVING count(*) > 1 LIMIT 3",
    "SELECT sum(a) OVER w FROM input WINDOW w AS (PARTITION BY b ORDER BY a ROWS BETWEEN"
    " UNBOUNDED PRECEDING AND CURRENT ROW)",
    "SELECT a, z FROM input LATERAL VIEW OUTER explode(c) t AS z",
    "SELECT *, transform(c, e -> e + 1) FROM input, range(3), explode(array(1, 2))",
    "SELECT * EXCEPT (a) FROM input ORDER BY 1 OFFSET 1",
    "SELECT * FROM input PIVOT (sum(a) FOR b IN ('x', 'y'))",
    "SELECT * FROM input UNPIVOT (v FOR k IN (a))",
    "FROM input |> WHERE a > 1 |> AGGREGATE count(*) AS n GROUP BY b",
    "SELECT /*+ COALESCE(1) */ CASE WHEN a = 1 THEN 2 END, b RLIKE 'y', b::INT, c[0],"
    " EXTRACT(YEAR FROM DATE'2020-01-01') FROM input TABLESAMPLE (10 ROWS)",
    "SELECT a FROM input WHERE a IN (SELECT a FROM input) AND EXISTS (SELECT 1)"
    " UNION ALL SELECT 3 EXCEPT SELECT 4",
    "SELECT * FROM input x LEFT ANTI JOIN input y ON x.a = y.a CROSS JOIN (VALUES (1), (2)) z(q)",
    "SELECT from_json(b, 'x INT').x, percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM input"
    " GROUP BY 1",
    "SELECT DISTINCT grouping_id(), a FROM input GROUP BY CUBE(a)",
    "SELECT DATE '2020-01-01', TIMESTAMP 'epoch', 'now' AS today FROM input",
    r"SELECT split(b, ','), regexp_extract(b, '(\\w+\\.)+', 1), b RLIKE r'\d+' 'x' FROM input",
    r"SELECT regexp_replace(b, r'(\s+|,)+', ' '), split(b, r'(\s*;)+') FROM input",
)


def complaint(spark: QueryCheck, query: str, allowed: frozenset[str] = frozenset()) -> str:
    """Return why a query is refused, nothing if it is not."""
    try:
        use = spark.use_of(query)
        wrong = flaws(use, spark.builtin(), allowed)
        if wrong:
            return "; ".join(wrong)
        analysed = spark.analyse(query, COLUMNS)
    except QueryRefused as refused:
        return str(refused)
    words = suspects(use, list(COLUMNS.types), allowed) if analysed.has_current else []
    return "; ".join(map(told_function, words))


@pytest.mark.parametrize("query", thinned(REFUSED, 4))
def test_a_query_that_looks_beyond_its_input_is_refused_before_it_runs(
    spark: QueryCheck, query: str
) -> None:
    assert REFUSED[query] in complaint(spark, query)


@pytest.mark.parametrize("query", thinned(ALLOWED, 4))
def test_a_query_over_its_input_alone_is_taken(spark: QueryCheck, query: str) -> None:
    assert complaint(spark, query) == ""


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("SELECT now(), current_user FROM input", "now"),
        ("SELECT *, current_timestamp FROM input", "current_timestamp"),
        ("SELECT uuid() FROM input", "uuid"),
        ("SELECT unix_timestamp() FROM input", "unix_timestamp"),
    ],
)
def test_the_setting_opens_a_function_by_its_name_and_no_other(
    spark: QueryCheck, query: str, name: str
) -> None:
    refused = complaint(spark, query, frozenset({name}))
    assert name not in refused.split()
    assert ("current_user" in refused) == ("current_user" in query)


def test_the_setting_opens_tables_and_formats_by_their_names(spark: QueryCheck) -> None:
    use = spark.use_of("SELECT * FROM sales.eu.customers JOIN parquet.`/rates`")
    builtin = spark.builtin()
    assert len(flaws(use, builtin, ())) == 2
    assert len(flaws(use, builtin, {"sales"})) == 1
    assert flaws(use, builtin, {"sales.eu.customers", "parquet"}) == []


def test_what_spark_says_names_the_place_in_the_query_as_it_was_written(spark: QueryCheck) -> None:
    told = complaint(spark, "SELECT a,\n  missing FROM input")
    assert told.endswith("line 2 pos 2")
    assert "Did you mean one of the following?" in told


def end_connection(_client: object, connection: GatewayConnection) -> None:
    connection.close()


@pytest.mark.parametrize("is_asked_anew", [False, True])
def test_a_query_is_not_given_what_is_set_on_the_node(
    spark: QueryCheck, monkeypatch: pytest.MonkeyPatch, *, is_asked_anew: bool
) -> None:
    if is_asked_anew:  # each call takes a connection, and so a thread of the JVM, of its own
        monkeypatch.setattr(GatewayClient, "_give_back_connection", end_connection)
    names = ["${system:java.home}", "${spark.sql.ansi.enabled}", "${java.home}"]
    query = f"SELECT {', '.join(f'1 AS `{name}`' for name in names)} FROM input"
    assert list(spark.analyse(query, COLUMNS).columns.types) == names


@pytest.mark.usefixtures("plain_py4j")
def test_settings_that_change_what_a_query_means_count_here_too() -> None:
    lax = QueryCheck({"spark.sql.ansi.enabled": "false"})
    try:
        assert complaint(lax, "SELECT a + c FROM input")
        assert complaint(lax, "SELECT a = true FROM input") == ""
    finally:
        lax.close()


def last_words(reports: Reports) -> str:
    return next(each.reason for each in reports.statuses if each.state is RunState.FAILED)


def test_a_task_refuses_such_a_query_for_good_before_it_runs(
    folders: dict[str, str], run: Run
) -> None:
    file = f"{folders['source.path']}/1.csv"
    with open(file, "w") as data:  # noqa: PTH123
        data.write("a,b\n1,x\n")
    for query, why in (
        ("SELECT TRANSFORM(a) USING 'touch /tmp/no' AS (x) FROM input", "runs a program"),
        (f"SELECT * FROM text.`{file}`", "is not its input"),
        ("SELECT current_user FROM input", "current_user reveals details of the node"),
    ):
        config = folders | {
            "source.format": "csv",
            "sink.format": "json",
            "task.restart.budget": "9",
            "transforms": "t",
            "transforms.t.type": "sql",
            "transforms.t.query": query,
        }
        told = last_words(run(config))
        assert why in told
        assert "restarts in" not in told


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT '{}' FROM input", "Spark refuses the query at line 1, position 13 (PARSE_"),
        ("SELECT {} FROM input", "Spark refuses the query (UNRESOLVED_COLUMN"),
        ("SELECT * FROM {}", "the query uses what the SQL of a transform may not"),
    ],
)
def test_no_word_of_a_secret_in_a_query_is_told_when_it_is_refused(
    query: str, why: str, folders: dict[str, str], engine: Embedded
) -> None:
    secret = "k' v r" if "'" in query else "kings castle"
    config = folders | {
        "source.format": "csv",
        "sink.format": "json",
        "task.schema": "a INT",
        "transforms": "t",
        "transforms.t.type": "sql",
        "transforms.t.query": query.format(secret),
    }
    context = Context(Resource("c", 0), print, hide=lambda text: text.replace(secret, "${env:S}"))
    (transform,) = SparkPipeline().pipeline(context, config).transforms
    with pytest.raises(ConfigInvalid) as refused:
        engine.run("t", lambda spark: transform.apply(spark.sql("SELECT 1 AS a")))
    told = str(refused.value)
    assert told.startswith(why)
    assert told.endswith("; its words are not told, since it holds a secret")


def test_a_task_reads_a_query_as_it_is_written(folders: dict[str, str], run: Run) -> None:
    with open(f"{folders['source.path']}/1.csv", "w") as data:  # noqa: PTH123
        data.write("a\n1\n")
    config = folders | {
        "source.format": "csv",
        "sink.format": "json",
        "transforms": "t",
        "transforms.t.type": "sql",
        "transforms.t.query": "SELECT '${system:java.home} ${spark.app.name}' AS b FROM input",
    }
    run(config)
    (made,) = Path(folders["sink.path"]).glob("*.json")
    assert json.loads(made.read_text()) == {"b": "${system:java.home} ${spark.app.name}"}
