# pyright: basic
"""Our own transforms: expectations are counted in the batch's job, lookups follow their files."""

import csv
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from transforms.conftest import made

from fairlead.events.model import Resource
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.engines.engine import TaskError
from fairlead.runtime.pipeline.spi.config import ConfigInvalid
from fairlead.runtime.pipeline.spi.context import AccessLimits, Context
from fairlead.runtime.pipeline.spi.errors import BadInput, SourceAway
from fairlead.runtime.pipeline.spi.transform import Transform
from fairlead.runtime.pipeline.transforms.catalogue import make_chain

pytestmark = pytest.mark.spark

ORDERS = "SELECT * FROM VALUES ('a', 1), ('b', 0), ('c', NULL) AS t(`na``me`, amount)"
RULES = {"expect.positive": "amount > 0", "expect.named": "`na``me` <> 'c' -- nobody else"}


def rows(engine: Embedded, transform: Transform, query: str = ORDERS) -> list[list[Any]]:
    """Return what a transform makes of the rows of a query, after it saw the job to its end."""

    def job(spark: Any) -> list[list[Any]]:
        found = [list(each) for each in transform.apply(spark.sql(query)).collect()]
        transform.conclude()
        return found

    return engine.run("t", job)


def expecting(keys: dict[str, str], warnings: list[str]) -> Transform:
    config = {"transforms": "x", "transforms.x.type": "expect"}
    config |= {f"transforms.x.{key}": value for key, value in keys.items()}
    (transform,) = make_chain(config, Context(Resource("c", 0), warnings.append))
    return transform


COUNTED = (
    "2 of 3 rows violate positive (amount > 0); "
    "1 of 3 rows violate named (`na``me` <> 'c' -- nobody else)"
)


def test_rows_that_violate_a_rule_end_the_batch_with_a_count(engine: Embedded) -> None:
    with pytest.raises(BadInput) as refused:
        rows(engine, expecting(RULES, []))
    assert str(refused.value) == COUNTED


@pytest.mark.parametrize(
    ("on_violation", "left", "told"),
    [
        ("drop", [["a", 1]], f"{COUNTED}: they were dropped"),
        ("warn", [["a", 1], ["b", 0], ["c", None]], f"{COUNTED}: they were kept"),
    ],
)
def test_rows_that_violate_a_rule_are_told(
    on_violation: str, left: list[object], told: str, engine: Embedded
) -> None:
    warnings: list[str] = []
    transform = expecting(RULES | {"on.violation": on_violation}, warnings)
    assert rows(engine, transform) == left
    assert warnings == [told]
    assert rows(engine, transform, f"{ORDERS} WHERE amount = 1") == [["a", 1]]
    assert rows(engine, transform, f"{ORDERS} WHERE false") == []
    assert warnings == [told]


def test_a_row_of_a_record_becomes_a_dead_letter_with_the_place_of_the_record(
    engine: Embedded,
) -> None:
    transform = expecting({"expect.positive": "n > 0", "on.violation": "dead-letter"}, [])
    query = "SELECT 't' AS _topic, 1 AS _partition, 7L AS _offset, 0 AS n"

    def job(spark: Any) -> list[tuple[Any, ...]]:
        left = transform.apply(spark.sql(query)).collect()
        (rejects,) = transform.rejects()
        return [*left, *map(tuple, rejects.frame.collect())]

    (letter,) = engine.run("t", job)
    raw = '{"_topic":"t","_partition":1,"_offset":7,"n":0}'
    position = {"topic": "t", "partition": "1", "offset": "7"}
    assert letter == (position, "violates positive (n > 0)", raw, "row")


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("reflect('java.lang.System', 'getenv', 'HOME') = ''", "reflect calls any method of Java"),
        ("amount IN (SELECT value FROM text.`/etc/passwd`)", "text./etc/passwd is not its input"),
        ("amount > rand()", "rand is random"),
    ],
)
def test_a_rule_sees_no_more_than_sql_may(rule: str, why: str, engine: Embedded) -> None:
    with pytest.raises(ConfigInvalid, match=why):
        rows(engine, expecting({"expect.a": rule}, []))


@pytest.mark.parametrize(
    ("key", "parsed"),
    [
        ('{"id":7}', "from_json(_key, 'id BIGINT')"),
        (
            '{"schema":{"type":"struct"},"payload":{"id":7}}',
            "from_json(_key, 'payload STRUCT<id: BIGINT>').payload",
        ),
    ],
    ids=["plain", "with its schema"],
)
def test_a_key_in_json_becomes_a_struct_by_a_query(key: str, parsed: str, engine: Embedded) -> None:
    transform = made("sql", {"query": f"SELECT * EXCEPT (_key), {parsed} AS _key FROM input"})
    (row,) = rows(engine, transform, f"SELECT '{key}' AS _key, 'x' AS name")
    assert [row[0], row[1].asDict()] == ["x", {"id": 7}]


def looking_up(path: Path, query: str, form: str = "csv") -> Transform:
    keys = {"query": query, "lookup.Names.path": str(path), "lookup.Names.format": form}
    return made("sql", keys)


QUERY = "SELECT amount, long FROM input LEFT JOIN names ON short = `na``me` ORDER BY 1 NULLS LAST"


def test_a_time_without_a_zone_in_a_table_that_is_looked_up_gets_none(
    engine: Embedded, tmp_path: Path
) -> None:
    kinds = {"at": pa.timestamp("us"), "moment": pa.timestamp("us", "UTC")}
    table: Any = pa.table({name: pa.array([0], kind) for name, kind in kinds.items()})
    pq.write_table(table, tmp_path / "names.parquet")
    query = "SELECT typeof(at), typeof(moment) FROM names"
    transform = looking_up(tmp_path / "names.parquet", query, "parquet")
    assert rows(engine, transform) == [["timestamp_ntz", "timestamp"]]


def test_a_table_that_a_query_looks_up_is_read_again_when_it_changes(
    engine: Embedded, tmp_path: Path
) -> None:
    table = tmp_path / "names.csv"
    table.write_text("short,long\na,Anna\nb,Bruno\n")
    transform = looking_up(table, QUERY)
    assert rows(engine, transform) == [[0, "Bruno"], [1, "Anna"], [None, None]]
    read = transform._lookups["Names"]._held  # type: ignore[attr-defined]
    assert rows(engine, transform) == [[0, "Bruno"], [1, "Anna"], [None, None]]
    assert transform._lookups["Names"]._held is read  # type: ignore[attr-defined]
    (tmp_path / "new").write_text("short,long\nc,Clara\n")
    os.replace(tmp_path / "new", table)  # noqa: PTH105
    assert rows(engine, transform) == [[0, None], [1, None], [None, "Clara"]]
    table.unlink()
    with pytest.raises(SourceAway, match=r"the lookup Names cannot be read: .*names.csv: no such"):
        rows(engine, transform)


def test_a_table_in_csv_has_the_values_that_other_readers_find_in_it(
    engine: Embedded, tmp_path: Path
) -> None:
    values = ['say "hi", you', "C:\\temp\\", "two\nlines"]
    with (tmp_path / "names").open("w", newline="") as table:
        csv.writer(table, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(
            [["short", "long"], *((str(number), text) for number, text in enumerate(values))]
        )
    query = "SELECT long FROM names ORDER BY short"
    assert rows(engine, looking_up(tmp_path / "names", query)) == [[each] for each in values]


def test_blank_lines_of_a_table_are_no_rows(engine: Embedded, tmp_path: Path) -> None:
    (tmp_path / "names").write_text("a,b\n\n1,2\n\n")
    table = looking_up(tmp_path / "names", "SELECT a, b FROM names")
    assert rows(engine, table) == [[1, 2]]


def test_a_table_may_have_a_name_that_is_a_pattern(engine: Embedded, tmp_path: Path) -> None:
    (tmp_path / "[n]{a,b}*").write_text('{"a": 1}\n')
    (tmp_path / "na").write_text('{"a": 2}\n')
    table = looking_up(tmp_path / "[n]{a,b}*", "SELECT a FROM names", "json")
    assert rows(engine, table) == [[1]]


@pytest.mark.parametrize(("form", "text"), [("csv", "a,b\n1,2\n3\n"), ("json", '{"a": 1}\nx\n')])
def test_a_table_with_a_row_that_does_not_parse_is_refused(
    engine: Embedded, tmp_path: Path, form: str, text: str
) -> None:
    (tmp_path / "names").write_text(text)
    with pytest.raises(BadInput, match=r"(Malformed CSV|Unrecognized token)") as told:
        rows(engine, looking_up(tmp_path / "names", "SELECT a FROM names", form))
    assert told.value.is_deferred


def test_a_folder_is_a_table_too(engine: Embedded, tmp_path: Path) -> None:
    folder = tmp_path / "names"
    folder.mkdir()
    (folder / "1.json").write_text('{"short": "a", "long": "Anna"}\n')
    (folder / "_SUCCESS").touch()
    transform = looking_up(folder, QUERY, "json")
    assert rows(engine, transform)[1] == [1, "Anna"]
    (folder / "2.json").write_text('{"short": "b", "long": "Bruno"}\n')
    assert rows(engine, transform)[0] == [0, "Bruno"]


@pytest.mark.parametrize("link", ["2.json", "part=1"])
def test_a_folder_that_is_a_table_leads_nowhere_else(
    link: str, engine: Embedded, tmp_path: Path
) -> None:
    folder, secret = tmp_path / "names", tmp_path / "secret"
    for each in (folder, secret):
        each.mkdir()
        (each / "1.json").write_text('{"short": "a", "long": "Anna"}\n')
    (folder / link).symlink_to(secret / "1.json" if "." in link else secret)
    with pytest.raises(
        BadInput, match=f"the lookup Names cannot be read: .*{link} is a link"
    ) as told:
        rows(engine, looking_up(folder, QUERY, "json"))
    assert told.value.is_deferred, "no row is to blame, and it is looked at again"


@pytest.mark.parametrize("link", ["_y=1.json", "_z=1/w.json", "_z=1", "a/_x=/b=2/_c=3/d.json"])
def test_no_link_of_a_table_is_followed_also_where_spark_alone_would_look(
    link: str, engine: Embedded, tmp_path: Path
) -> None:
    (tmp_path / "secret.json").write_text('{"short": "a", "long": "TopSecret"}\n')
    folder = tmp_path / "names"
    (folder / link).parent.mkdir(parents=True)
    (folder / "1.json").write_text('{"short": "a", "long": "Anna"}\n')
    (folder / link).symlink_to(tmp_path / "secret.json" if "." in link else tmp_path)
    with pytest.raises(BadInput, match=f"the lookup Names cannot be read: .*{link} is a link"):
        rows(engine, looking_up(folder, QUERY, "json"))


def test_what_is_no_plain_file_is_no_part_of_a_table(engine: Embedded, tmp_path: Path) -> None:
    folder = tmp_path / "names"
    folder.mkdir()
    (folder / "1.json").write_text('{"short": "a", "long": "Anna"}\n')
    (folder / "_not-read").symlink_to("/dev/zero")
    table = looking_up(folder, QUERY, "json")
    assert rows(engine, table)[1] == [1, "Anna"]
    os.mkfifo(folder / "2.json")
    other = "is a pipe, a socket or a device, and only plain files are read"
    with pytest.raises(BadInput, match=f"2.json {other}"):
        rows(engine, table)
    for path in (folder / "2.json", Path("/dev/zero")):
        with pytest.raises(BadInput, match=f"{path} {other}"):
            rows(engine, looking_up(path, QUERY, "json"))
    (folder / "2.json").unlink()
    assert rows(engine, table)[1] == [1, "Anna"]


def test_folders_of_a_table_that_are_named_as_partitions_are_its_columns(
    engine: Embedded, tmp_path: Path
) -> None:
    (tmp_path / "names" / "long=Anna").mkdir(parents=True)
    (tmp_path / "names" / "long=Anna" / "1.json").write_text('{"short": "a"}\n')
    (tmp_path / "names" / "_long=not" / "_x").mkdir(parents=True)
    (tmp_path / "names" / "_long=not" / "_x" / "1.json").write_text('{"short": "b"}\n')
    assert rows(engine, looking_up(tmp_path / "names", QUERY, "json"))[:2] == [
        [0, None],
        [1, "Anna"],
    ]


def test_a_table_is_read_only_where_a_connector_may_read_whatever_it_became(
    engine: Embedded, tmp_path: Path
) -> None:
    inside, outside = tmp_path / "in" / "names", tmp_path / "out"
    for folder, name in ((inside, "Anna"), (outside, "TopSecret")):
        folder.mkdir(parents=True)
        (folder / "1.json").write_text(f'{{"short": "a", "long": "{name}"}}\n')
    context = Context(Resource("c", 0), print, reach=AccessLimits(paths=(str(tmp_path / "in"),)))
    keys = {"query": QUERY, "lookup.Names.path": str(inside), "lookup.Names.format": "json"}
    config = {f"transforms.x.{key}": value for key, value in keys.items()}
    (table,) = make_chain({"transforms": "x", "transforms.x.type": "sql", **config}, context)
    assert rows(engine, table)[1] == [1, "Anna"]
    inside.rename(tmp_path / "in" / "old")
    inside.symlink_to(outside)
    with pytest.raises(SourceAway, match=r"is in none of the folders of paths\.allow"):
        rows(engine, table)
    inside.unlink()
    (tmp_path / "in" / "old").rename(inside)
    assert rows(engine, table)[1] == [1, "Anna"]
    (inside / "2.json").hardlink_to(outside / "1.json")
    with pytest.raises(BadInput, match=r"2\.json has another name, which may lie elsewhere"):
        rows(engine, table)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT * FROM others", "others is not its input"),
        ("SELECT * FROM x.names", "x.names is not its input"),
    ],
)
def test_a_query_sees_no_table_but_those(
    query: str, why: str, engine: Embedded, tmp_path: Path
) -> None:
    (tmp_path / "names.csv").write_text("short,long\n")
    with pytest.raises(ConfigInvalid, match=why):
        rows(engine, looking_up(tmp_path / "names.csv", query))


def test_the_columns_of_a_batch_may_differ_from_those_of_the_last(engine: Embedded) -> None:
    transform = made("ReplaceField", {"exclude": "a", "renames": "b:c"})
    assert rows(engine, transform, "SELECT 1 AS a, 2 AS b") == [[2]]
    assert rows(engine, transform, "SELECT 1 AS b, 'x' AS d") == [[1, "x"]]


@pytest.mark.parametrize("made_of", ["'{}'", "reverse('{}')", "upper('{}')"])
def test_what_a_failing_query_shows_is_in_no_log_of_the_jvm(
    engine: Embedded, engine_folder: Path, made_of: str
) -> None:
    secret = "hunter-zwei-4711"
    query = f"SELECT raise_error({made_of.format(secret)}) AS x FROM input"
    with pytest.raises(TaskError):
        rows(engine, made("sql", {"query": query}))
    log = (engine_folder / "logs" / "spark.log").read_text()
    assert not [each for each in (secret, secret[::-1], secret.upper()) if each in log]
