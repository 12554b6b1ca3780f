"""Installs the completion of a shell: the script that click writes for it."""

import os
from pathlib import Path
from typing import Final

from click.shell_completion import get_completion_class

from .command.printing import Failed, Misused
from .group import VerbGroup

FOLDERS: Final = {
    "bash": ".local/share/bash-completion/completions/{}",
    "zsh": ".zfunc/_{}",
    "fish": ".config/fish/completions/{}.fish",
}
"""Where a shell looks for completions, below the home folder."""
ZSH: Final = "; put `fpath+=~/.zfunc; autoload -Uz compinit; compinit` into ~/.zshrc"


def install(program: str, shell: str) -> str:
    """Write the script for a shell, "" is that of the user; return what was done.

    Raises `Failed` if the file cannot be written, `Misused` for a shell that is not known.
    """
    name = shell or Path(os.environ.get("SHELL", "")).name
    kind = get_completion_class(name) if name in FOLDERS else None
    if kind is None:
        raise Misused(f"there is completion for {', '.join(FOLDERS)}, not for {name or 'no shell'}")
    path = Path.home() / FOLDERS[name].format(program)
    script = kind(VerbGroup(program), {}, program, f"_{program.upper()}_COMPLETE").source()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{script}\n")
    except OSError as error:
        raise Failed(f"{path} cannot be written: {error.strerror or error}") from None
    return f"completion for {name} is in {path}{ZSH if name == 'zsh' else ''}; start a new shell"
