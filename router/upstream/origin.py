"""Where a worker listens, and the head of a request to it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

from router.core.errors import UpstreamFailed

if TYPE_CHECKING:
    from router.upstream.base import UpstreamRequest

# The transport decides how a message is framed and how long a connection lives.
_OWN_HEADERS = frozenset(
    (
        b"connection",
        b"content-length",
        b"expect",
        b"host",
        b"keep-alive",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
_Key: TypeAlias = tuple[str, str, tuple[tuple[bytes, bytes], ...]]
_STARTS_KEPT = 256  # a worker is asked on a few paths with the same headers; the rest is traces
_BODILESS = frozenset(("GET", "HEAD", "DELETE", "OPTIONS"))


@dataclass(frozen=True, slots=True)
class Origin:
    """A worker's host and port, with the starts of requests already rendered for it."""

    host: str
    port: int
    authority: bytes
    starts: dict[_Key, bytes] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def parse(cls, base_url: str, schemes: tuple[str, ...] = ("http",)) -> Origin:
        """Read SCHEME://HOST[:PORT].

        Raises:
            UpstreamFailed: another scheme, no host, a bad port, a user or a path, not ASCII.
        """
        try:
            parts = urlsplit(base_url)
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError as error:
            raise _unusable(schemes) from error
        plain = base_url.isascii() and not parts.path.strip("/") and "@" not in parts.netloc
        if parts.scheme not in schemes or not parts.hostname or not plain or parts.query:
            raise _unusable(schemes)
        return cls(parts.hostname, port, parts.netloc.encode("ascii"))


def sendable(headers: tuple[tuple[bytes, bytes], ...]) -> list[tuple[bytes, bytes]]:
    """`headers` without those that belong to the transport."""
    return [header for header in headers if header[0].lower() not in _OWN_HEADERS]


def request_head(origin: Origin, request: UpstreamRequest) -> bytes:
    """Everything before the body. Headers that belong to the transport are left out.

    Raises:
        UpstreamFailed: a header holds a line end or NUL, so it could smuggle a second request.
    """
    key = (request.method, request.path, request.headers)
    start = origin.starts.get(key)
    if start is None:
        start = _start(origin, request)
        if len(origin.starts) >= _STARTS_KEPT:
            origin.starts.clear()
        origin.starts[key] = start
    if request.body or request.method not in _BODILESS:
        return b"%bcontent-length: %d\r\n\r\n" % (start, len(request.body))
    return start + b"\r\n"


def _start(origin: Origin, request: UpstreamRequest) -> bytes:
    """The request line and all headers but the length."""
    method, path = request.method, request.path
    if not (_is_token(method) and path.startswith("/") and _is_visible(path)):
        raise UpstreamFailed("the request's path is not valid", extra={"sent": False})
    rows = [f"{method} {path} HTTP/1.1\r\n".encode("ascii")]
    rows.append(b"host: %b\r\n" % origin.authority)
    rows += [b"%b: %b\r\n" % header for header in sendable(request.headers)]
    start = b"".join(rows)
    if not start.count(b"\n") == start.count(b"\r") == len(rows) or b"\0" in start:
        raise UpstreamFailed("a header's value is not valid", extra={"sent": False})
    return start


def _unusable(schemes: tuple[str, ...]) -> UpstreamFailed:
    wanted = " or ".join(f"{scheme}://HOST:PORT" for scheme in schemes)
    return UpstreamFailed(f"the worker's address is not {wanted}", extra={"sent": False})


def _is_token(text: str) -> bool:
    return text.isascii() and text.isalpha()


def _is_visible(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text
