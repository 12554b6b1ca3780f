"""The settings of plugin hosts: a module that every verb of the command line can afford."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostOptions:
    """The settings of each plugin host."""

    heap: str = "512m"
    """In Java's notation."""
    java_options: str = ""
    """Further options of the JVM, as in a shell."""
    truststore: str = ""
    """The certificates that it trusts; "" for the system's own, or else those of the JVM."""
    wrapper: str = ""
    """A command that runs the JVM, as in a shell; "" for none."""
