"""The collector that traces are sent to: its URL and headers, from the settings `traces.*`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from .resolving import ReferenceBroken, resolve

TRACES: Final = "traces."
"""What the settings begin with."""
ENDPOINT: Final = "traces.endpoint"
HEADERS: Final = "traces.headers"
SERVICE: Final = "traces.service.name"
_PATH: Final = "/v1/traces"
"""Where collectors take spans, if the URL has no path."""
_EXPORTER: Final = "opentelemetry.exporter.otlp.proto.http"
_HEADER: Final = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class TraceTarget:
    """A collector of traces: where it takes spans, and what each request to it carries."""

    endpoint: str
    headers: Mapping[str, str] = field(repr=False)
    """Some are secret."""
    service_name: str


def trace_target(values: Mapping[str, str], data_dir: Path) -> TraceTarget:
    """Return the collector of the `traces.*` settings, in which secrets may be references.

    Raises `ReferenceBroken`, also for a value that no header can have.
    """
    endpoint = values[ENDPOINT]
    if urlsplit(endpoint).path in {"", "/"}:
        endpoint = endpoint.rstrip("/") + _PATH
    written = parse_trace_headers(values[HEADERS])
    resolved = resolve({f"{HEADERS}: {name}": written[name] for name in written}, own=str(data_dir))
    headers = dict(zip(written, map(str.strip, resolved.values()), strict=True))
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()):
            raise ReferenceBroken(f"{HEADERS}: the value of {name} is none that a header can have")
    return TraceTarget(endpoint, headers, values[SERVICE])


def check_trace_endpoint(text: str) -> str:
    """Return the URL of a collector, or nothing; raises `ValueError`."""
    parts = urlsplit(text)
    if text and not (parts.scheme in {"http", "https"} and parts.hostname):
        raise ValueError("it is no http or https URL")
    if "@" in parts.netloc:
        raise ValueError(f"a password belongs into {HEADERS}")
    return text


def parse_trace_headers(text: str) -> Mapping[str, str]:
    """Return the values of headers by their names; raises `ValueError`."""
    headers: dict[str, str] = {}
    for each in filter(None, map(str.strip, text.split(","))):
        name, equals, value = each.partition("=")
        if not (equals and _HEADER.fullmatch(name.strip())):
            raise ValueError("a header is not NAME=VALUE")  # it may be a secret: it is not named
        headers[name.strip()] = value.strip()
    return headers


def has_exporter() -> bool:
    """Return whether the packages of the extra `otel` are installed."""
    try:
        return find_spec(_EXPORTER) is not None
    except ModuleNotFoundError:  # its parent package is missing as well
        return False
