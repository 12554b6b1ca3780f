"""The commands `up` and `worker` in a process of their own, with settings as `key=value`."""

import sys
from pathlib import Path

from actor_system import watch_files

from fairlead.runtime.config.load import load_config
from fairlead.runtime.node.cluster import run_worker, up


def main(command: str, *settings: str) -> int:
    """Do a command; returns its exit code."""
    watch_files(Path.cwd().resolve())
    config = load_config(environ={}, overrides=settings)
    return up(config) if command == "up" else run_worker(config)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
