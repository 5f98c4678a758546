"""Which upstream a worker's record leads to."""

from __future__ import annotations

import pytest

from router.core import UpstreamFailed
from router.upstream.direct import DirectUpstream
from router.upstream.http11 import HTTP11Upstream
from router.upstream.transports import Upstreams


async def test_each_transport_is_built_once_and_when_asked():
    upstreams = Upstreams()
    first = upstreams.of("http11")
    assert isinstance(first, HTTP11Upstream)
    assert upstreams.of("http11") is first
    assert isinstance(upstreams.of("httpx"), DirectUpstream)
    await upstreams.aclose()


@pytest.mark.parametrize("transport", ["pigeon", "router.upstream.nowhere:X", "router.upstream:X"])
def test_an_unknown_transport_is_the_workers_failure_not_ours(transport):
    with pytest.raises(UpstreamFailed) as refused:
        Upstreams().of(transport)
    assert refused.value.extra == {"sent": False}
