"""Assignors are found by name, and what cannot be used is refused with whose it is and why."""

from pathlib import Path

import pytest
from local_assignors.conftest import Installs

from fairlead.runtime.node.assignors.discovery import (
    AssignorRefusedError,
    KnownAssignor,
    find_assignor,
    known_assignors,
    make_assignor,
)
from fairlead_tests.local_assignors.packages import ASSIGNOR

BUILT_IN = ["balanced", "deferred", "simple-cooperative", "eager", "incremental"]
MINE = "mine = shop_rules:Mine"
ORIGIN = "entry point mine = shop_rules:Mine of shop 1.2"


def refusal(name: str = "mine") -> str:
    """Why an assignor is refused."""
    with pytest.raises(AssignorRefusedError) as told:
        make_assignor(name, find_assignor(name), {})
    return str(told.value)


def test_the_built_in_ones_are_there_by_name_and_range() -> None:
    made = [make_assignor(name, find_assignor(name), {}) for name in BUILT_IN]
    assert [(each.name, each.minimum_version) for each in made] == [(each, 0) for each in BUILT_IN]
    assert all(each.maximum_version >= 0 for each in made)
    assert known_assignors() == [KnownAssignor(name) for name in BUILT_IN]


def test_an_entry_point_is_an_assignor_and_is_made_with_its_settings(installed: Installs) -> None:
    installed(ASSIGNOR, MINE)
    made = make_assignor("mine", find_assignor("mine"), {"speed": "9"})
    assert (made.name, made.minimum_version, made.maximum_version) == ("mine", 0, 2)
    assert vars(made) == {"conf": {"speed": "9"}}


def test_listing_imports_nothing(installed: Installs) -> None:
    installed("raise RuntimeError", MINE)
    assert known_assignors()[len(BUILT_IN) :] == [KnownAssignor("mine", ORIGIN)]


def test_an_unknown_name_is_answered_with_the_known_ones(installed: Installs) -> None:
    installed(ASSIGNOR, MINE)
    assert refusal("mini") == (
        "there is no assignor 'mini': name one of balanced, deferred, simple-cooperative, eager,"
        " incremental, mine in group.local.assignors, or install a distribution with an entry"
        " point mini in the group fairlead.assignors"
    )


def test_a_name_that_is_built_in_is_nobody_elses(installed: Installs) -> None:
    installed(ASSIGNOR, "balanced = shop_rules:Mine")
    assert refusal("balanced") == (
        "assignor 'balanced' is built in, and entry point balanced = shop_rules:Mine of shop 1.2"
        " has the same name: rename that entry point, or uninstall it"
    )


def test_two_of_one_name_are_refused_with_both(installed: Installs) -> None:
    installed(ASSIGNOR, MINE)
    installed(ASSIGNOR, "mine = shop_too:Mine", dist="shop-too", module="shop_too")
    told = refusal()
    assert ORIGIN in told
    assert "entry point mine = shop_too:Mine of shop-too 1.2" in told
    assert told.endswith("have the same name: uninstall all but one of them")


def test_a_distribution_that_is_broken_is_nobody_elses_trouble(
    installed: Installs, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    installed(ASSIGNOR, MINE)
    installed("", dist="shop-broken", module="shop_broken")
    (tmp_path / "shop_broken-1.2.dist-info" / "entry_points.txt").write_bytes(b"[\xff")
    assert known_assignors() == [*map(KnownAssignor, BUILT_IN), KnownAssignor("mine", ORIGIN)]
    assert [find_assignor(name)({}).name for name in (*BUILT_IN, "mine")] == [*BUILT_IN, "mine"]
    assert caplog.messages[0].startswith("shop-broken is broken, no assignor is taken from it: Uni")
    assert refusal("broken").startswith("there is no assignor 'broken': name one of balanced")


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (
            "import nowhere_to_be_found",
            "ModuleNotFoundError: No module named 'nowhere_to_be_found'",
        ),
        ("1 / 0", "ZeroDivisionError: division by zero (shop_rules.py, line 5)"),
        ("raise SystemExit(3)", "SystemExit: 3 (shop_rules.py, line 5)"),
        ("Yours = 1", "AttributeError: module 'shop_rules' has no attribute 'Mine'"),
    ],
)
def test_what_can_not_be_imported_says_whose_it_is(
    installed: Installs, source: str, why: str
) -> None:
    installed(source, MINE)
    told = refusal()
    assert told.startswith(f"assignor 'mine' cannot be imported: {why}")
    assert told.endswith(
        f"({ORIGIN}): fix or reinstall it, or remove it from group.local.assignors"
    )


def test_a_name_of_megabytes_is_cut_where_it_is_refused(installed: Installs) -> None:
    installed(ASSIGNOR.replace('"mine", 0, 2', '"x" * 10_000_000, 0, 2'), MINE)
    assert len(refusal()) < 1_000


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("self.conf = conf", "1 / 0"), "cannot be created: ZeroDivisionError: division by zero"),
        (
            ("def assign(", "def a("),
            "is not an assignor: Mine has no method assign; see ConnectAssignor",
        ),
        (
            ('"mine", 0, 2', '"mine", 0, "2"'),
            "is not an assignor: Mine.maximum_version is not a whole number",
        ),
        (
            ('"mine", 0, 2', '"mine", 3, 2'),
            "is not an assignor: assignor 'mine' has the range [3, 2]: it must",
        ),
        (
            ('"mine"', '"yours"'),
            "is not an assignor: Mine.name is 'yours', and its entry point is called",
        ),
        (("class Mine", "Mine = 1\nclass Other"), "is a int (entry point mine = shop_rules:Mine"),
    ],
)
def test_what_is_no_assignor_says_what_it_lacks(
    installed: Installs, change: tuple[str, str], why: str
) -> None:
    installed(ASSIGNOR.replace(*change), MINE)
    assert refusal().startswith(f"assignor 'mine' {why}")
