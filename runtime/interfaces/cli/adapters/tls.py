"""TLS of the command line: whom it trusts, who it is, and what went wrong in a sentence."""

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import ssl

_EXPIRED, _NOT_YET = 10, 9
_OTHER_NAME: Final = {62, 64}
_UNKNOWN_AUTHORITY: Final = {18, 19, 20, 21}
"""OpenSSL's numbers of what is wrong with a certificate (`X509_V_ERR_…`)."""
_PLAIN: Final = ("WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE")
_WANTED: Final = ("CERTIFICATE_REQUIRED", "HANDSHAKE_FAILURE", "BAD_CERTIFICATE")


class TlsFiles(NamedTuple):
    """The files that a client of https uses; empty: those of the system, and none of its own."""

    ca: str = ""
    """The authorities of the server's certificate, in PEM."""
    cert: str = ""
    """The client's certificate and private key, in PEM."""


NO_FILES: Final = TlsFiles()


class TlsFilesRefusedError(Exception):
    """A file cannot be used; the message says which, and why."""


def client_context(files: TlsFiles) -> "ssl.SSLContext":
    """Return the context of a client of https; raises `TlsFilesRefusedError`."""
    import ssl  # noqa: PLC0415  # http needs none

    option, file = "--ca", files.ca
    try:
        context = ssl.create_default_context(cafile=files.ca or None)
        option, file = "--cert", files.cert
        if files.cert:
            # Without a password OpenSSL would ask the terminal for one.
            context.load_cert_chain(files.cert, password=_no_password)
    except FileNotFoundError:
        raise TlsFilesRefusedError(f"{option} {file} does not exist") from None
    except ssl.SSLError as error:
        needs = "a certificate and its private key" if option == "--cert" else "a certificate"
        what = f"it has {needs} in PEM, not encrypted" if option == "--cert" else f"needs {needs}"
        raise TlsFilesRefusedError(
            f"{option} {file} cannot be used ({error.reason or 'no PEM'}): {what}"
        ) from None
    except OSError as error:
        raise TlsFilesRefusedError(f"{option} {file} cannot be read: {error.strerror}") from None
    return context


def _no_password() -> str:
    return ""


def describe_tls_error(error: "ssl.SSLError") -> str:
    """Return what went wrong in TLS, and what to do."""
    code = getattr(error, "verify_code", 0)
    if code:
        return _describe_certificate(code, getattr(error, "verify_message", str(error)))
    reason = error.reason or str(error)
    if any(each in reason for each in _PLAIN):
        return "it does not speak TLS: if its URL begins with http://, write that"
    if "UNKNOWN_CA" in reason:
        return "it does not know the authority of your certificate: use another with --cert"
    if any(each in reason for each in _WANTED):
        return "it wants a client's certificate: give yours with --cert FILE"
    if "EOF" in reason:
        return "it ended the connection: does it want another client's certificate (--cert FILE)?"
    return f"TLS failed ({reason})"


def _describe_certificate(code: int, message: str) -> str:
    if code == _EXPIRED:
        return "its certificate has expired: it has to be renewed there"
    if code == _NOT_YET:
        return "its certificate is not valid yet: is the clock of this host right?"
    if code in _OTHER_NAME:
        return f"its certificate is for another host ({message}): use the name that it has"
    if code in _UNKNOWN_AUTHORITY:
        return (
            "the authority of its certificate is not known here: give it with --ca FILE, if you"
            " trust it"
        )
    return f"its certificate is refused ({message})"
