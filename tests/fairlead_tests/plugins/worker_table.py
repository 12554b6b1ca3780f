"""The table of a Connect worker's keys in docs/connect-plugins.md, as the code has it."""

from collections.abc import Iterator, Mapping

from fairlead.runtime.config.connect_worker import OTHERWISE, TAKEN, is_of_clients
from fairlead.runtime.config.keys import SETTINGS

HEADS = "| key of a worker | here |\n|---|---|\n"
OF_OTHERS = ("client.rack", "group.consumer.", "group.protocol", "log.", "offsets.")
"""Settings with names of Kafka that are those of a broker, or of other clients."""


def own_keys() -> set[str]:
    """Return the settings of a node that a worker of Connect has as well."""
    same = {key for key, each in SETTINGS.items() if each.in_connect == key}
    return {key for key in same if not key.startswith(OF_OTHERS)}


def worker_table() -> str:
    """Return the table, in Markdown."""
    return HEADS + "".join(f"| {keys} | {here} |\n" for keys, here in _rows())


def _rows() -> Iterator[tuple[str, str]]:
    own = own_keys()
    ssl = {key for key in own if is_of_clients(key)}
    yield _listed(sorted(own - ssl)), "A [setting](reference/settings.md) of the node."
    yield _listed(sorted(ssl)), "A setting of the node, for https, and given to plugins' clients."
    for use, keys in _by_text(TAKEN).items():
        yield _listed(keys), f"Given to plugins. {use}"
    for text, keys in _by_text(OTHERWISE).items():
        yield (
            _listed(keys),
            f"Told at start: {text}." if text else "Told at start: no meaning here.",
        )


def _by_text(table: Mapping[str, str]) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, text in table.items():
        found.setdefault(text, []).append(f"{key}*" if key.endswith(".") else key)
    return found


def _listed(keys: list[str]) -> str:
    return ", ".join(f"`{each}`" for each in keys)
