"""Patterns that users give: what they match, in a time that no pattern can make long."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.events.commits import Document
from fairlead.runtime.pipeline.spi.errors import OffsetRefused
from fairlead.runtime.pipeline.spi.keys.kinds import check_patterns
from fairlead.runtime.pipeline.stores.kafka.source import topics
from fairlead.runtime.pipeline.stores.postgres.tables.catalog import _fits
from fairlead.runtime.pipeline.untrusted.patterns import PatternRefused, compile_pattern

HOSTILE = (r"(a+)+b", r"(a|aa)*b", r"(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)b", r"(?!(a+)+b)(\w*)*c")
LONG = "a" * 60_000


@pytest.mark.parametrize("pattern", HOSTILE)
def test_no_pattern_takes_longer_than_its_text_is_long(pattern: str) -> None:
    assert not compile_pattern(pattern).matches(LONG)  # else it would never end


@pytest.mark.parametrize("pattern", HOSTILE)
def test_an_offset_of_a_topic_is_judged_by_any_pattern_at_once(pattern: str) -> None:
    partition: Document = {"kafka_topic": LONG, "kafka_partition": 0}
    with pytest.raises(OffsetRefused, match="this connector reads"):
        topics.check_offset({"source.topics.regex": pattern}, partition, {"kafka_offset": 1})
    assert not _fits((pattern,), {LONG})


@given(
    st.sampled_from(
        [
            r"shop[.].*",
            r"a|b\|c|(de)+",
            r"^(?!__|test_)\w+$",
            r"(?i)(?!x)[A-Z]+",
            r"(?=.*\d)(?!.*_tmp$)[\w.]+",
            r"\A(?![()\]]|\()[a-z(]*\Z",
            r"(?!a)(b|\\||[|]|c)+",
            r"(?P<n>a)+?(?:b){2,3}",
            r"",
        ]
    ),
    st.text("abdeAx_.t1(\n|", max_size=8) | st.sampled_from(["shop.a", "__a", "test_a", "a1_tmp"]),
)
def test_a_pattern_matches_what_pythons_own_library_says(pattern: str, text: str) -> None:
    assert compile_pattern(pattern).matches(text) is (re.fullmatch(pattern, text) is not None)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"(a)\1", r"invalid escape sequence: \1; patterns are those of RE2"),
        ("a(?=b)b", "invalid perl operator: (?=; patterns are those of RE2"),
        ("(?!a", "invalid perl operator: (?!; patterns are those of RE2"),
        ("(?!a)b|c", "invalid perl operator: (?!; patterns are those of RE2"),
        ("(?>a)b", "invalid perl operator: (?>; patterns are those of RE2"),
        ("[", "missing ]: [; patterns are those of RE2"),
        ("((a{100}){100}){100}", "invalid repetition size"),
        ("\ud800", "it holds a lone surrogate, which is no Unicode"),
        ("a" * 20_001, "it has more than 20000 characters"),
    ],
)
def test_a_pattern_that_is_none_of_re2_is_refused_with_the_reason(pattern: str, why: str) -> None:
    with pytest.raises(PatternRefused) as caught:
        compile_pattern(pattern)
    assert str(caught.value).startswith(why)
    told = f"{pattern} is no regular expression: {caught.value}"
    assert check_patterns(pattern) == check_patterns(("a", pattern)) == told
    partition: Document = {"kafka_topic": "t", "kafka_partition": 0}
    with pytest.raises(OffsetRefused, match=r"source\.topics\.regex: "):  # of an old config
        topics.check_offset({"source.topics.regex": pattern}, partition, {"kafka_offset": 1})


def test_a_name_that_is_no_unicode_matches_nothing() -> None:
    assert not compile_pattern(".*").matches("\ud800")
