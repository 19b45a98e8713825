"""HTTP to the master as a person speaks it: with a user's token."""

import hashlib
import http.client
import json
import os
import pathlib
import socket
import ssl
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Dict, Iterator, List, Optional

from determined._refusal import text_of
from determined._tls import NOVERIFY, tls

_SALT = "GubPEmmotfiK9TMD6Zdw"  # what clients of the master put before a password, so that it is never sent bare
ANSWER_S = 60.0  # more than the master takes for anything but a poll


class APIException(Exception):
    """The master refused; `status` is HTTP's."""

    undone = False  # and may be asked for again

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class NotFoundException(APIException):
    pass


class UnauthenticatedException(APIException):
    pass


def hash_password(password: str) -> str:
    return hashlib.sha512((_SALT + password).encode()).hexdigest() if password else ""


def own_password() -> Optional[str]:
    """As `det` reads it: DET_PASS, else the first line of the file that DET_PASS_FILE names; None: neither is set."""
    given, file = os.environ.get("DET_PASS"), os.environ.get("DET_PASS_FILE")
    if given is not None or not file:
        return given
    try:
        text = pathlib.Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise ValueError(f"DET_PASS_FILE, which is {file}, cannot be read: {e}") from e
    return next(iter(text.splitlines()), "")


def masters(given: Optional[str]) -> List[str]:
    """Several stand between commas: one leads, and the others stand by."""
    urls = given or os.environ.get("DET_MASTER") or os.environ.get("DET_MASTER_ADDR") or "localhost:8080"
    return [_full(url.rstrip("/")) for url in urls.split(",")]


def _full(url: str) -> str:
    """With its scheme and its port, as `det` writes it and keeps things by."""
    parts = urllib.parse.urlsplit(url if "://" in url else f"http://{url}")
    port = 8080 if "://" not in url else 443 if parts.scheme == "https" else 80
    return f"{parts.scheme}://{parts.netloc}{'' if parts.port else f':{port}'}{parts.path}"


def _kept(file: str) -> Any:
    """What `det` keeps in this file of the user's configuration folder; None: nothing."""
    home = pathlib.Path(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"))
    try:
        return json.loads((home / "determined" / file).read_text())
    except FileNotFoundError:
        return None


def keep_login(url: str, user: str, token: str) -> None:
    """As `det user login` does it: for this master, this user is active from now on."""
    folder = pathlib.Path(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")) / "determined"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        whole = _kept("auth.json")
        of_master = whole["masters"].setdefault(url, {})
        of_master.setdefault("tokens", {})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        of_master = {"tokens": {}}
        whole = {"version": 2, "masters": {url: of_master}}
    of_master["active_user"] = user
    of_master["tokens"][user] = token
    fd, new = tempfile.mkstemp(prefix=".auth.json.", dir=folder)  # for its owner's eyes only
    with open(fd, "w", encoding="utf-8") as f:
        json.dump(whole, f)
    os.replace(new, folder / "auth.json")


class Master:
    """One master and one user."""

    def __init__(
        self,
        url: Optional[str],
        user: Optional[str],
        password: Optional[str],
        cert_path: Optional[str],
        cert_name: Optional[str],
        noverify: bool,
    ) -> None:
        self._urls = masters(url)
        self.url = self._urls[0]  # by which `det user login` keeps tokens and authorities
        cert_path = NOVERIFY if noverify else cert_path or os.environ.get("DET_MASTER_CERT_FILE")
        cert_name = cert_name or os.environ.get("DET_MASTER_CERT_NAME")
        self._authority = self._pinned() if self.url.startswith("https:") and not cert_path else None
        is_tls = any(u.startswith("https:") for u in self._urls)
        self._context = tls(cert_path, cert_name, self._authority) if is_tls else None
        known = self._known()
        self.user: str = user or os.environ.get("DET_USER") or known.get("active_user") or "determined"
        self._token = os.environ.get("DET_USER_TOKEN") if user is None else None
        self._password = password if password is not None or self._token is not None else own_password()
        if self._token is None and self._password is None:
            self._token = known.get("tokens", {}).get(self.user)
        if self._token is None:
            self.log_in()

    def log_in(self) -> None:
        body = {"username": self.user, "password": hash_password(self._password or ""), "isHashed": True}
        self._token = self.post("/api/v1/auth/login", body)["token"]

    def log_out(self) -> None:
        self.post("/api/v1/auth/logout", None)
        self._token = None

    def _known(self) -> Dict[str, Any]:
        """What `det user login` has left of this master: its users' tokens, and who is active."""
        try:
            return dict(_kept("auth.json")["masters"].get(self.url) or {})
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}

    def _pinned(self) -> Optional[str]:
        """The authority that a person told `det` to trust for this master; no other one counts then."""
        try:
            kept = _kept("certs.json")
            return kept.get(self.url) if kept is not None else None
        except (OSError, ValueError, AttributeError) as e:
            raise ValueError(
                f"certs.json of the configuration folder, which keeps whom to take for a master, cannot be read: {e}; "
                "remove it, and det asks for each master's authority again"
            ) from e

    # ---- calls ----

    def get(self, path: str, **query: Any) -> Any:
        return self._json("GET", path + self._query(query), None)

    def post(self, path: str, body: Any) -> Any:
        return self._json("POST", path, body)

    def patch(self, path: str, body: Any) -> Any:
        return self._json("PATCH", path, body)

    def put(self, path: str, body: Any = None) -> Any:
        return self._json("PUT", path, body)

    def delete(self, path: str, body: Any = None) -> Any:
        return self._json("DELETE", path, body)

    def poll(self, path: str, seconds: float) -> Any:
        """A route that answers once there is something; None: not within this time."""
        try:
            with self._open("GET", path, None, timeout=seconds) as answer:
                return json.loads(answer.read())
        except socket.timeout:  # before Python 3.10 no TimeoutError
            return None
        except http.client.HTTPException as e:
            raise ConnectionError(f"GET {path}: {e}") from e

    def stream(self, path: str, **query: Any) -> Iterator[Dict[str, Any]]:
        """The objects of a streaming route, one a line, as they come."""
        with self._open("GET", path + self._query(query), None, timeout=None) as answer:
            for line in answer:
                if not line.strip():
                    continue
                item = json.loads(line)
                if "error" in item:
                    raise APIException(int(item["error"].get("httpCode", 500)), item["error"].get("message", ""))
                yield item["result"]

    def download(self, path: str, accept: str) -> Any:
        return self._open("GET", path, None, timeout=None, accept=accept)

    @staticmethod
    def _query(query: Dict[str, Any]) -> str:
        given = {k: v for k, v in query.items() if v is not None}
        for k, v in given.items():
            given[k] = str(v).lower() if isinstance(v, bool) else v
        return "?" + urllib.parse.urlencode(given, doseq=True) if given else ""

    def _json(self, method: str, path: str, body: Any) -> Any:
        try:
            with self._open(method, path, body, timeout=ANSWER_S) as answer:
                text = answer.read()
        except socket.timeout as e:
            raise ConnectionError(f"{method} {path}: the master has not answered within {ANSWER_S} seconds") from e
        except http.client.HTTPException as e:
            raise ConnectionError(f"{method} {path}: the master's answer was cut off ({e!r})") from e
        return json.loads(text) if text else {}

    def _open(
        self, method: str, path: str, body: Any, timeout: Optional[float], accept: str = "application/json"
    ) -> Any:
        """The first master that takes it; the next one is asked only where this one cannot have done it."""
        data = json.dumps(body).encode() if body is not None else None
        for url in self._urls[:-1]:
            try:
                return self._ask(url, method, path, data, timeout, accept)
            except APIException as e:
                if e.status != 503 or not (method == "GET" or e.undone):
                    raise
            except ConnectionError as e:
                reason = getattr(e.__cause__, "reason", None)
                if method != "GET" and not isinstance(reason, (ConnectionRefusedError, socket.gaierror)):
                    raise
        return self._ask(self._urls[-1], method, path, data, timeout, accept)

    def _ask(
        self, url: str, method: str, path: str, data: Optional[bytes], timeout: Optional[float], accept: str
    ) -> Any:
        request = urllib.request.Request(url + path, data=data, method=method)
        request.add_header("Accept", accept)
        request.add_header("Content-Type", "application/json")
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        try:
            return urllib.request.urlopen(request, timeout=timeout, context=self._context)
        except urllib.error.HTTPError as e:
            raise self._refused(e) from None
        except urllib.error.URLError as e:
            if isinstance(e.reason, ssl.SSLCertVerificationError):
                raise ConnectionError(f"{method} {path}: {self._distrust(url)} ({e.reason})") from e
            raise ConnectionError(
                f"{method} {path}: the master at {url} cannot be reached ({e.reason}); say where it is by "
                "login(master=...) or the environment's DET_MASTER"
            ) from e

    def _distrust(self, url: str) -> str:
        if self._authority is None:
            return (
                f"nothing vouches for the certificate of {url}: name its authority's by login(cert_path=...) or "
                "DET_MASTER_CERT_FILE"
            )
        return (
            f"THE CERTIFICATE OF {url} IS NOT BY THE AUTHORITY THAT `det` KEEPS FOR IT: somebody may stand between you and the "
            "master; nothing was sent. Where the master's operator gives you another one, name its file by login(cert_path=...) or "
            "DET_MASTER_CERT_FILE, which comes before what is kept"
        )

    @staticmethod
    def _refused(e: urllib.error.HTTPError) -> APIException:
        text = text_of(e)
        kind = {401: UnauthenticatedException, 404: NotFoundException}.get(e.code, APIException)
        refused = kind(e.code, text)
        refused.undone = "Retry-After" in e.headers  # a master that cannot tell leaves it out
        return refused
