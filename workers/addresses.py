"""Which addresses are behind a service: asked of DNS, or of the cluster's API server.

DNS needs no rights in the cluster. EndpointSlices need a service account that may list them, and
know more: an address that is about to go is left out at once, before its server stops.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Where a kubelet puts what a pod needs to talk to the API server.
ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_TIMEOUT_S = 5.0
_FAMILIES = ("IPv4", "IPv6")  # one address for each pod, in a cluster of both


class NameUnknown(RuntimeError):
    """The name cannot be resolved just now; keep what is known."""


async def by_dns(host: str, port: int) -> frozenset[str]:
    """Every address behind a name.

    Raises:
        NameUnknown: the name has no address, or DNS does not answer.
    """
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise NameUnknown(f"{host}: {error}") from error
    return frozenset(str(entry[4][0]) for entry in found)


@dataclass(frozen=True, slots=True)
class EndpointSlices:
    """Asks the API server at `url` as the service account whose files are in `account`."""

    url: str
    account: Path = ACCOUNT

    @classmethod
    def of_this_pod(cls, environ: Mapping[str, str]) -> EndpointSlices:
        """What the kubelet told this pod.

        Raises:
            ValueError: this is no pod, or it has no service account's token.
        """
        host, port = (environ.get(f"KUBERNETES_SERVICE_{word}") for word in ("HOST", "PORT"))
        if not host or not port:
            raise ValueError("KUBERNETES_SERVICE_HOST and _PORT are not set: this is no pod")
        if not (ACCOUNT / "token").is_file():
            raise ValueError(f"{ACCOUNT} has no token: automountServiceAccountToken is off")
        place = f"[{host}]" if ":" in host else host
        return cls(f"https://{place}:{port}")

    async def __call__(self, host: str, port: int) -> frozenset[str]:
        """Addresses of the service NAME.NAMESPACE.svc that are ready and stay.

        Raises:
            NameUnknown: the API server does not answer, or refuses to.
        """
        name, _, rest = host.partition(".")
        namespace = rest.partition(".")[0] or self._read("namespace")
        path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        # Version 0: whatever the server has at hand, without a question to its database.
        query = {"labelSelector": f"kubernetes.io/service-name={name}", "resourceVersion": "0"}
        try:
            async with self._client() as client:
                answer = await client.get(path, params=query)
                answer.raise_for_status()
                return _staying(answer.json()["items"])
        except httpx.HTTPStatusError as error:
            status = error.response.status_code
            raise NameUnknown(f"{host}: the API server says {status} to {path}") from error
        except (httpx.HTTPError, OSError, ValueError, KeyError, TypeError) as error:
            raise NameUnknown(f"{host}: {type(error).__name__}: {error}") from error

    def _client(self) -> httpx.AsyncClient:
        """A new one each time: token and authority are replaced while we run."""
        return httpx.AsyncClient(
            base_url=self.url,
            headers={"authorization": f"Bearer {self._read('token')}"},
            verify=ssl.create_default_context(cafile=str(self.account / "ca.crt")),
            timeout=_TIMEOUT_S,
            trust_env=False,
        )

    def _read(self, name: str) -> str:
        try:
            return (self.account / name).read_text().strip()
        except OSError as error:
            raise NameUnknown(f"service account: {error}") from error


def _staying(slices: list[dict[str, Any]]) -> frozenset[str]:
    """Addresses of the first family that the service has."""
    for family in _FAMILIES:
        if mine := [piece for piece in slices if piece["addressType"] == family]:
            return frozenset(_addresses(mine))
    return frozenset()


def _addresses(slices: list[dict[str, Any]]) -> Iterator[str]:
    for piece in slices:
        for endpoint in piece.get("endpoints") or ():
            state = endpoint.get("conditions") or {}
            # Not told means ready, by the API's own definition.
            if state.get("ready") is not False and not state.get("terminating"):
                yield from endpoint["addresses"]
