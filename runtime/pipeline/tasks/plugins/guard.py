"""The objects of a plugin as a task sees them: each call of them has a deadline.

A source or a sink that a connection fails to is away, also where a plugin does not say so.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any, Final, cast

from ...spi.connector import Connector, Pipeline
from ...spi.errors import Away, ContractBroken, SinkAway, SourceAway
from ...spi.sink import Sink
from ...spi.source import Source
from ...spi.transform import Transform
from .calls import Calls
from .results import check_manifest

_LAST: Final = ("close", "stop")
"""What lets go of something."""


class _Guarded:
    """Passes on each call of an object, with a deadline and within what it may raise."""

    def __init__(
        self,
        role: str,
        of: object,
        calls: Calls,
        jobs: Collection[str] = (),
        checks: Mapping[str, Callable[[object], None]] | None = None,
        away: type[Away] | None = None,
    ) -> None:
        self._role = role
        self._of = of
        self._calls = calls
        self._jobs = jobs
        """The calls that a Spark job runs in."""
        self._checks = checks or {}
        """What raises `ContractBroken` at what a call must not return, by its name."""
        self._away = away
        """What a failed connection is told as; None: it is not known what is away."""

    def __getattr__(self, name: str) -> object:
        what = f"{self._role}.{name}"
        if name in _LAST:
            return lambda: self._calls.run_last(what, getattr(self._of, name))
        found = self._calls.run(what, cast("Callable[..., object]", getattr), self._of, name)
        if not callable(found):
            return found
        run = self._calls.run_job if name in self._jobs else self._calls.run

        check = self._checks.get(name, _unchecked)

        @wraps(found)
        def call(*args: object, **kwargs: object) -> object:
            try:
                result = run(what, found, *args, **kwargs)
            except (ConnectionError, TimeoutError) as error:
                if self._away is None:
                    raise
                raise self._away(f"{what}: {error.strerror or error}") from error
            check(result)
            return result

        return call


def guard_connector(connector: Connector, calls: Calls) -> Connector:
    """Return a connector whose calls are timed."""
    return cast("Connector", _Guarded("connector", connector, calls))


def guard_pipeline(pipeline: Pipeline, calls: Calls) -> Pipeline:
    """Return a pipeline whose calls are timed; raises `ContractBroken` if it is none."""
    _check(pipeline, Pipeline, "pipeline")
    _check(pipeline.source, Source, "source")
    _check(pipeline.sink, Sink, "sink")
    for transform in pipeline.transforms:
        _check(transform, Transform, "transform")
    jobs = () if pipeline.sink.takes_arrow else ("stage", "write")
    checks = {"stage": check_manifest, "write": check_manifest}
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
        sink=cast("Sink[Any]", _Guarded("sink", pipeline.sink, calls, jobs, checks, SinkAway)),
        dead_letters=cast("Sink[Any] | None", letters),
    )


def _unchecked(_: object) -> None:
    """Take whatever a call returns."""


def _check(given: object, kind: type, what: str) -> None:
    if not isinstance(given, kind):
        found = type(given).__name__
        raise ContractBroken(f"connector.pipeline gave a {found} as the {what}: no {kind.__name__}")
