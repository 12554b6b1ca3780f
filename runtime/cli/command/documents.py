"""Looking into documents that others wrote: what is missing or misshapen reads as empty."""

from collections.abc import Mapping
from typing import cast

Document = Mapping[str, object]


def document(value: object) -> Document:
    """Return a JSON object, empty if the value is none."""
    if not isinstance(value, Mapping):
        return {}
    return {str(key): each for key, each in cast("Mapping[object, object]", value).items()}


def documents(value: object) -> list[Document]:
    """Return the JSON objects of a list."""
    if not isinstance(value, list):
        return []
    return [document(each) for each in cast("list[object]", value)]


def texts(value: object) -> list[str]:
    """Return the items of a JSON list as text."""
    return list(map(str, cast("list[object]", value))) if isinstance(value, list) else []


def is_list(value: object) -> bool:
    """Tell whether a value is a JSON list."""
    return isinstance(value, list)


def inner(value: object, *path: str) -> object:
    """Return what lies at the end of a path of members, None if there is nothing."""
    for name in path:
        value = document(value).get(name)
    return value


def text(value: object, *path: str) -> str:
    """Return what lies at the end of a path as text; nothing for what is missing."""
    found = inner(value, *path)
    if found is None:
        return ""
    return str(found).lower() if isinstance(found, bool) else str(found)


def listed(found: object, member: str) -> list[Document]:
    """Return the entries of a list, which may be wrapped in a document."""
    return documents(found if is_list(found) else inner(found, member))
