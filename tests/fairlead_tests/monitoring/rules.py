"""The alerts that the project ships, as their file has them."""

from functools import cache
from typing import Any, NamedTuple

import yaml

from fairlead_tests.pages import HOUSE

SHIPPED = HOUSE / "deploy" / "prometheus"
RULES, CASES = SHIPPED / "rules.yml", SHIPPED / "rules_test.yml"


class Alert(NamedTuple):
    """A rule of an alert; `texts` are its annotations."""

    name: str
    query: str
    severity: str
    texts: dict[str, str]


@cache
def alerts() -> tuple[Alert, ...]:
    rules = (rule for group in read_yaml(RULES)["groups"] for rule in group["rules"])
    return tuple(
        Alert(rule["alert"], rule["expr"], rule["labels"]["severity"], rule["annotations"])
        for rule in rules
        if "alert" in rule
    )


def recorded() -> set[str]:
    rules = (rule for group in read_yaml(RULES)["groups"] for rule in group["rules"])
    return {rule["record"] for rule in rules if "record" in rule}


def read_yaml(path: Any) -> Any:
    return yaml.safe_load(path.read_text())
