"""Csv files that are drawn to find what two readers take differently.

A batch is a config and files that are read with it. Hypothesis draws the config, and for each
column the texts that may stand in it: such as the grammar takes, and the edges of its type. The
files are put together from these texts by a seed, thousands in a second; in some of them letters
and bytes are changed.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final, NamedTuple

from hypothesis import strategies as st
from hypothesis.vendor.pretty import RepresentationPrinter
from pyspark.sql.types import DataType, StringType, StructField, StructType

from fairlead.runtime.pipeline.connectors.pipeline_keys import task_keys_of
from fairlead.runtime.pipeline.formats.csv import grammar
from fairlead.runtime.pipeline.formats.csv.grammar import PlainForm
from fairlead.runtime.pipeline.stores.files.source.formats import ReadFormat

from .edges import EDGES, TEXTS

Config = Mapping[str, str]

ENDS: Final = ("\n", "\n", "\n", "\r\n")
BYTES: Final = b"\",;'\t\r\n \\#\x00\xff\xc3\x9f\xef\xbb\xbf0-+eZ.:NA"
"""What bytes are changed to."""
NAMES: Final = ("a", "B", "c d", "\u00e9", "n.m", "_x", "e", "F", "g", "h", "i", "j")


class Kinds(NamedTuple):
    """Of how many files among how many something is so, one in each number."""

    odd: int = 8
    """Have texts that the grammar does not take."""
    changed: int = 10
    """Have changed bytes."""


@dataclass(frozen=True)
class Batch:
    """Files, the config that they are read with, and the zone of the session."""

    config: Config
    schema: StructType
    zone: str
    files: Sequence[bytes]
    keeps_proofs: bool = False
    """Whether Spark, too, reads what is proved by the proofs, as it does with small batches."""

    def _repr_pretty_(self, printer: RepresentationPrinter, cycle: bool) -> None:
        """Have Hypothesis show no file: there are hundreds."""
        del cycle
        printer.text(str(self))

    def __str__(self) -> str:
        return f"{len(self.files)} files in zone {self.zone} read with {dict(self.config)}"

    @property
    def form(self) -> ReadFormat:
        """The format of the config."""
        return form_of(self.config, self.schema)


class Column(NamedTuple):
    """The texts that may stand in a column."""

    name: str
    plain: Sequence[str]
    """Texts that the grammar takes; of times with a zone."""
    local: Sequence[str]
    """Such texts; of times without one."""
    odd: Sequence[str]
    """Others."""
    is_text: bool


def form_of(config: Config, schema: StructType) -> ReadFormat:
    given = {
        "name": "c",
        "connector.class": "SparkPipeline",
        "source.format": "csv",
        "source.path": "/in",
        "sink.path": "/out",
        "sink.format": "parquet",
        **config,
    }
    tolerant = config.get("errors.tolerance") == "all"
    form = ReadFormat.of(task_keys_of(given).parse(given), given, tolerant=tolerant)
    return replace(form, grown=schema)


def ddl_of(schema: StructType) -> str:
    return ", ".join(f"`{each.name}` {each.dataType.simpleString()}" for each in schema.fields)


@st.composite
def configs(draw: st.DrawFn, schema: StructType) -> dict[str, str]:
    """Draw the keys of a dialect, and how the schema is given."""

    def some(key: str, *values: str) -> dict[str, str]:
        value = draw(st.sampled_from(values))
        return {key: value} if value else {}

    is_inferred = draw(st.booleans())
    adds = draw(st.booleans())
    return {
        ("task.schema" if is_inferred else "source.schema"): ddl_of(schema),
        **some("source.separator", "", "", "", ";", "|", "\\t", "~"),
        **some("source.quote", "", "", "", "", "'", "^"),
        **some("source.escape", "", "", "", "", "\\"),
        **some("source.null.values", "", "", "NA", "\\N", "0", "true", "NA,-", "2020-01-01"),
        **some("source.header", "", "", "", "false"),
        **some("source.option.timeZone", "", "", "", "UTC", "Europe/Berlin", "+02:00"),
        **some("errors.tolerance", "", "", "all"),
        **({"source.schema.evolution": "add-columns"} if adds else {}),
    }


@st.composite
def schemas(draw: st.DrawFn, kinds: Sequence[DataType] = tuple(EDGES)) -> StructType:
    """Draw the columns of files."""
    some = draw(st.lists(st.sampled_from([*kinds, StringType()]), min_size=2, max_size=9))
    names = draw(st.permutations(NAMES))
    return StructType([*map(StructField, names, some)])


@st.composite
def columns(draw: st.DrawFn, form: PlainForm, field: StructField) -> Column:
    """Draw the texts of a column."""
    kind = field.dataType
    if isinstance(kind, StringType):
        drawn = draw(
            st.lists(st.text(st.sampled_from("ab ,;|'\"\\~\t\u00e9\U0001f600"), max_size=5))
        )
        return Column(field.name, [*TEXTS, *drawn], (), ("x\ny", "x\r\ny", "x\ry"), is_text=True)
    local = replace(form, has_zones=False)
    patterns = ["|".join(grammar._plain(each, kind)) for each in (form, local)]
    edges = [*EDGES[kind]]
    found: list[list[str]] = []
    for pattern in dict.fromkeys(patterns):
        whole = re.compile(rf"(?:{pattern})\Z", re.ASCII)
        own = st.from_regex(whole, fullmatch=True) if pattern else st.just("")
        some = draw(st.lists(own, min_size=8, max_size=8))
        found.append([*some, *(each for each in edges if pattern and whole.match(each))])
    odd = [each for each in edges if not any(each in texts for texts in found)]
    return Column(field.name, found[0], found[-1], odd or ["?"], is_text=False)


@st.composite
def batches(draw: st.DrawFn, files: int, kinds: Kinds = Kinds()) -> Batch:  # noqa: B008
    """Draw a batch; for what is drawn beside see `Kinds`."""
    schema = draw(schemas())
    config = draw(configs(schema))
    zone = draw(st.sampled_from(["UTC", "UTC", "Etc/UTC", "GMT", "America/New_York", "+02:00"]))
    form = replace(form_of(config, schema), zone=zone)
    plain = form.plain_form()
    zoned = replace(plain, has_zones=True)
    drawn = [draw(columns(zoned, each)) for each in schema.fields]
    random = Random(draw(st.integers(0, 1 << 32)))
    maker = _Maker(plain, drawn, random, may_move="source.schema.evolution" in config)
    return Batch(
        config, schema, zone, [maker.file(kinds) for _ in range(files)], draw(st.booleans())
    )


class _Maker:
    """Puts files together."""

    def __init__(
        self, form: PlainForm, columns: Sequence[Column], random: Random, *, may_move: bool
    ) -> None:
        self._style = form.style
        self._form = form
        self._random = random
        self._layouts = [columns]
        """The columns of files in their order: Spark reads those of each layout apart."""
        if may_move and form.style.header:
            self._layouts.append(random.sample(columns, random.randint(2, len(columns))))

    def file(self, kinds: Kinds) -> bytes:
        random, style = self._random, self._style
        columns = random.choice(self._layouts)
        end = random.choice(ENDS)
        is_local, is_odd = random.random() < 0.3, not random.randrange(kinds.odd)
        lines = [
            style.separator.join(
                self._cell(each, is_local=is_local, is_odd=is_odd) for each in columns
            )
            for _ in range(random.choice((0, 1, 1, 2, 3, 5)))
        ]
        if style.header:
            lines.insert(0, style.separator.join(self._name(each.name) for each in columns))
        text = end.join(lines) + (end if random.random() < 0.7 else "")
        data = text.encode()
        if random.random() < 0.1:
            data = b"\xef\xbb\xbf" + data
        return data if random.randrange(kinds.changed) else self._changed(data)

    def _name(self, name: str) -> str:
        spelt = self._random.choice((name, name, name.upper(), name.lower()))
        return self._quoted(spelt) if not self._random.randrange(8) else spelt

    def _cell(self, column: Column, *, is_local: bool, is_odd: bool) -> str:
        random, style = self._random, self._style
        if random.random() < 0.15:
            nothing = ["", "", 2 * style.quote, *style.nulls, *map(self._quoted, style.nulls)]
            return random.choice(nothing if is_odd or not style.nulls else ["", style.nulls[0]])
        if is_odd and random.random() < 0.2:
            text = random.choice(column.odd)
        else:
            text = random.choice(column.local if is_local and column.local else column.plain)
        marks = {style.separator, style.quote, *"\r\n"} - {""}
        must = column.is_text and any(each in text for each in marks)
        return self._quoted(text) if must or random.random() < 0.15 else text

    def _quoted(self, text: str) -> str:
        quote, escape = self._style.quote, self._style.escape
        if escape:
            text = text.replace(escape, 2 * escape)
        return quote + text.replace(quote, (escape or quote) + quote) + quote if quote else text

    def _changed(self, data: bytes) -> bytes:
        """Return a text with one to three bytes changed, added or left out."""
        random = self._random
        for _ in range(random.choice((1, 1, 2, 3))):
            at, new = random.randint(0, len(data)), bytes([random.choice(BYTES)])
            data = data[:at] + random.choice((new, b"")) + data[at + random.randint(0, 1) :]
        return data
