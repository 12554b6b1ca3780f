"""Connect's transforms of a record's topic and headers.

Headers are an array of structs of `key` and `value`, the value as the source has it, BINARY or
STRING; where there are none yet, STRING. What differs from Connect's own classes:

* Headers are texts, as Connect's SimpleHeaderConverter writes them: InsertHeader keeps the words of
  its literal, where Connect's class takes `007` for the number 7.
* Of a header that comes of an array, a map or a struct, the text is JSON.
* HeaderFrom lets a tombstone through, with headers that are null.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql.types import ArrayType, BinaryType, StringType, StructField, StructType

from .....actors.settings import Validator, Value, one_of
from ...engines.spelling import literal, refusal
from ...spi.config import ConfigDef, ConfigInvalid, Definition, Importance, ParsedConfig
from ...spi.context import Context
from ...spi.keys.kinds import list_key, text_key
from .cast import as_text, millis_of
from .fields import NULL_DEFAULTS, some_distinct
from .record import HEADERS, TIMESTAMP, TOPIC, ConnectRecord, Field, text
from .record_transform import RecordTransform, valid_regex, whole_match
from .simple_date_format import SimpleDateFormat

_WHOLE, _REST = "fairleadwhole", "fairleadrest"
_GROUP_0: Final = re.compile(r"(?<!\\)\$0")
_BACKSLASHES: Final = "\\"


class TimestampRouter(RecordTransform):
    """Changes the topic to a pattern of topic and timestamp."""

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definitions: the formats of topic and timestamp."""
        return ConfigDef(
            (
                text_key(
                    "topic.format",
                    "The new topic: `${topic}` in it is the old one, `${timestamp}` the time.",
                    "${topic}-${timestamp}",
                    importance=Importance.HIGH,
                ),
                text_key(
                    "timestamp.format",
                    "How the time is spelled, in the words of Java's SimpleDateFormat.",
                    "yyyyMMdd",
                    importance=Importance.HIGH,
                    validator=_pattern,
                ),
            )
        )

    def __init__(self, settings: ParsedConfig, context: Context) -> None:
        super().__init__(settings, context)
        self._topic = settings.text("topic.format")
        self._time = SimpleDateFormat(settings.text("timestamp.format"))

    def edit(self, record: ConnectRecord) -> ConnectRecord:
        """Set the topic; a record without a timestamp fails the job."""
        topic, time = record.metadata(TOPIC), record.metadata(TIMESTAMP)
        millis = time.sql if time.type.simpleString() == "bigint" else millis_of(time)
        error = refusal("'the record of topic '", topic.sql, "' has no timestamp'")
        shown = f"IF({time.sql} IS NULL, {error}, {self._time.formatted(millis)})"
        topic_text = f"replace({literal(self._topic)}, '${{topic}}', {topic.sql})"
        return record.with_metadata(
            TOPIC, text(f"replace({topic_text}, '${{timestamp}}', {shown})")
        )


class RegexRouter(RecordTransform):
    """Changes a topic that a regular expression matches as a whole."""

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definitions: the expression and the replacement."""
        return ConfigDef(
            (
                text_key(
                    "regex",
                    "A Java regular expression; other topics stay as they are.",
                    importance=Importance.HIGH,
                    required=True,
                    validator=valid_regex,
                ),
                text_key(
                    "replacement",
                    "The new topic, in which `$1` is what the first group matched.",
                    importance=Importance.HIGH,
                    required=True,
                    validator=_ends_plainly,
                ),
            )
        )

    def __init__(self, settings: ParsedConfig, context: Context) -> None:
        super().__init__(settings, context)
        self._regex = settings.text("regex")
        self._replacement = settings.text("replacement")

    def edit(self, record: ConnectRecord) -> ConnectRecord:
        """Replace the first match, as Connect does, which may be shorter than the whole topic."""
        topic = record.metadata(TOPIC).sql
        # The added groups come last, so that the user's groups keep their numbers.
        regex = rf"\A(?:{self._regex})(?<=\A(?<{_WHOLE}>(?s:.{{0,999}})))(?<{_REST}>(?s:.*))\z"
        replacement = _GROUP_0.sub(f"${{{_WHOLE}}}", self._replacement) + f"${{{_REST}}}"
        routed = f"regexp_replace({topic}, {literal(regex)}, {literal(replacement)})"
        matches = whole_match(topic, self._regex)
        return record.with_metadata(TOPIC, text(f"IF({matches}, {routed}, {topic})"))


class DropHeaders(RecordTransform):
    """Removes headers by their names."""

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definition of the names."""
        return ConfigDef((_names("headers", "Names of the headers to remove.", some_distinct),))

    def __init__(self, settings: ParsedConfig, context: Context) -> None:
        super().__init__(settings, context)
        self._dropped = settings.items("headers")

    def edit(self, record: ConnectRecord) -> ConnectRecord:
        """Remove the headers."""
        headers = record.metadata(HEADERS)
        names = ", ".join(map(literal, self._dropped))
        kept = f"filter({headers.sql}, h -> h.key NOT IN ({names}))"
        return record.with_metadata(HEADERS, headers._replace(sql=kept))


class HeaderFrom(RecordTransform):
    """Moves or copies fields into headers."""

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definitions: fields, headers, and the operation."""
        return ConfigDef(
            (
                _names("fields", "Names of the fields whose values become headers.", _some),
                _names("headers", "Names of the headers, in the order of the fields.", _some),
                text_key(
                    "operation",
                    "`move`, which takes the fields out of the record, or `copy`, which does not.",
                    importance=Importance.HIGH,
                    required=True,
                    validator=one_of("move", "copy"),
                    recommended=("move", "copy"),
                ),
                NULL_DEFAULTS,
            )
        )

    @classmethod
    def flaws(cls, settings: ParsedConfig) -> Mapping[str, str]:
        """Require as many headers as fields."""
        fields, headers = (len(settings.items(key)) for key in ("fields", "headers"))
        return {} if fields == headers else {"headers": f"{headers} for {fields} fields"}

    def __init__(self, settings: ParsedConfig, context: Context) -> None:
        super().__init__(settings, context)
        self._headers = list(zip(settings.items("fields"), settings.items("headers"), strict=True))
        self._moved = settings.items("fields") if settings.text("operation") == "move" else ()

    def edit(self, record: ConnectRecord) -> ConnectRecord:
        """Append the headers."""
        fields = record.fields(self._part)
        if missing := [field for field, _ in self._headers if field not in fields]:
            raise ConfigInvalid(f"the record has no field {missing[0]}; it has {', '.join(fields)}")
        headers = [(literal(header), header_text(fields[field])) for field, header in self._headers]
        kept = {name: each for name, each in fields.items() if name not in self._moved}
        return with_headers(record, headers).with_fields(self._part, kept, "headers")


class InsertHeader(RecordTransform):
    """Adds a static header."""

    @classmethod
    def config(cls) -> ConfigDef:
        """Return the definitions: its name and its value."""
        return ConfigDef(
            tuple(
                text_key(
                    name,
                    meaning,
                    importance=Importance.HIGH,
                    required=True,
                )
                for name, meaning in (
                    ("header", "Name of the header."),
                    ("value.literal", "Value of the header in all records."),
                )
            )
        )

    def __init__(self, settings: ParsedConfig, context: Context) -> None:
        super().__init__(settings, context)
        self._header = settings.text("header"), settings.text("value.literal")

    def edit(self, record: ConnectRecord) -> ConnectRecord:
        """Append the header."""
        name, value = map(literal, self._header)
        return with_headers(record, [(name, value)])


def with_headers(
    record: ConnectRecord, added: Sequence[tuple[str, str]], where: str = ""
) -> ConnectRecord:
    """Return a record with more headers, given as expressions of names and texts.

    With a condition, only rows that meet it get them.
    """
    there = record.columns.get(HEADERS)
    kind = there.type if there else _TEXTS
    shape = "encode({}, 'UTF-8')" if BinaryType() in _value_types(kind) else "{}"
    made = ", ".join(
        f"named_struct('key', {name}, 'value', {shape.format(value)})" for name, value in added
    )
    sql = f"IF({where}, array({made}), array())" if where else f"array({made})"
    if there:
        sql = f"concat(coalesce({there.sql}, array()), {sql})"
    return record.with_metadata(HEADERS, Field(sql, kind))


_TEXTS: Final = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", StringType())])
)


def _value_types(kind: object) -> list[object]:
    element = kind.elementType if isinstance(kind, ArrayType) else None
    return [each.dataType for each in element.fields] if isinstance(element, StructType) else []


def header_text(field: Field) -> str:
    """Return the expression of a field's text in a header."""
    return as_text(field) or f"to_json({field.sql})"


def _names(name: str, meaning: str, validator: Validator) -> Definition:
    return list_key(
        name,
        meaning,
        importance=Importance.HIGH,
        required=True,
        validator=validator,
    )


def _some(value: Value) -> str | None:
    return None if value else "must not be empty"


def _pattern(value: Value) -> str | None:
    try:
        SimpleDateFormat(str(value))
    except ValueError as error:
        return str(error)
    return None


def _ends_plainly(value: Value) -> str | None:
    """Refuse a trailing backslash, as Java does later."""
    text_given = str(value)
    backslashes = len(text_given) - len(text_given.rstrip(_BACKSLASHES))
    return "ends with a backslash that escapes nothing" if backslashes % 2 else None
