"""fairlead: runs data connectors on Spark, and can explain every move.

Read it from the ground up: `events` is what is written down, `actors` are those who speak,
`projections` those who read, and `runtime` runs them all. ARCHITECTURE.md says more.
"""


def __getattr__(name: str) -> str:
    """Return `__version__`, the version of the installed distribution, when it is asked for."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version  # noqa: PLC0415  # slow, and rarely used

    from .runtime.pipeline.installed import DISTRIBUTION  # noqa: PLC0415  # see above

    return version(DISTRIBUTION)
