"""Reads the dead letters of a connector with its class, and hides the secrets of its config."""

from collections.abc import Mapping
from http import HTTPStatus

from ....config.references.secret_patterns import redact
from ....pipeline.spi.errors import Away, CursorRefused, LettersRefused
from ....pipeline.spi.rows import DeadLetter, LetterPage, LetterQuery
from ..server.errors import ApiError
from .asked_connector import AskedConnector
from .external_checks import Unchecked


class LetterReader(AskedConnector):
    """A connector's class, which reads the connector's dead letters."""

    def read(self, query: LetterQuery) -> LetterPage:
        """Return a page of dead letters; raises `ApiError` if they cannot be read here."""
        read, name = self.plugin.made_by.read_letters, self.config["name"]
        try:
            page = self.checks.ask(self.plugin, lambda outside: read(self.config, outside, query))
        except CursorRefused as refused:
            raise ApiError(HTTPStatus.BAD_REQUEST, str(refused)) from None
        except LettersRefused as refused:
            status, why = HTTPStatus.NOT_FOUND, f"of {name} no dead letters can be read: {refused}"
        except (Away, Unchecked) as error:
            status = HTTPStatus.SERVICE_UNAVAILABLE
            why = f"the dead letters of {name} are out of reach: {error}"
        else:
            return page._replace(letters=[*map(self._without_secrets, page.letters)])
        raise ApiError(status, self.secrets.hide(why))

    def retry_config(
        self, stored: Mapping[str, str], task_config: Mapping[str, str], name: str
    ) -> Mapping[str, str]:
        """Return the config of a connector that retries the letters; what is sealed stays so.

        Raises `ApiError` if they cannot be retried.
        """
        try:
            return self.plugin.made_by.retry_config(stored, task_config, name)
        except LettersRefused as refused:
            told = f"the dead letters of {self.config['name']} cannot be retried: {refused}"
            raise ApiError(HTTPStatus.CONFLICT, told) from None

    def _without_secrets(self, letter: DeadLetter) -> DeadLetter:
        """Hide the secrets of the config everywhere, and in the reason what looks like one.

        The text is the row's own, and stays as it is kept otherwise.
        """
        hide = self.secrets.hide
        return letter._replace(
            reason=redact(hide(letter.reason)),
            place=hide(letter.place),
            raw=None if letter.raw is None else hide(letter.raw),
        )
