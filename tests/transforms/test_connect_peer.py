# pyright: basic
"""Each of Connect's transforms beside the real class, value by value, over nasty values.

Where a record makes the real class fail, ours ends the job, or refuses the columns before. What
differs on purpose is told, with its reason, by the docstrings of the transforms' modules; the tests
at the end hold it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from transforms.conftest import made

from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.spi.config import ConfigInvalid
from fairlead_tests.soaks import thinned
from fairlead_tests.transforms.peer import TransformPeer
from fairlead_tests.transforms.rows import Record, Rows, Type, normal, told

pytestmark = pytest.mark.spark

MOST_FAILURES = 1
"""Of how many records of a case, on which the real class fails, ours is asked one by one."""

INTERPRETER = "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation"
"""The rule by which rows that a plan brings along are evaluated without compiled code."""

INNER: Type = {"struct": [["x.y", "int"], ["deep", {"struct": [["é", "string"]]}]]}
WIDE: Type = {
    "struct": [
        ["i8", "tinyint"],
        ["i16", "smallint"],
        ["i32", "int"],
        ["i64", "bigint"],
        ["f32", "float"],
        ["f64", "double"],
        ["flag", "boolean"],
        ["text", "string"],
        ["raw", "binary"],
        ["money", {"decimal": [20, 4]}],
        ["tiny", {"decimal": [30, 12]}],
        ["day", "date"],
        ["at", "timestamp"],
        ["list", {"array": "string"}],
        ["inner", INNER],
    ]
}
NOTHING = [None] * 15
USUAL = [
    *("1", "2", "3", "4", "1.5", "2.5", "true", "text", "AAE=", "12.3400", "0.000000000001"),
    *("18262", "1577934245006", ["a", None, ""], ["7", ["ü"]]),
]
NASTY = [
    *("-128", "-32768", "-2147483648", "-9223372036854775808", "-3.4e38", "NaN", "false"),
    *("'; DROP -- \\ ` ${x} \u2028\U0001f600", "", "-9999999999999999.9999", "-0.000000000001"),
    *("-719162", "-62135596800000", [], [None, None]),
]
LARGE = [
    *("127", "32767", "2147483647", "9223372036854775807", "Infinity", "-Infinity", "true"),
    *("", "/////w==", "9999999999999999.9999", "123456789012345678.000000000001"),
    *("2932896", "253402300799999", [""], [None, [""]]),
]
BEFORE_1970 = [
    *("-1", "-1", "-1", "-1", "-0.0", "-0.5", "false", " ", "AA==", "-0.9999", "0.000000000000"),
    *("-1", "-1", ["x"], ["-1", [None]]),
]
ALL = Rows([Record(each) for each in (USUAL, NASTY, LARGE, BEFORE_1970, NOTHING)], WIDE)
KEYED = Rows(
    [
        Record(USUAL, ["1", ["a"]], headers=[("h", "1"), ("h", "2"), ("g", None)]),
        Record(NASTY, [None, None], topic="x-orders"),
        Record(BEFORE_1970, None, headers=[("g", "ü")], timestamp="-1"),
    ],
    WIDE,
    INNER,
)
TOMBSTONE = replace(KEYED, records=[*KEYED.records, Record(None, ["9", None])])


def column(kind: Type, *values: str | None) -> Rows:
    """Return records with one field `v`."""
    return Rows([Record([each]) for each in values], {"struct": [["v", kind]]})


@dataclass(frozen=True)
class Case:
    """A class with its keys, and the records that it is asked about."""

    name: str
    keys: dict[str, str]
    rows: Rows
    refused_at_once: tuple[int, ...] = ()
    """Records of nulls that the real class takes: ours refuses such columns before any row."""
    takes_all: bool = False
    """Whether the real class fails on no record."""
    is_soak: bool = False
    """Whether other cases take the same ways through our code, with other values."""

    def __str__(self) -> str:
        return " ".join([self.name, *(f"{k}={v}" for k, v in self.keys.items())])


INTS = ("int8", "int16", "int32", "int64")
TARGETS = (*INTS, "float32", "float64", "boolean", "string")
TEXTS = (
    *("0", "7", "-7", "+7", "127", "128", "-129", "32768", "2147483648", "9223372036854775808"),
    *("", " ", " 7", "7 ", "1.5", "1e3", "NaN", "nan", "Infinity", "-Infinity", "inf", "+NaN"),
    *("1d", "1.5f", "0x1p3", ".5", "5.", "1_000", "true", "TRUE", "tRue ", "yes", "1\n", "ü"),
    *("1e400", "-1e-400", "00012", "--1", "1e", "99999999999999999999999999"),
)
DOUBLES = (
    *("0.5", "-0.5", "127.9", "128.0", "-129.5", "2147483647.5", "1e10", "9.3e18", "-9.3e18"),
    *("NaN", "Infinity", "-Infinity", "-0.0", "1e-320", "1.7976931348623157e308", "1e7", "1e-3"),
    *("9.999e-4", "0.1", "123456789.125", "1.0"),
)
LONGS = ("0", "127", "128", "-129", "65535", "4294967296", "-4294967297", "9223372036854775807")
DECIMALS = (
    *("0", "0.5", "-0.5", "-1.5", "255.9999", "9999999999999999.9999", "0.0001", "1e-4"),
    *("9223372036854.7758", "-128.0001"),
)
SMALLS = ("0", "0.000001", "0.000000999999", "-0.000000000012", "1.000000000001", "100")
TIMES = (
    *("0", "1", "-1", "86399999", "86400000", "86400001", "-86400000", "1577934245006"),
    *("951782400000", "-12219292799999", "253402300799999", "1583020799999", "172800000"),
)
DAYS = ("0", "1", "-1", "2", "11016", "-141427", "2932896", "18321")


NUMBERS_OF: tuple[tuple[Type, Sequence[str]], ...] = (
    ("double", DOUBLES),
    ("float", DOUBLES),
    ("bigint", LONGS),
    ({"decimal": [20, 4]}, DECIMALS),
    ({"decimal": [30, 12]}, SMALLS),
    ("timestamp", TIMES),
    ("date", DAYS),
)


def cast_at_once(kind: Type, values: Sequence[str], *targets: str) -> Case:
    """Return the casts of a value to several types, each in a field of its own."""
    fields = [[target, kind] for target in targets]
    rows = Rows([Record([each] * len(targets)) for each in (None, *values)], {"struct": fields})
    return Case("Cast$Value", {"spec": ",".join(f"{each}:{each}" for each in targets)}, rows)


def casts() -> Iterator[Case]:
    for kind, values in NUMBERS_OF:
        yield replace(cast_at_once(kind, values, *TARGETS), takes_all=True)
    yield replace(cast_at_once("string", TEXTS, "boolean", "string"), takes_all=True)
    yield cast_at_once("string", TEXTS, "float32", "float64")
    for target in INTS:
        yield replace(cast_at_once("string", TEXTS, target), is_soak=target in ("int16", "int32"))
    for target in ("int8", "string"):
        spec = ",".join(f"{name}:{target}" for name in ("i8", "i16", "i32", "flag", "none"))
        yield Case("Cast$Value", {"spec": spec}, ALL)
    yield Case("Cast$Value", {"spec": "raw:string,money:string, at : string"}, ALL)
    yield Case("Cast$Value", {"spec": "raw:int8"}, ALL, refused_at_once=(4,))
    yield Case("Cast$Value", {"spec": "list:string"}, ALL, refused_at_once=(4,))
    yield Case("Cast$Key", {"spec": "x.y:string"}, KEYED)
    yield Case("Cast$Value", {"spec": "int8"}, Rows([Record("300"), Record(None)], "int"))
    keys = Rows(
        [Record(["1"], "3000000000"), Record(["2"], None)], {"struct": [["v", "int"]]}, "bigint"
    )
    yield Case("Cast$Key", {"spec": "int32"}, keys)


FORMATS = (
    *("yyyy-MM-dd HH:mm:ss", "yyyy-MM-dd'T'HH:mm:ss.SSSX", "yyyyMMddHHmmssSSS", "d.M.yy h:mm a"),
    *("EEE, dd MMM yyyy HH:mm:ss Z", "EEEE d MMMM y G", "D/y k:m:s.S K", "'o''clock' HH z zzzz"),
    *("u F L LLL XXX XX", "H"),
)
SPELLED = {
    "yyyy-MM-dd HH:mm:ss": (
        *("2020-01-02 03:04:05", "1969-12-31 23:59:59", "2020-1-2 3:4:5", "2020-13-32 25:61:61"),
        *(
            "2020-01-02 03:04:05 and more",
            "2020-01-02",
            "",
            " 2020-01-02 03:04:05",
            "1820-01-02 0:0:0",
        ),
        *("2020-02-30 00:00:00", "2020-00-00 00:00:00", "9999-12-31 23:59:59", "x"),
    ),
    "yyyyMMddHHmmssSSS": ("20200102030405006", "2020010203040500", "20201332256161999"),
    "yyyy-MM-dd'T'HH:mm:ss.SSSX": (
        *("2020-01-02T03:04:05.006Z", "2020-01-02T03:04:05.6Z", "2020-01-02T03:04:05.006+02"),
        *("2020-01-02T03:04:05.123456Z", "2020-01-02T03:04:05.006", "2020-01-02t03:04:05.006Z"),
    ),
    "yyyy-MM-dd HH:mm:ss Z": (
        *("2020-01-02 03:04:05 +0230", "2020-01-02 03:04:05 -0230", "2020-01-02 03:04:05 GMT"),
        *("2020-01-02 03:04:05 GMT+02:30", "2020-01-02 03:04:05 UTC", "2020-01-02 03:04:05 z"),
    ),
    "yyyy-MM-dd XXX": ("2020-01-02 +02:30", "2020-01-02 Z", "2020-01-02 +0230"),
    "EEE, dd MMM yyyy": (
        "Thu, 02 Jan 2020",
        "THU, 2 january 2020",
        "Fri, 02 Mai 2020",
        "Xyz, 1 Jan 2020",
    ),
    "d.M.yy h:mm a": (
        "2.1.20 12:04 AM",
        "2.1.70 12:04 pm",
        "2.1.1820 1:04 PM",
        "2.1.1905 13:00 AM",
    ),
    "D yyyy k": ("60 2020 24", "366 2019 1"),
    "H:mm": ("3:04", "03:4", "-3:04"),
}


def converters() -> Iterator[Case]:
    name = "TimestampConverter$Value"
    for pattern in (" | ".join(FORMATS), *FORMATS):
        keys = {"field": "v", "target.type": "string", "format": pattern}
        times = [each for each in TIMES if not each.startswith("-122")]
        rows = column("timestamp", None, *times)
        yield Case(name, keys, rows, is_soak=pattern in FORMATS)
    for pattern, texts in SPELLED.items():
        keys = {"field": "v", "target.type": "Timestamp", "format": pattern}
        is_soak = pattern in ("yyyy-MM-dd XXX", "H:mm")
        yield Case(name, keys, column("string", None, *texts), is_soak=is_soak)
    precisions = ("seconds", "milliseconds", "microseconds", "nanoseconds")
    longs = ("0", "-1", "999", "-999", "1001", "1577934245", "-1577934245006", "1577934245006007")
    most = ("9223372036854775807", "-9223372036854775808")
    targets = ("Date", "Time", "Timestamp", "string")
    one_each = {*zip(targets, precisions, strict=True), *product(["unix"], precisions)}
    for target, precision in product((*targets, "unix"), precisions):
        keys = {"field": "v", "target.type": target, "unix.precision": precision}
        keys |= {"format": "yyyy-MM-dd HH:mm:ss.SSS"} if target == "string" else {}
        is_far = precision in ("seconds", "milliseconds")
        fitting = [each for each in longs if not (is_far and len(each) > 12)]
        rows = column("bigint", None, *fitting, *(most if target == "unix" else ()))
        yield Case(name, keys, rows, is_soak=(target, precision) not in one_each)
        if target != "string":
            # Of what is no number, the precision counts for what becomes one.
            is_soak = precision != "milliseconds"
            yield Case(name, keys, column("date", None, *DAYS), is_soak=is_soak)
            is_soak = is_soak and target != "unix"
            yield Case(name, keys, column("timestamp", None, *TIMES), is_soak=is_soak)
    for kind, value in (("int", "5"), ("double", "1.5"), ("string", "2020")):
        yield Case(name, {"field": "v", "target.type": "Date"}, column(kind, value))
    yield Case(name, {"field": "none", "target.type": "Date"}, ALL)
    yield Case(name, {"target.type": "unix"}, Rows([Record("18262"), Record(None)], "date"))
    stamps = Rows(
        [Record(["1"], "-1"), Record(["2"], None)], {"struct": [["v", "int"]]}, "timestamp"
    )
    yield Case("TimestampConverter$Key", {"target.type": "Date"}, stamps)


MAP: Type = {"struct": [["m", {"map": ["string", "int"]}], ["v", "int"]]}
MAPS = Rows(
    [Record([[["a", "1"], ["b", None]], "1"]), Record([None, None]), Record([[], "2"])], MAP
)
NESTED: Type = {
    "struct": [
        ["a", {"struct": [["b", {"struct": [["c", "int"]]}], ["b.c", "int"]]}],
        ["a.b", INNER],
    ]
}
NESTS = Rows(
    [
        Record([[["1"], "2"], ["3", ["x"]]]),
        Record([[None, None], None]),
        Record([None, ["4", None]]),
    ],
    NESTED,
)
OTHERS = [
    Case("InsertField$Value", {"static.field": "s", "static.value": "it's \\ ${x}"}, ALL),
    Case("InsertField$Value", {"static.field": "s", "static.value": ""}, TOMBSTONE),
    Case(
        "InsertField$Value",
        {
            "topic.field": "tp",
            "partition.field": "pt?",
            "offset.field": "of!",
            "timestamp.field": "ts",
        },
        TOMBSTONE,
    ),
    Case("InsertField$Key", {"topic.field": "tp", "timestamp.field": "at!"}, KEYED),
    Case("InsertField$Value", {"static.field": "i8", "static.value": "x"}, ALL),
    Case("ReplaceField$Value", {"exclude": "i8,text,none", "renames": "i16:i8,inner:a b"}, ALL),
    Case("ReplaceField$Value", {"include": "text,at,raw", "exclude": "raw"}, ALL),
    Case("ReplaceField$Value", {"include": "i8,i16", "renames": "i8:i16,i16:i8"}, ALL),
    Case("ReplaceField$Value", {"renames": "i8:i16"}, ALL),
    Case("ReplaceField$Value", {"renames": "i8"}, ALL),
    Case("ReplaceField$Key", {"renames": "x.y:`é`"}, KEYED),
    Case("ReplaceField$Value", {"include": "text"}, TOMBSTONE),
    Case("MaskField$Value", {"fields": "i8,i16,i32,i64,f32,f64,flag,text,money,day,at,list"}, ALL),
    Case("MaskField$Value", {"fields": "raw"}, replace(ALL, records=[Record(USUAL)])),
    Case("MaskField$Value", {"fields": "inner"}, replace(ALL, records=[Record(USUAL)])),
    Case("MaskField$Value", {"fields": "m"}, MAPS),
    *(
        Case(
            "MaskField$Value",
            {"fields": "i8,i16,i32,i64,f32,f64,text", "replacement": each},
            ALL,
            is_soak=each in ("300", "+7"),
        )
        for each in (
            "300",
            "-1e3",
            "12.75",
            "99999999999999999999",
            "+7",
            "1e400",
            " 1",
        )
    ),
    *(
        Case(
            "MaskField$Value",
            {"fields": "i8,i16,i32,i64,f32,f64,text", "replacement": each},
            ALL,
            refused_at_once=(4,),
        )
        for each in ("x", "NaN")
    ),
    Case("MaskField$Value", {"fields": "money", "replacement": "1.2500"}, ALL),
    *(
        Case(
            "MaskField$Value",
            {"fields": name, "replacement": "1"},
            replace(ALL, records=[Record(USUAL)]),
        )
        for name in ("flag", "day", "at", "list", "raw")
    ),
    Case("MaskField$Key", {"fields": "x.y"}, KEYED),
    Case("ValueToKey", {"fields": "inner,text"}, ALL),
    Case("ValueToKey", {"fields": "i8,none"}, ALL),
    Case("ValueToKey", {"fields": "i64"}, TOMBSTONE),
    Case("ExtractField$Value", {"field": "inner"}, ALL),
    Case("ExtractField$Value", {"field": "text"}, TOMBSTONE),
    Case("ExtractField$Value", {"field": "list"}, ALL),
    Case("ExtractField$Value", {"field": "none"}, ALL),
    Case("ExtractField$Key", {"field": "x.y"}, KEYED),
    Case("ExtractField$Key", {"field": "deep"}, KEYED),
    *(
        Case(
            "ExtractField$Value",
            {"field": each, "field.syntax.version": "V2"},
            NESTS,
            is_soak=each in ("a", "`a.b`.`x.y`"),
        )
        for each in (
            "a.b.c",
            "a.`b.c`",
            "`a.b`.`x.y`",
            "`a.b`.deep.é",
            "a",
            "a.x",
            "`a",
            "a.",
            "`a.b",
        )
    ),
    Case("ExtractField$Value", {"field": "a.b", "field.syntax.version": "v1"}, NESTS),
    Case("HoistField$Value", {"field": "all of `it`"}, ALL),
    Case("HoistField$Key", {"field": "k"}, KEYED),
    Case("HoistField$Value", {"field": "v"}, Rows([Record("5"), Record(None)], "int")),
    Case("Flatten$Value", {}, ALL),
    Case("Flatten$Value", {"delimiter": "_"}, NESTS),
    Case("Flatten$Value", {}, NESTS),
    Case("Flatten$Value", {"delimiter": ""}, ALL),
    Case("Flatten$Value", {}, MAPS),
    Case("Flatten$Key", {}, KEYED),
    Case("Flatten$Value", {}, TOMBSTONE),
    Case("SetSchemaMetadata$Value", {"schema.name": "x", "schema.version": "2"}, ALL),
    Case("TimestampRouter", {}, KEYED),
    Case(
        "TimestampRouter",
        {"topic.format": "${timestamp}${topic}$1${x}", "timestamp.format": "yyyy-'w'DD HH"},
        KEYED,
    ),
    Case("TimestampRouter", {}, Rows([Record(["1"], timestamp=None)], {"struct": [["v", "int"]]})),
    *(
        Case(
            "RegexRouter",
            {"regex": regex, "replacement": replacement},
            KEYED,
            is_soak=regex in ("t", "X-.*", "x-ORDERS") and replacement in ("", "n"),
        )
        for regex, replacement in (
            ("(.*)-(.*)", "$2_$1"),
            ("x|x-.*", "[$0]"),
            (".*", "a"),
            ("t", ""),
            ("(?<a>x)-(?<b>.*)", "${b}"),
            ("x-(orders)", "\\$1\\\\"),
            ("X-.*", "n"),
            ("(?i)X-.*", "n"),
            ("t", "$9"),
            ("x-ORDERS", "n"),
        )
    ),
    Case("RegexRouter", {"regex": "(", "replacement": "a"}, KEYED),
    Case("Filter", {}, ALL),
    Case("DropHeaders", {"headers": "h,none"}, KEYED),
    Case("InsertHeader", {"header": "n", "value.literal": "it's"}, KEYED),
    Case("HeaderFrom$Value", {"fields": "text,i8", "headers": "a,h", "operation": "move"}, KEYED),
    Case(
        "HeaderFrom$Value",
        {
            "fields": "money,flag,f64,raw,at,day,tiny",
            "headers": "a,b,c,d,e,f,g",
            "operation": "copy",
        },
        ALL,
    ),
    Case("HeaderFrom$Key", {"fields": "x.y", "headers": "k", "operation": "move"}, KEYED),
    Case("HeaderFrom$Value", {"fields": "none", "headers": "k", "operation": "move"}, KEYED),
    Case("HeaderFrom$Value", {"fields": "i8", "headers": "k,l", "operation": "move"}, KEYED),
]
CASES = [*OTHERS, *casts(), *converters()]


@pytest.fixture
def spark(engine: Embedded) -> SparkSession:
    """A session in a zone whose clocks jump at midnight: no transform may care."""
    session = engine.run("zone", lambda session: session.newSession())
    session.conf.set("spark.sql.session.timeZone", "America/Sao_Paulo")
    session.conf.set("spark.sql.leafNodeDefaultParallelism", "1")
    return session


def parameters() -> list[object]:
    """Return each case as Spark evaluates it and compiled; a run compiles one of each class.

    Of the two classes with most cases it has one in three.
    """
    met = Counter[str]()
    found: list[object] = []
    for case in CASES:
        kind = case.name.partition("$")[0]
        is_left_out = kind in ("Cast", "TimestampConverter") and met[kind] % 3 > 0
        for is_compiled in (False, True):
            is_soak = kind in met if is_compiled else case.is_soak or is_left_out
            marks = [pytest.mark.soak] if is_soak else []
            told = f"{case} compiled" if is_compiled else str(case)
            found.append(pytest.param(case, is_compiled, marks=marks, id=told))
        met[kind] += 1
    return found


@pytest.mark.parametrize(("case", "is_compiled"), parameters())
def test_a_transform_makes_what_connects_own_class_makes(
    case: Case, *, is_compiled: bool, peer: TransformPeer, spark: SparkSession
) -> None:
    if is_compiled:  # else Spark evaluates the few rows itself, as it does those of small batches
        spark.conf.set("spark.sql.optimizer.excludedRules", INTERPRETER)
    theirs = peer.apply(case.name, case.keys, case.rows)
    failing = [n for n, each in enumerate(theirs) if each and "error" in each]
    assert not (failing and case.takes_all)
    failing += case.refused_at_once
    fine = [n for n in range(len(theirs)) if n not in failing]
    if fine:
        expected = [normal(theirs[n]) for n in fine if theirs[n] is not None]
        assert ours(case, fine, spark) == expected
    for n in failing[:MOST_FAILURES]:
        with pytest.raises((ConfigInvalid, PySparkException)):
            ours(case, [n], spark)


def ours(case: Case, chosen: Sequence[int], spark: SparkSession) -> list[object]:
    rows = replace(case.rows, records=[case.rows.records[n] for n in chosen])
    return list(told(made(case.name, case.keys).apply(rows.frame(spark))))


PREDICATES = [
    ("TopicNameMatches", {"pattern": "x-.*"}),
    ("TopicNameMatches", {"pattern": "t|x"}),
    ("HasHeaderKey", {"name": "h"}),
    ("HasHeaderKey", {"name": "none"}),
    ("RecordIsTombstone", {}),
]


@pytest.mark.parametrize(("name", "keys"), PREDICATES, ids=str)
@pytest.mark.parametrize("negate", thinned(["false", "true"], 2))
def test_a_predicate_holds_where_connects_own_does(
    name: str, keys: dict[str, str], negate: str, peer: TransformPeer, spark: SparkSession
) -> None:
    theirs = peer.apply(f"predicates.{name}", keys, TOMBSTONE)
    others = {"predicates": "p", "predicates.p.type": name}
    others |= {f"predicates.p.{key}": value for key, value in keys.items()}
    drop = made("Filter", {"predicate": "p", "negate": negate}, **others)
    left = drop.apply(TOMBSTONE.frame(spark))
    kept = [each is not None and each["holds"] is (negate == "true") for each in theirs]
    assert left.count() == sum(kept)


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("MaskField$Value", {"fields": "i8"}),
        ("HeaderFrom$Value", {"fields": "i8", "headers": "h", "operation": "move"}),
    ],
)
def test_a_tombstone_passes_though_connects_own_class_refuses_it(
    name: str, keys: dict[str, str], peer: TransformPeer, spark: SparkSession
) -> None:
    (_, _, _, theirs) = peer.apply(name, keys, TOMBSTONE)
    assert theirs is not None
    assert "found: null" in theirs["error"]
    (told_of,) = ours(Case(name, keys, TOMBSTONE), [3], spark)
    assert isinstance(told_of, dict)
    assert (told_of["key"] is None, told_of["value"]) == (False, None)


ERROR = {"error"}


@pytest.mark.parametrize(
    ("case", "theirs_say", "ours_say"),
    [
        (  # a new name for a field that is not there, and a field that has it already
            Case("ReplaceField$Value", {"renames": "none:i8", "include": "i8"}, ALL),
            ERROR,
            {"struct": [["i8", {"tinyint": "1"}]]},
        ),
        (  # digits of other scripts
            Case("Cast$Value", {"spec": "v:int8"}, column("string", "\u0663")),
            {"struct": [["v", {"tinyint": "3"}]]},
            ERROR,
        ),
        (  # Java's calendar is Julian before 1582
            Case(
                "TimestampConverter$Value",
                {"field": "v", "target.type": "string", "format": "yyyy-MM-dd"},
                column("timestamp", "-12219379200000"),
            ),
            {"struct": [["v", {"string": "1582-10-04"}]]},
            {"struct": [["v", {"string": "1582-10-14"}]]},
        ),
    ],
)
def test_what_differs_from_connects_own_class_is_as_the_modules_tell(
    case: Case, theirs_say: object, ours_say: object, peer: TransformPeer, spark: SparkSession
) -> None:
    theirs = peer.apply(case.name, case.keys, case.rows)[0] or {}
    assert (set(theirs) if theirs_say == ERROR else normal(theirs["value"])) == theirs_say
    if ours_say == ERROR:
        with pytest.raises(PySparkException):
            ours(case, [0], spark)
    else:
        (told_of,) = ours(case, [0], spark)
        assert isinstance(told_of, dict)
        assert told_of["value"] == ours_say
