"""The key `labels`: words that users give a connector, by which verbs select some of many."""

import re
from collections.abc import Mapping
from typing import Final

LABELS: Final = "labels"
_LABEL: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,98}[A-Za-z0-9])?", re.ASCII)


def read_labels(config: Mapping[str, str]) -> dict[str, str]:
    """Return the labels in a connector's config by name; what is no label is left out."""
    items = (each.partition("=") for each in config.get(LABELS, "").split(","))
    return {name.strip(): value.strip() for name, _, value in items if name.strip()}


def flaw_in_label_list(items: tuple[str, ...]) -> str:
    """Return what is wrong with labels, `team=a` each; "" if nothing is."""
    names = [each.partition("=")[0].strip() for each in items]
    for each in items:
        name, equals, value = each.partition("=")
        is_named = equals and is_label(name.strip())
        if not is_named or (value.strip() and not is_label(value.strip())):
            return f"must be NAME=VALUE of letters, digits and . _ / -, not {each!r}"
        if names.count(name.strip()) > 1:
            return f"has {name.strip()} twice: a connector has a label once"
    return ""


def is_label(word: str) -> bool:
    """Return whether a word may be the name or the value of a label."""
    return _LABEL.fullmatch(word) is not None
