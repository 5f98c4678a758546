"""Where a worker listens, and the head of a request to it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
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
_BODILESS = frozenset(("GET", "HEAD", "DELETE", "OPTIONS"))


@dataclass(frozen=True, slots=True)
class Origin:
    """A worker's host and port, with the request lines already rendered for it."""

    host: str
    port: int
    authority: bytes
    _lines: dict[tuple[str, str], bytes] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def parse(cls, base_url: str) -> Origin:
        """Read http://HOST[:PORT].

        Raises:
            UpstreamFailed: another scheme, no host, a bad port, a user or a path, not ASCII.
        """
        try:
            parts = urlsplit(base_url)
            port = parts.port or 80
        except ValueError as error:
            raise _unusable() from error
        plain = base_url.isascii() and not parts.path.strip("/") and "@" not in parts.netloc
        if parts.scheme != "http" or not parts.hostname or not plain or parts.query:
            raise _unusable()
        return cls(parts.hostname, port, parts.netloc.encode("ascii"))

    def line(self, method: str, path: str) -> bytes:
        """The request line and the host header.

        Raises:
            UpstreamFailed: the method or the path could not stand in a request line.
        """
        line = self._lines.get((method, path))
        if line is None:
            if not (_is_token(method) and path.startswith("/") and _is_visible(path)):
                raise UpstreamFailed("the request's path is not valid", extra={"sent": False})
            line = f"{method} {path} HTTP/1.1\r\nhost: ".encode("ascii") + self.authority + b"\r\n"
            if len(self._lines) < 256:  # paths with a query are many
                self._lines[method, path] = line
        return line


def sendable(headers: tuple[tuple[bytes, bytes], ...]) -> list[tuple[bytes, bytes]]:
    """`headers` without those that belong to the transport."""
    return [header for header in headers if header[0].lower() not in _OWN_HEADERS]


def request_head(origin: Origin, request: UpstreamRequest) -> bytes:
    """Everything before the body. Headers that belong to the transport are left out.

    Raises:
        UpstreamFailed: a header holds a line end or NUL, so it could smuggle a second request.
    """
    rows = [origin.line(request.method, request.path)]
    rows += [b"%b: %b\r\n" % header for header in sendable(request.headers)]
    if request.body or request.method not in _BODILESS:
        rows.append(b"content-length: %d\r\n" % len(request.body))
    rows.append(b"\r\n")
    head = b"".join(rows)
    lines = len(rows) + 1  # the first row has two
    if head.count(b"\n") != lines or head.count(b"\r") != lines or b"\0" in head:
        raise UpstreamFailed("a header's value is not valid", extra={"sent": False})
    return head


def _unusable() -> UpstreamFailed:
    return UpstreamFailed("the worker's address is not http://HOST:PORT", extra={"sent": False})


def _is_token(text: str) -> bool:
    return text.isascii() and text.isalpha()


def _is_visible(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text
