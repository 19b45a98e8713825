"""TLS to the master: whose certificate is believed, and what name it must have."""

import os
import ssl
from typing import Any, Optional

NOVERIFY = "noverify"


class _Context(ssl.SSLContext):
    """Like OpenSSL's client, but a name given here is expected whatever host is dialled."""

    name: Optional[str] = None

    def wrap_socket(self, *args: Any, **kwargs: Any) -> ssl.SSLSocket:
        if self.name is not None:
            kwargs["server_hostname"] = self.name
        return super().wrap_socket(*args, **kwargs)


def tls(cert_file: Optional[str], cert_name: Optional[str], authority: Optional[str] = None) -> ssl.SSLContext:
    """`cert_file`: a PEM file; "noverify": any certificate will do; None: `authority`, a certificate in PEM; None as well: those
    that the system believes."""
    context = _Context(ssl.PROTOCOL_TLS_CLIENT)
    context.name = cert_name or None
    if cert_file == NOVERIFY:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif not cert_file and authority is not None:
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # it may be the master's own, that another one signed
        try:
            context.load_verify_locations(cadata=authority)
        except ssl.SSLError as e:
            raise ValueError(f"certs.json keeps what is no certificate for this master: {e}; take the entry out") from e
    elif not cert_file:
        context.load_default_certs()
    else:
        try:
            context.load_verify_locations(os.path.expanduser(cert_file))
        except (OSError, ssl.SSLError) as e:
            raise ValueError(
                f"the master's certificate {cert_file} (cert_path, DET_MASTER_CERT_FILE) cannot be read: {e.strerror or e}; name "
                f'a PEM file with it or with its authority\'s, or "{NOVERIFY}" to believe any'
            ) from e
    return context
