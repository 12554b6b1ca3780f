"""The commands `up` and `worker` in a separate process, with settings as `key=value`."""

import sys
from pathlib import Path

from fairlead.runtime.config.load import load_config
from fairlead.runtime.interfaces.cli.main import main as fairlead
from fairlead.runtime.node.launcher.commands import up
from fairlead_tests.system_process import watch_files


def main(command: str, *words: str) -> int:
    """Run a command; return its exit code. Other arguments are options of `worker`."""
    watch_files(Path.cwd().resolve())
    settings = [word for word in words if "=" in word]
    if command == "up":
        return up(load_config(environ={}, overrides=settings))
    options = [word for word in words if "=" not in word]
    given = [part for setting in settings for part in ("--set", setting)]
    return fairlead([command, *options, *given])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
