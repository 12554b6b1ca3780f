"""The dashboards that the project ships, and the queries of their panels."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from fairlead_tests.pages import HOUSE

FOLDER: Final = HOUSE / "deploy" / "grafana"
NAMES: Final = ("connector", "fleet", "group")


class PanelQuery(NamedTuple):
    """A query, and the panel that asks it."""

    panel: str
    """`dashboard: title`."""
    expression: str

    def expanded(self) -> str:
        """Return the query as Grafana asks it of a server that scrapes each second."""
        text = self.expression.replace("$__rate_interval", "4s")
        return re.sub(r"\$(instance|group|connector|worker)\b", ".*", text)


def read_dashboard(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return found


def queries() -> Iterator[PanelQuery]:
    for name in NAMES:
        for panel in read_dashboard(name)["panels"]:
            for target in panel.get("targets", ()):
                yield PanelQuery(f"{name}: {panel['title']}", target["expr"])
