"""Scripted llama-server stand-ins on real sockets inside the test's event loop."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import uvicorn

from tests.support.gateway import worker_at
from tests.support.waiting import until
from workers.simulator import Script, Simulator

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from workers.record import WorkerRecord


@asynccontextmanager
async def simulator(script: Script, **tls: str) -> AsyncIterator[tuple[Simulator, str]]:
    """One stand-in and its URL; `tls` are uvicorn's ssl_certfile and ssl_keyfile."""
    app = Simulator(script)
    config = uvicorn.Config(app, port=0, lifespan="off", log_config=None, access_log=False, **tls)
    server = uvicorn.Server(config)
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(server._serve())
        await until(lambda: server.started)
        port = server.servers[0].sockets[0].getsockname()[1]
        try:
            yield app, f"{'https' if tls else 'http'}://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            await serving


@asynccontextmanager
async def simulated_fleet(
    scripts: Mapping[str, Script],
) -> AsyncIterator[tuple[dict[str, Simulator], list[WorkerRecord]]]:
    """One stand-in per name, and the records that an agent would publish of them."""
    async with AsyncExitStack() as stack:
        apps: dict[str, Simulator] = {}
        records: list[WorkerRecord] = []
        for name, script in scripts.items():
            apps[name], url = await stack.enter_async_context(simulator(script))
            record = worker_at(
                url,
                name,
                mode=script.mode,
                effective_mode=script.mode,
                slots=script.slots,
                context=script.context,
            )
            records.append(record)
        yield apps, records
