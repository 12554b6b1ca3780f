"""The route of the settings that the node runs with."""

from contextlib import suppress

from ......events.log.errors import NoLogError
from .....node.shown_settings import ShownSetting, describe_setting
from .....security.rights import Right
from ....replies.node import SettingInfo, SettingList
from ...commands.service import Served
from ...server.routing import Routes

routes = Routes("this process")
GROUP = "group"
_KINDS = {
    "file ": "file",
    "environment variable ": "environment",
    "the command line": "command line",
}
"""The source of a value in a word, by how the text about it begins."""


@routes.add("GET /settings", Right.VIEW)
def list_settings(service: Served) -> SettingList:
    """List the settings of the node and of its group, with their sources and without secrets.

    They are those that the node was started with, as `fairlead config` has them.
    """
    settings = {each.key: each for each in service.settings}
    with suppress(NoLogError), service.logs.reading(service.group_id) as logs:
        for key, value in logs.group.configs.items():
            settings[key] = describe_setting(key, value, GROUP)
    return SettingList([*map(_describe, settings.values())])


def _describe(setting: ShownSetting) -> SettingInfo:
    begin = next((each for each in _KINDS if setting.source.startswith(each)), "")
    return SettingInfo(
        setting.key,
        setting.value,
        setting.default,
        setting.unit,
        _KINDS.get(begin, setting.source),
        setting.source.removeprefix(begin) if begin else "",
        setting.meaning,
    )
