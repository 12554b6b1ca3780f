"""Panels of Grafana as JSON, their places on a dashboard, and the queries that they share.

A dashboard is a list of panels and of titles (`row`). Panels stand from left to right, 24 columns
wide; `lay_out` gives them their ids and places. All of them ask the data source of the variable
`datasource`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

JSON = dict[str, Any]
SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
COLUMNS: Final = 24
GREEN, ORANGE, RED, BLUE = "green", "orange", "red", "blue"
OF_STATES: Final = {
    "running": GREEN,
    "stable": GREEN,
    "failed": RED,
    "restarting": ORANGE,
    "unassigned": "yellow",
    "paused": BLUE,
    "stopped": "text",
}
"""The colors of states, by their names in legends."""


# -- queries


def rate(metric: str, *by: str, of: str = "") -> str:
    """Return a query for what counters rise by in a second, summed up."""
    return f"sum by ({', '.join(by)}) (rate({metric}{{{of}}}[$__rate_interval]))"


def rise(metric: str, *by: str, of: str = "") -> str:
    """Return a query for what counters rise by from one point of a graph to the next."""
    return f"sum by ({', '.join(by)}) (increase({metric}{{{of}}}[$__rate_interval]))"


def quantiles(metric: str, *, of: str) -> dict[str, str]:
    """Return queries for three quantiles of a histogram, by their names."""
    counts = rate(f"{metric}_bucket", "le", of=of)
    shares = {"half": 0.5, "9 of 10": 0.9, "99 of 100": 0.99}
    return {name: f"histogram_quantile({share}, {counts})" for name, share in shares.items()}


# -- panels


def row(title: str) -> JSON:
    """Return a title, below which a new line of panels begins."""
    return {"type": "row", "title": title, "collapsed": False, "panels": [], "width": COLUMNS}


def stat(
    width: int,
    title: str,
    about: str,
    query: str,
    *,
    unit: str = "short",
    steps: Mapping[float, str] = {},  # nobody changes it
) -> JSON:
    """Return one large number; `steps` are its colors from a value on, green before."""
    colors = [{"color": GREEN if steps else BLUE, "value": None}]
    colors += [{"color": color, "value": value} for value, color in steps.items()]
    options = {
        "colorMode": "background" if steps else "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "percentChangeColorMode": "standard",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "showPercentChange": False,
        "textMode": "value",
        "wideLayout": True,
    }
    defaults = {"unit": unit, "thresholds": {"mode": "absolute", "steps": colors}}
    return _panel("stat", width, title, about, {"": query}) | {
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
    }


def graph(
    width: int,
    title: str,
    about: str,
    queries: Mapping[str, str],
    *,
    unit: str = "short",
    limit: float | None = None,
) -> JSON:
    """Return lines over time, from 0 on; `queries` are by legend, and `limit` is a red line."""
    custom: JSON = {
        "fillOpacity": 10,
        "lineWidth": 1,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"group": "A", "mode": "none"},
    }
    defaults: JSON = {"unit": unit, "min": 0, "custom": custom}
    if limit is not None:
        custom["thresholdsStyle"] = {"mode": "line"}
        steps = [{"color": GREEN, "value": None}, {"color": RED, "value": limit}]
        defaults["thresholds"] = {"mode": "absolute", "steps": steps}
    options = {
        "legend": {
            "calcs": ["lastNotNull", "max"],
            "displayMode": "table",
            "placement": "bottom",
            "showLegend": True,
        },
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    return _panel("timeseries", width, title, about, queries) | {
        "fieldConfig": {"defaults": defaults, "overrides": _colors()},
        "options": options,
    }


def stacked(panel: JSON) -> JSON:
    """Return a graph whose lines stand on each other."""
    custom = panel["fieldConfig"]["defaults"]["custom"]
    custom |= {"fillOpacity": 40, "stacking": {"group": "A", "mode": "normal"}}
    return panel


def heatmap(width: int, title: str, about: str, histogram: str, *, of: str) -> JSON:
    """Return how often which duration came, in seconds."""
    query = rise(f"{histogram}_bucket", "le", of=of)
    panel = _panel("heatmap", width, title, about, {"{{le}}": query})
    panel["targets"][0]["format"] = "heatmap"
    return panel | {
        "fieldConfig": {"defaults": {}, "overrides": []},
        "options": {
            "calculate": False,
            "cellGap": 1,
            "color": {
                "exponent": 0.5,
                "fill": "dark-orange",
                "mode": "scheme",
                "reverse": False,
                "scheme": "Oranges",
                "steps": 64,
            },
            "exemplars": {"color": "rgba(255,0,255,0.7)"},
            "legend": {"show": True},
            "showValue": "never",
            "tooltip": {"mode": "single", "yHistogram": False},
            "yAxis": {"axisPlacement": "left", "unit": "s"},
        },
    }


def timeline(
    width: int,
    title: str,
    about: str,
    queries: Mapping[str, str],
    words: Mapping[int, tuple[str, str]],
) -> JSON:
    """Return a bar for each series, with a word and a color for each of its values."""
    shown = {
        str(value): {"color": color, "index": index, "text": word}
        for index, (value, (word, color)) in enumerate(words.items())
    }
    defaults = {
        "custom": {"fillOpacity": 70, "lineWidth": 0},
        "mappings": [{"options": shown, "type": "value"}],
    }
    return _panel("state-timeline", width, title, about, queries) | {
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": {
            "legend": {
                "calcs": [],
                "displayMode": "list",
                "placement": "bottom",
                "showLegend": True,
            },
            "mergeValues": True,
            "rowHeight": 0.8,
            "showValue": "auto",
            "tooltip": {"mode": "single", "sort": "none"},
        },
    }


def table(
    width: int, title: str, about: str, query: str, columns: Sequence[str], *, unit: str = ""
) -> JSON:
    """Return labels of the present series as columns, and their values if these have a unit."""
    panel = _panel("table", width, title, about, {"": query})
    panel["targets"][0] |= {"format": "table", "instant": True, "range": False}
    names = [*columns, *(["Value"] if unit else [])]
    places = {name: index for index, name in enumerate(names)}
    return panel | {
        "fieldConfig": {"defaults": {"unit": unit} if unit else {}, "overrides": []},
        "options": {"cellHeight": "sm", "frameIndex": 0, "showHeader": True},
        "transformations": [
            {"id": "filterFieldsByName", "options": {"include": {"names": names}}},
            {"id": "organize", "options": {"excludeByName": {}, "indexByName": places}},
        ],
    }


def linked(panel: JSON, title: str, url: str) -> JSON:
    """Return a panel whose values lead to another dashboard."""
    panel["fieldConfig"]["defaults"]["links"] = [{"title": title, "url": url, "targetBlank": False}]
    return panel


def text(width: int, markdown: str) -> JSON:
    """Return a text."""
    options = {"content": markdown, "mode": "markdown"}
    return {"type": "text", "title": "", "options": options, "transparent": True, "width": width}


def lay_out(panels: Sequence[JSON]) -> list[JSON]:
    """Return the panels with their ids and places."""
    placed: list[JSON] = []
    left = top = height = 0
    for number, each in enumerate(panels, 1):
        panel = dict(each)
        width = panel.pop("width")
        if left + width > COLUMNS:
            left, top = 0, top + height
        height = _HEIGHTS.get(panel["type"], 8)
        place = {"h": height, "w": width, "x": left, "y": top}
        placed.append({"id": number, "gridPos": place, **panel})
        left += width
    return placed


_HEIGHTS: Final = {"row": 1, "stat": 4, "text": 3}


def _panel(kind: str, width: int, title: str, about: str, queries: Mapping[str, str]) -> JSON:
    targets = [
        {
            "datasource": SOURCE,
            "expr": query,
            "legendFormat": legend or "__auto",
            "range": True,
            "refId": chr(ord("A") + index),
        }
        for index, (legend, query) in enumerate(queries.items())
    ]
    return {
        "type": kind,
        "title": title,
        "description": about,
        "datasource": SOURCE,
        "targets": targets,
        "width": width,
    }


def _colors() -> list[JSON]:
    return [
        {
            "matcher": {"id": "byName", "options": name},
            "properties": [{"id": "color", "value": {"fixedColor": color, "mode": "fixed"}}],
        }
        for name, color in OF_STATES.items()
    ]
