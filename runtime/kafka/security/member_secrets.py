"""The secrets in connector configs, for members over Kafka's wire that may have them.

In the log they are sealed. A member is given them if it has the right to write to its group, and
its connection is encrypted or of this host; anybody else sees that there is a value. What was given
away comes back sealed in the configs of tasks, and masked in the reasons of statuses: no secret
gets into the log as it is. References (`${file:...}`) stay as they are: who runs the work resolves
them.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from ....actors.messages.asks import GrantedWork, MemberAsk, WorkReply
from ....actors.messages.errors import Error
from ....actors.messages.groups import ConnectReply
from ....actors.messages.members import PutTaskConfigs, ReportStatus, StatusUpdate
from ...config.secrets import CannotUnseal, Vault, hide_secrets, is_sealed, mask, passwords_in


class MemberSecrets:
    """Opens secrets for members, and keeps those that were given away out of what they report."""

    def __init__(self, vault: Vault | None = None) -> None:
        """Without a vault all secrets are hidden from everybody."""
        self._vault = vault
        self._given: dict[str, set[str]] = {}
        """The secrets that were given away, by connector."""

    def show(self, reply: ConnectReply, *, may_have: bool) -> ConnectReply:
        """Return what a member is answered, with the secrets in it opened or hidden."""
        work = reply.reply
        if not isinstance(work, WorkReply):
            return reply
        opens = may_have and self._vault is not None
        try:
            shown = replace(work, work=tuple(self._show(each, opens=opens) for each in work.work))
        except CannotUnseal as error:
            shown = WorkReply(Error.INVALID_CONFIG, str(error))
        return replace(reply, reply=shown)

    def _show(self, work: GrantedWork, *, opens: bool) -> GrantedWork:
        shown = [
            self._open(work.resource.connector, each) if opens else hide_secrets(each)
            for each in (work.connector_config, work.config)
        ]
        return replace(work, connector_config=shown[0], config=shown[1])

    def _open(self, connector: str, config: Mapping[str, str]) -> Mapping[str, str]:
        """Return a config with its secrets; raises `CannotUnseal`."""
        assert self._vault is not None  # noqa: S101  # as `show` has seen
        opened = {key: self._vault.unseal(connector, value) for key, value in config.items()}
        given = self._given.setdefault(connector, set())
        for key, value in opened.items():
            if is_sealed(config[key]):
                given |= {value, *passwords_in(value)} - {""}
        return opened

    def conceal(self, ask: MemberAsk) -> MemberAsk:
        """Return an ask without the secrets that were given away."""
        request = ask.request
        if isinstance(request, PutTaskConfigs) and (given := self._given.get(request.connector)):
            configs = tuple(self._seal(request.connector, each, given) for each in request.configs)
            return replace(ask, request=replace(request, configs=configs))
        if self._given and isinstance(request, ReportStatus):
            updates = tuple(map(self._mask, request.updates))
            return replace(ask, request=replace(request, updates=updates))
        return ask

    def _mask(self, update: StatusUpdate) -> StatusUpdate:
        given = self._given.get(update.resource.connector, ())
        return replace(update, reason=mask(update.reason, given))

    def _seal(
        self, connector: str, config: Mapping[str, str], given: Collection[str]
    ) -> Mapping[str, str]:
        assert self._vault is not None  # noqa: S101  # it has opened what was given away
        return {
            key: self._vault.seal(connector, value)
            if any(each in value for each in given)
            else value
            for key, value in config.items()
        }
