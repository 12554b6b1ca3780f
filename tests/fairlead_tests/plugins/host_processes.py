"""Plugin hosts, as the operating system shows them."""

import psutil

__all__ = ["command_of", "kill_plugin_host"]


def command_of(process: psutil.Process) -> str:
    """Return the command line of a process, "" if it has ended and was not waited for."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def kill_plugin_host() -> None:
    """Kill the plugin host that this process has started last, and wait for its end."""
    children = psutil.Process().children()
    hosts = [each for each in children if "fairlead.plugins.Boot" in command_of(each)]
    host = max(hosts, key=psutil.Process.create_time)
    host.kill()
    host.wait()
