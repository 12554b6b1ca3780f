"""Regular expressions that Java would match for ever are refused; those that it matches are not."""

import pytest

from fairlead.runtime.pipeline.transforms import catalogue
from fairlead.runtime.pipeline.untrusted.backtracking import flaw_in_backtracking

HOSTILE = (
    r"(a+)+b",
    r"(a*)*",
    r"(?:a|a)*b",
    r"(a|aa)+$",
    r"(\w+)+-x",
    r"(?<n>[a-z]+)*1",
    r"(x|[a-z]\d?)*!",
    r"shop\.((\w|_)+)\.x",
    r"(.*)*",
    r"(\w+\s?)*$",
    r"((ab)*)*c",
    r"(a{1,}){5,}b",
    r"(a+|b)+c",
    r"(\d+|\w)+-",
    r"(.*)(.*)(.*)(.*)(.*)(.*)x",
)
HARMLESS = (
    r"shop\.(.*)",
    r"(.*)\.(.*)\.(.*)",
    r"(\w+\.)+\w+",
    r"([a-z]+-)*[a-z]+",
    r"(?:[^.]+\.){2,}x",
    r"(a+)b+(c+)",
    r"(a|b|cd)*",
    r"(?i)(?!test_)\w*",
    r"(a++)+b",
    r"(?:\Q(a+)+\E)",
    r"[(a+)+]",
    r"\(a+\)+",
    r"topic-(\d{4})(\d{2})(?:\.part\d+)?",
    r"(?:_[A-Z][a-z]*)+",
    r"",
)


@pytest.mark.parametrize("pattern", HOSTILE)
def test_a_pattern_that_would_be_matched_for_ever_is_refused_with_the_reason(pattern: str) -> None:
    assert flaw_in_backtracking(pattern).startswith("takes for ever over long texts: ")


@pytest.mark.parametrize("pattern", HARMLESS)
def test_a_pattern_that_is_matched_in_good_time_is_taken(pattern: str) -> None:
    assert flaw_in_backtracking(pattern) == ""


@pytest.mark.parametrize(
    ("pattern", "is_taken"),
    [
        (r"(\s+|,)+", True),
        (r"x((?:\w+\s?)*)", True),
        (r"((a+)+?)", True),
        (r"(a+)+$", False),
        (r"(\w+\s?)*|b", False),
        (r"((a+)+|c)d", False),
        (r"((a+)+){2}", False),
        (r"(a{1,}){30,}", False),
        (r"(.*)(.*)(.*)(.*)(.*)(.*)", False),
    ],
)
def test_a_pattern_that_is_searched_for_may_end_with_a_group_that_matches_in_several_ways(
    pattern: str, *, is_taken: bool
) -> None:
    assert (flaw_in_backtracking(pattern, is_whole=False) == "") is is_taken
    assert flaw_in_backtracking(pattern).startswith("takes for ever over long texts: ")


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"transforms.t.type": "RegexRouter", "transforms.t.replacement": "x"}, "t.regex"),
        ({"transforms.t.type": "Filter", "predicates": "p", "transforms.t.predicate": "p"}, "p"),
    ],
)
def test_the_transforms_that_java_matches_for_refuse_it(more: dict[str, str], key: str) -> None:
    config = {"transforms": "t", **more}
    if "predicates" in more:
        config |= {"predicates.p.type": "TopicNameMatches", "predicates.p.pattern": "(a+)+b"}
    else:
        config |= {"transforms.t.regex": "(a+)+b"}
    definitions = {each.name: each for each in catalogue.definitions(config)}
    name = "predicates.p.pattern" if key == "p" else "transforms.t.regex"
    _, flaws = definitions[name].examine("(a+)+b")
    why = "(a+) matches 'aa' in several ways, and is repeated"
    assert list(flaws) == [f"takes for ever over long texts: {why}"]
