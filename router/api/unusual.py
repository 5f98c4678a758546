"""uvicorn's protocol for the connections that `router.api.wire` hands over, with three differences.

A head has a bound, what is no HTTP is refused in the contract's form instead of plain text, and
nothing after an offer to change the protocol is read as a request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from router.core import BadRequest, TooLarge

if TYPE_CHECKING:
    from router.core import GatewayError

MAX_HEAD: Final = 65_536  # bytes; what is over by less than one read of the socket still passes


class UnusualProtocol(HttpToolsProtocol):
    """One client's connection."""

    _head = 0  # bytes read of a head that is not complete yet
    _is_deaf = False  # where its body would end is unknown: nothing more is read

    def data_received(self, data: bytes) -> None:
        """Bytes have come; a head that never ends is not waited for."""
        if self._is_deaf:
            return
        if self._head > MAX_HEAD:
            self._refuse(TooLarge(f"the request's head is larger than {MAX_HEAD} bytes"))
            return
        self._head += len(data)
        super().data_received(data)

    def on_headers_complete(self) -> None:
        """The head is complete: what follows is counted elsewhere."""
        self._head = -(1 << 62)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The next head begins."""
        self._head = 0
        super().on_message_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """Another protocol was offered; llhttp leaves the request's body where it is."""
        self._is_deaf = True
        if self.cycle is not None:
            self.cycle.keep_alive = False

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP."""
        self._refuse(BadRequest(msg, code="invalid_http"))

    def _refuse(self, error: GatewayError) -> None:
        body = error.body()
        rows = (
            b"HTTP/1.1 %d %b" % (error.status, b"Bad Request"),
            b"content-type: application/json",
            b"content-length: %d" % len(body),
            b"connection: close",
        )
        self.transport.write(b"\r\n".join((*rows, b"", body)))
        self.transport.close()
