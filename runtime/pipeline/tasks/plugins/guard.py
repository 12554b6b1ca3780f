"""Proxies of a plugin's objects: each call has a deadline, and its result is checked.

A connection error of a source or a sink becomes `SourceAway` or `SinkAway`, even if the plugin does
not raise these.
"""

from collections.abc import Callable, Collection, Mapping
from copy import copy
from dataclasses import replace
from functools import wraps
from typing import Any, Final, cast

from ...spi.connector import Connector, Pipeline
from ...spi.errors import Away, ContractBroken, SinkAway, SourceAway
from ...spi.sink import Sink
from ...spi.source import Source
from ...spi.transform import Transform
from .calls import Calls
from .results import check_manifest, check_staged_parts, check_staged_table

_RELEASING: Final = ("close", "stop")
"""The methods that release resources."""


class _Guarded:
    """A proxy of an object: its calls have deadlines and raise only what a plugin may raise."""

    def __init__(
        self,
        role: str,
        target: object,
        calls: Calls,
        jobs: Collection[str] = (),
        checks: Mapping[str, Callable[[object], None]] | None = None,
        away: type[Away] | None = None,
    ) -> None:
        self._role = role
        self._target = target
        self._calls = calls
        self._jobs = jobs
        """The methods that run a Spark job."""
        self._checks = checks or {}
        """Functions that raise `ContractBroken` for an invalid result, by the method's name."""
        self._away = away
        """The error for a failed connection; None: the plugin's own error is raised."""

    def __copy__(self) -> "_Guarded":
        target = copy(self._target)
        return _Guarded(self._role, target, self._calls, self._jobs, self._checks, self._away)

    def __getattr__(self, name: str) -> object:
        call_name = f"{self._role}.{name}"
        if name in _RELEASING:
            return lambda: self._calls.run_release(call_name, getattr(self._target, name))
        attribute = self._calls.run(
            call_name, cast("Callable[..., object]", getattr), self._target, name
        )
        if not callable(attribute):
            return attribute
        run = self._calls.run_job if name in self._jobs else self._calls.run

        check = self._checks.get(name, _unchecked)

        @wraps(attribute)
        def call(*args: object, **kwargs: object) -> object:
            try:
                result = run(call_name, attribute, *args, **kwargs)
            except (ConnectionError, TimeoutError) as error:
                if self._away is None:
                    raise
                raise self._away(f"{call_name}: {error.strerror or error}") from error
            check(result)
            return result

        return call


def guard_connector(connector: Connector, calls: Calls) -> Connector:
    """Return a connector whose calls have deadlines."""
    return cast("Connector", _Guarded("connector", connector, calls))


def guard_pipeline(pipeline: Pipeline, calls: Calls) -> Pipeline:
    """Return a pipeline whose calls have deadlines; raises `ContractBroken` for wrong types."""
    _require(pipeline, Pipeline, "pipeline")
    _require(pipeline.source, Source, "source")
    _require(pipeline.sink, Sink, "sink")
    for transform in pipeline.transforms:
        _require(transform, Transform, "transform")
    of_job = "stage", "stage_parts", "stage_table", "write"
    jobs = () if pipeline.sink.takes_arrow else of_job
    checks = {"stage": check_manifest, "write": check_manifest}
    of_sink = {**checks, "stage_parts": check_staged_parts, "stage_table": check_staged_table}
    letters = pipeline.dead_letters and _Guarded(
        "dead letters", pipeline.dead_letters, calls, ("stage",), checks, SinkAway
    )
    return replace(
        pipeline,
        source=cast("Source[Any]", _Guarded("source", pipeline.source, calls, away=SourceAway)),
        transforms=tuple(
            cast("Transform", _Guarded(f"transform {type(each).__name__}", each, calls))
            for each in pipeline.transforms
        ),
        sink=cast("Sink[Any]", _Guarded("sink", pipeline.sink, calls, jobs, of_sink, SinkAway)),
        dead_letters=cast("Sink[Any] | None", letters),
    )


def _unchecked(_: object) -> None:
    """Accept any result."""


def _require(value: object, kind: type, what: str) -> None:
    if not isinstance(value, kind):
        name = type(value).__name__
        raise ContractBroken(f"connector.pipeline gave a {name} as the {what}: no {kind.__name__}")
