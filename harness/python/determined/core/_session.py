"""HTTP to the master, as a task of the cluster speaks it."""

import contextlib
import http.client
import json
import logging
import math
import os
import time
import urllib.error
import urllib.request
from typing import Any, Callable, ContextManager, Dict, Optional

from determined._refusal import text_of
from determined._tls import tls

logger = logging.getLogger("determined.core")


def as_json(value: Any) -> Any:
    """A value as JSON has it: arrays as lists, numbers that JSON lacks as their names."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {str(k): as_json(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(v) for v in value]
    return value


class NotFound(Exception):
    """The master answered 404."""


class MasterError(Exception):
    """The master refused; the text is its own."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"the master answered {status}: {text}")
        self.status = status


class Session:
    """Calls with the task's token; what did not reach the master is tried again."""

    _header = "Grpc-Metadata-x-allocation-token"

    def __init__(
        self, url: str, token: str, cert_file: Optional[str] = None, cert_name: Optional[str] = None
    ) -> None:
        masters = [u.rstrip("/") for u in (os.environ.get("DET_MASTERS") or "").split(",")]
        self._urls = masters if url.rstrip("/") in masters else [url.rstrip("/")]
        self._at = 0  # which of them is asked
        self._token = token
        self._context = tls(cert_file, cert_name) if url.startswith("https:") else None
        retry = json.loads(os.environ.get("DET_RETRY_CONFIG") or "{}")
        self._retries = int(retry.get("total", 20))
        self._backoff = float(retry.get("backoff_factor", 0.5))
        self.waiting: Callable[[], ContextManager[None]] = contextlib.nullcontext  # around each call

    def get(self, path: str, timeout: Optional[float] = 60) -> Any:
        return self._call("GET", path, None, timeout)

    def post(self, path: str, body: Any, headers: Optional[Dict[str, str]] = None) -> Any:
        return self._call("POST", path, body, 60, headers)

    def put(self, path: str, body: Any) -> Any:
        return self._call("PUT", path, body, 60)

    def patch(self, path: str, body: Any) -> Any:
        return self._call("PATCH", path, body, 60)

    def delete(self, path: str, body: Any = None) -> Any:
        return self._call("DELETE", path, body, 60)

    def _call(
        self, method: str, path: str, body: Any, timeout: Optional[float], headers: Optional[Dict[str, str]] = None
    ) -> Any:
        with self.waiting():
            return self._call_patiently(method, path, body, timeout, headers)

    def _call_patiently(
        self, method: str, path: str, body: Any, timeout: Optional[float], headers: Optional[Dict[str, str]]
    ) -> Any:
        for attempt in range(self._retries + 1):
            try:
                return self._once(method, path, body, timeout, headers or {})
            except urllib.error.HTTPError as e:
                if e.code not in (502, 503, 504) or attempt == self._retries:
                    raise self._refused(e) from None
            except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError) as e:
                if attempt == self._retries:
                    raise ConnectionError(f"{method} {self._urls[self._at]}{path}: {e}") from e
            self._at = (self._at + 1) % len(self._urls)  # one that stands by may lead now
            time.sleep(min(self._backoff * 2**attempt, 30.0))
        raise AssertionError("unreachable")

    def _once(self, method: str, path: str, body: Any, timeout: Optional[float], headers: Dict[str, str]) -> Any:
        data = json.dumps(as_json(body)).encode() if body is not None else None
        request = urllib.request.Request(self._urls[self._at] + path, data=data, method=method)
        request.add_header(self._header, f"Bearer {self._token}")
        request.add_header("Content-Type", "application/json")
        for name, value in headers.items():
            request.add_header(name, value)
        text = self._open(request, timeout)
        return json.loads(text) if text else {}

    def _open(self, request: urllib.request.Request, timeout: Optional[float]) -> bytes:
        with urllib.request.urlopen(request, timeout=timeout, context=self._context) as answer:
            return bytes(answer.read())

    @staticmethod
    def _refused(e: urllib.error.HTTPError) -> Exception:
        text = text_of(e)
        return NotFound(text) if e.code == 404 else MasterError(e.code, text)
