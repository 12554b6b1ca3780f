"""Writes the dashboards for Grafana beside itself, or into another folder.

    python deploy/grafana/dashboards.py [FOLDER]

Each file is imported as it is (Dashboards, New, Import). Its panels are in the module of its name.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import connector
import fleet
import group
from panels import JSON, SOURCE, lay_out, row, text

PAGES: Final = (
    "`docs/operating/alerts.md` says what each alert means and what to do, `projections/METRICS.md`"
    " what each metric is. In a terminal: `fairlead docs operating/alerts`."
)
GROUPS: Final = {"group": "label_values(fairlead_group_epoch, group)"}
CONNECTORS: Final = {
    "connector": 'label_values(fairlead_connector_configured_tasks{group=~"$group"}, connector)'
}
WORKERS: Final = {"worker": 'label_values(fairlead_worker_resources{group=~"$group"}, worker)'}
NODES: Final = {"instance": 'label_values(up{job="fairlead"}, instance)'}


def choice(name: str, query: str) -> JSON:
    """Return a variable that has any of the values of a query, and all of them at first."""
    return {
        "name": name,
        "label": name.title(),
        "type": "query",
        "datasource": SOURCE,
        "definition": query,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }


def dashboard(name: str, about: str, panels: Sequence[JSON], choices: Mapping[str, str]) -> JSON:
    """Return a dashboard; its uid is its name behind `fairlead-`."""
    source = {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "refresh": 1,
    }
    others = {
        "type": "dashboards",
        "title": "fairlead",
        "tooltip": "",
        "icon": "external link",
        "tags": ["fairlead"],
        "asDropdown": False,
        "includeVars": False,
        "keepTime": True,
        "targetBlank": False,
    }
    return {
        "uid": f"fairlead-{name}",
        "title": f"fairlead {name}",
        "description": about,
        "tags": ["fairlead"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "links": [others],
        "templating": {"list": [source, *(choice(*each) for each in choices.items())]},
        "panels": lay_out([*panels, row("Where to read on"), text(24, PAGES)]),
    }


def dashboards() -> dict[str, JSON]:
    """Return all dashboards by name."""
    return {
        "fleet": dashboard(
            "fleet",
            "What needs you, and how all connectors, workers and nodes get on.",
            fleet.panels(),
            NODES,
        ),
        "connector": dashboard(
            "connector",
            "Rows, lag, batches and failures of one connector, or of several.",
            connector.panels(),
            GROUPS | CONNECTORS,
        ),
        "group": dashboard(
            "group",
            "Epochs, rebalances, workers, coordinator and logs of a group.",
            group.panels(),
            GROUPS | WORKERS,
        ),
    }


def main(folder: Path) -> None:
    """Write all dashboards into a folder."""
    for name, content in dashboards().items():
        (folder / f"{name}.json").write_text(f"{json.dumps(content, indent=1)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).parent)
