"""Why a secured connection could not be made, where asking again changes nothing."""

from __future__ import annotations

import ssl

from tenuto.model.http.exchange import UntrustedError

EXPIRED = frozenset({9, 10})
"""OpenSSL's numbers for a certificate that is not valid yet, or not any more."""
OTHER_HOST = frozenset({62, 63, 64})
"""The same for one that names another host or address."""
NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE"})
"""OpenSSL's reasons when what answers does not speak TLS."""


def judge_tls(error: BaseException, host: str) -> UntrustedError | None:
    """Return what is wrong with the certificate or the address, `None` where something else is."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, ssl.SSLCertVerificationError):
        reason = cause.verify_message or str(cause)
        return UntrustedError(f"the certificate of {host} is not trusted: {reason}", _hint(cause.verify_code))
    if cause is not None and cause.reason in NO_TLS:
        return UntrustedError(f"{host} does not speak TLS", "is the address to begin with http:// instead of https://?")
    return None


def _hint(code: int) -> str:
    if code in EXPIRED:
        return "renew the certificate, or set this machine's clock"
    if code in OTHER_HOST:
        return "use the name that the certificate was made for as the address"
    return "if you trust the server, set SSL_CERT_FILE to a PEM file with its certificate, or with its signer's"
