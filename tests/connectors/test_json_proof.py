# pyright: basic
"""What Arrow reads of JSON is what Spark reads: the same rows, from files and from records.

Documents are drawn with all that the two readers may take differently, and some of their bytes are
changed. Those that are proved are read by Spark as well, hundreds in one job.
"""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead.runtime.pipeline.batches.frames import rows_of
from fairlead.runtime.pipeline.engines.embedded.engine import Embedded
from fairlead.runtime.pipeline.formats.evolution.policy import (
    FAIL,
    LEAVE_OUT,
    WIDEN,
    SchemaPolicy,
    parse_ddl,
)
from fairlead.runtime.pipeline.spi.errors import BadInput, SchemaRefused
from fairlead.runtime.pipeline.stores.files.copies import Copies, FileSurvey
from fairlead.runtime.pipeline.stores.files.source.file_survey import admit, survey_file
from fairlead.runtime.pipeline.stores.files.source.formats import ReadFormat
from fairlead.runtime.pipeline.stores.kafka.source.decoding import JsonDecoder, KafkaRows

DDL = (
    "id BIGINT, t TINYINT, h SMALLINT, i INT, l BIGINT, d DOUBLE, b BOOLEAN, s STRING, day DATE, "
    "at TIMESTAMP, n TIMESTAMP_NTZ, o STRUCT<x: INT, y: STRING, d: DOUBLE>, a ARRAY<BIGINT>, "
    "p ARRAY<STRUCT<q: BOOLEAN, S: SMALLINT>>"
)
"""With a list of fractions any text of digits is odd, as a time is."""
_NUMBERS = """
    0 1 -1 7 -0 -0.0 0.0 1.0 1.5 0.1 -2.50 1e3 1E3 1e0 -1e-7 1.0E+2 1e22 1e23 1e-5 127 128 -128 -129
    32767 32768 -32769 2147483647 2147483648 -2147483649 9223372036854775807 9223372036854775808
    -9223372036854775808 9007199254740993 123456789012345678901234567890 1e400 -1e400 1e-400
    4.9e-324 2.2250738585072011e-308 1.7976931348623157e308 1.7976931348623159e308 3e-324
    179769313486231580793728971405301e276 8.41e21 2.0e-3 9.5367431640625e-7 0.30000000000000004
    01 +1 .5 1. 0x1F NaN Inf Infinity -Infinity INF -INF -Inf +INF nan 1e 1e+ - 00 -01 1_0 1d 1e99
    1e100 0e999 0e5 -0e0
"""
NUMBERS = _NUMBERS.split()
TEXTS = (
    '""', '"x"', '"1"', '"true"', '"NaN"', '"null"', r'"A"', r'"😀"', r'"\ud83d"',
    r'"\ude00x"', r'"\u0000"', r'"\/\b\f\n\r\t\"\\"', r'"\x"', r'"\u00g0"', '"a\tb"', '"a\x01b"',
    '"\x7f"', '"ä€😀"', '"\u2028"', '"\ufeff"', '"\x00"', '"a,b:{}[]"', "'x'", '"}\\n{"',
    '"2024-02-29"', '"x" ', '"\\\\"', '"\\\\\\""',
)  # fmt: skip
TIMES = (
    '"2013-01-01"', '"2013-02-29"', '"1000-12-31"', '"0999-12-31"', '"2000-02-29"', '"1900-02-29"',
    '"2999-12-31"', '"3000-01-01"', '"2013-1-1"', '"2013-01-01T10:00"', '"2013-01-01 10:00:00"',
    '"2013-01-01T10:00:00Z"', '"2013-01-01 10:00:00.5+02:00"', '"2013-01-01T10:00:00.123456-17:59"',
    '"2013-01-01T10:00:00.1234567Z"', '"2013-01-01T10:00:00+18:00"', '"2013-01-01T10:00Z"',
    '"2013-01-01T23:59:60Z"', '"2013-01-01T24:00:00Z"', '"1582-10-10"', '"1582-10-10T00:00:00Z"',
    '"1883-11-18T12:00:00Z"', '"2013-03-10 02:30:00"', '"1000-01-01T00:00:00-00:01"', '""', "0",
    "1700000000", '" 2013-01-01"', '"2013-01-01T10:00:00z"', '"2013-01-01T10:00:00.Z"',
)  # fmt: skip
NESTED = (
    "{}", "[]", "[null]", "[[1]]", "[1,null,-3]", '{"x":1}', '{"x":null,"y":"q"}', '{"x":"1"}',
    '{"x":1,"x":2}', '{"z":1}', '{"x":1,"z":{"k":[1]}}', '{"y":"a","x":2}', '{"X":1}', "[{}]",
    '{"d":-0.0}', '{"d":-0}', '{"d":1e400}', '{"d":0.5}', '{"d":null}', '[-0]', '[1e400]',
    '[{"q":true}]', '[{"q":true,"S":1},null,{"S":2}]', '[{"s":1}]', '[{"q":1}]', '[{"S":70000}]',
    '{"x":1,"y":"b","d":2}', '[{"q":null,"S":-1}]',
)  # fmt: skip
FITTING = {
    "t": ("1", "-128", "127", "0", "-0"),
    "h": ("1", "32767"),
    "i": ("1", "-5", "2147483647", "-0"),
    "l": ("1", "9223372036854775807", "-9223372036854775808"),
    "d": ("1", "1.5", "-2.25", "1e22", "0.1", "0", "12345678901234567890", "1e-99", "1E5"),
    "b": ("true", "false"),
    "s": ('"x"', '""', '"ä😀"', r'"A\n"', r'"\u0000"', '"2013-01-01T10:00:00Z"'),
    "day": ('"2013-01-01"', '"2000-02-29"', '"1000-01-01"', '"1582-10-10"'),
    "at": ('"2013-01-01T10:00:00Z"', '"2013-01-01 10:00:00.5+02:00"', '"1582-10-10T00:00:00Z"'),
    "n": ('"2013-01-01"', '"2013-01-01T10:00"', '"2013-01-01 10:00:00.123456"'),
    "o": ('{"x":1,"y":"a","d":1.5}', "{}", '{"y":"b"}', '{"x":1,"z":[1]}'),
    "a": ("[]", "[1,2]", "[null,-3]"),
    "p": ("[]", '[{"q":true,"S":1},null,{}]'),
}  # fmt: skip
OTHERS = ("z", "Z", "", "a.b", "I", "S", "_corrupt_record", r"z", "ä")
ENDS = ("\n",) * 30 + ("\r\n", "\n\n", "\r", " \n", "\n \n", "")
WHOLE = (
    "null", "[]", '[{"i":1}]', '[{"i":1},{"i":2}]', "1", '"x"', "true", "", "   ", '{"i":1}{"i":2}',
    '{"i":1} {"i":2}', '{"i":1} x', '{"i":1},', '{"i":\n1}', '{"s":"a\nb"}', '{"i":1', '{"i":1}}',
    '{"s":"}\n{"}', '/*c*/{"i":1}', '{"i":1}//c', '\ufeff{"i":1}', '{"i":1}\x00', "\x00", '{i:1}',
    '{"i":1,}', '{,"i":1}', '{"i" :\t1 }', ' {"i":1}', '{"i":1} ', '{"i":1}\f', '{"i":1}\xa0',
    '{"o":{}\n{"i":1}}', '{"z":' + "[" * 99 + "]" * 99 + "}", '{"z":' + "9" * 1200 + "}",
    '{"z":0.' + "1" * 1200 + "}", '{"z":1e' + "1" * 1200 + "}", '{"' + "n" * 60_000 + '":1}',
    '{"z":' + "[" * 130 + "]" * 130 + "}", '{"i":1,"I":2}', '{"i":1,"i":2}', r'{"i":1,"\u0069":2}',
)  # fmt: skip


def documents(rng: random.Random, first: int) -> Iterator[str]:
    """Yield documents without end; most of them fit the schema, and have an id."""
    number = first
    while True:
        number += 1
        if rng.random() < 0.03:
            yield rng.choice(WHOLE)
            continue
        names = rng.sample([*FITTING], rng.randrange(0, len(FITTING)))
        pairs = [(name, rng.choice((*FITTING[name], "null"))) for name in names]
        if rng.random() < 0.15:
            odd = (*NUMBERS, *TEXTS, *TIMES, *NESTED, "true", "True", "null", "tru", "nul")
            pairs.append((rng.choice([*FITTING, *OTHERS]), rng.choice(odd)))
        if rng.random() < 0.1:
            name = rng.choice([*FITTING])
            pool = {"day": TIMES, "at": TIMES, "n": TIMES, "s": TEXTS, "d": NUMBERS, "l": NUMBERS}
            pairs = [each for each in pairs if each[0] != name]
            pairs.append((name, rng.choice(pool.get(name, NESTED))))
        pairs.append(("id", str(number)))
        rng.shuffle(pairs)
        comma, colon = rng.choice((", ", ",", " , ")), rng.choice((": ", ":", " : "))
        yield "{" + comma.join(f'"{name}"{colon}{value}' for name, value in pairs) + "}"


def mutated(rng: random.Random, text: bytes, rate: float) -> bytes:
    """Return a text with a byte changed, left out or added, at a rate."""
    if rng.random() >= rate or not text:
        return text
    at, byte = rng.randrange(len(text)), rng.choice(b'{}[]":,\\0-.eE \n\r\t\0x\xff\xc3\xa4u')
    kept = rng.choice((text[at + 1 :], text[at:]))
    return text[:at] + rng.choice((bytes([byte]), b"")) + kept


def canonical(value: Any) -> Any:
    """Return a value to compare: numbers to the last bit, in one form."""
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, dict):
        return tuple((name, canonical(each)) for name, each in value.items())
    if isinstance(value, list):
        return tuple(canonical(each) for each in value)
    return value


def rows_in(table: Any) -> Counter[Any]:
    return Counter(map(canonical, table.to_pylist()))


def form_of() -> ReadFormat:
    policy = SchemaPolicy(LEAVE_OUT, is_exact=True)
    return ReadFormat("json", DDL, policy=policy)


def survey(form: ReadFormat, file: Path, *, keeps: bool) -> FileSurvey | str:
    try:
        return survey_file(form, file, Copies(), str(file.parent), keeps_text=keeps)
    except BadInput as error:
        return str(error)


def admitted(form: ReadFormat, found: FileSurvey) -> list[object]:
    """Return what follows from the columns of a file, by the policy for new ones."""
    effects: list[object] = []
    for mode in (LEAVE_OUT, FAIL, WIDEN):
        policy = SchemaPolicy(mode, is_exact=True)
        try:
            grown, left_out = admit(replace(form, policy=policy), found, Path("f"))
            effects.append((grown.columns, left_out))
        except SchemaRefused as refused:
            effects.append(str(refused))
    return effects


def compare_files(engine: Embedded, folder: Path, rng: random.Random, count: int) -> int:
    """Compare the rows of files that are proved; return how many these are."""
    drawn = documents(rng, 0)

    def run(spark: Any) -> int:
        form = form_of().in_session(spark)
        proved: list[FileSurvey] = []
        for number in range(count):
            lines = (next(drawn) + rng.choice(ENDS) for _ in range(rng.choice((1, 1, 2, 5))))
            file = folder / f"{rng.getrandbits(64)}-{number}.json"
            text = mutated(rng, "".join(lines).encode(errors="surrogatepass"), 0.1)
            file.write_bytes(text)
            kept, scanned = (survey(form, file, keeps=keeps) for keeps in (True, False))
            if isinstance(kept, str) or isinstance(scanned, str):
                assert kept == scanned
                continue
            assert replace(kept, rows=None, columns=None) == replace(scanned, columns=None)
            assert admitted(form, kept) == admitted(form, scanned), text
            if kept.rows is not None:
                proved.append(kept)
        by_arrow = form.table(proved)
        assert by_arrow is not None
        frame, _ = form.rows(spark, [replace(each, rows=None) for each in proved], Copies())
        by_spark = rows_of(frame)
        assert by_spark.schema == by_arrow.schema
        assert rows_in(by_arrow) == rows_in(by_spark)
        return len(proved)

    return engine.run("json", run)


def records(values: list[bytes | None]) -> pa.Table:
    return pa.table(
        {
            "_value": pa.array(values, pa.binary()),
            "_topic": ["t"] * len(values),
            "_partition": pa.array([0] * len(values), pa.int32()),
            "_offset": pa.array(range(len(values)), pa.int64()),
        }
    )


def decoder(*, by_arrow: bool) -> JsonDecoder:
    rows = KafkaRows(("_offset",), has_text_keys=False, separates_bad=True, by_arrow=by_arrow)
    return JsonDecoder(rows, DDL, SchemaPolicy(LEAVE_OUT, is_exact=True))


NO_SPARK: Any = object()
"""A session that nothing can be asked of."""


def compare_records(engine: Embedded, rng: random.Random, count: int) -> int:
    """Compare the rows of records that are proved; return how many these are."""
    drawn = documents(rng, 0)

    def run(spark: Any) -> int:
        parse_ddl(DDL)
        values = [
            mutated(rng, next(drawn).encode(errors="surrogatepass"), 0.1) for _ in range(count)
        ]
        table = records([None if rng.random() < 0.02 else each for each in values])
        proved: list[pa.Table] = []
        at = 0
        while at < count:
            length = rng.choice((1, 1, 1, 2, 3))
            try:
                rows = decoder(by_arrow=True).decode(NO_SPARK, table.slice(at, length))
            except TypeError:  # it asks the session
                rows = None
            if rows is not None:
                proved.append(rows)
            at += length
        by_arrow = pa.concat_tables(proved)
        offsets = by_arrow["_offset"].combine_chunks()
        left = table.filter(pc.is_in(table["_offset"], offsets))
        by_spark = rows_of(decoder(by_arrow=False).decode(spark, left))
        assert by_spark.schema == by_arrow.schema
        assert by_spark.num_rows == len(left)
        assert rows_in(by_spark) == rows_in(by_arrow)
        return len(offsets)

    return engine.run("json", run)


def some(count: int) -> settings:
    return settings(max_examples=count, deadline=None, suppress_health_check=[*HealthCheck])


SEEDS = st.integers(0, 2**32)


@pytest.mark.spark
@some(1)
@given(seed=SEEDS)
def test_files_that_are_proved_have_the_same_rows_in_spark(
    engine: Embedded, tmp_path: Path, seed: int
) -> None:
    assert compare_files(engine, tmp_path, random.Random(seed), 300) > 60


@pytest.mark.spark
@some(1)
@given(seed=SEEDS)
def test_records_that_are_proved_have_the_same_rows_in_spark(engine: Embedded, seed: int) -> None:
    assert compare_records(engine, random.Random(seed), 1_500) > 500


@pytest.mark.soak
@pytest.mark.spark
@some(60)
@given(seed=SEEDS)
def test_ten_thousand_files_and_more_records_have_the_same_rows(
    engine: Embedded, tmp_path: Path, seed: int
) -> None:
    assert compare_files(engine, tmp_path, random.Random(seed), 400) > 60
    assert compare_records(engine, random.Random(seed), 3_000) > 500
