"""A server as if it were far away: each request reaches it some time later, and is counted."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.rigs.ports import free_ports

_PIECE_BYTES = 1 << 18
_REQUEST = re.compile(rb"^(?:GET|HEAD|PUT|POST|DELETE) ")


@dataclass
class DistantServer:
    """What stands before the server. `requests` is how many came so far."""

    endpoint: str
    requests: int = 0


@contextmanager
def distant(port: int, seconds: float) -> Iterator[DistantServer]:
    """A server on this machine's `port`, whose requests arrive `seconds` after they were sent."""
    (own,) = free_ports(1)
    standing = DistantServer(f"http://127.0.0.1:{own}")
    loop, is_listening = asyncio.new_event_loop(), threading.Event()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(_requests(reader, server_writer, standing, seconds), _answers(server_reader, writer))

    async def listen() -> None:
        await asyncio.start_server(forward, "127.0.0.1", own)
        is_listening.set()

    def run() -> None:
        loop.create_task(listen())
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    is_listening.wait()
    try:
        yield standing
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


async def _requests(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, standing: DistantServer, seconds: float
) -> None:
    while piece := await reader.read(_PIECE_BYTES):
        if _REQUEST.match(piece):
            standing.requests += 1
            await asyncio.sleep(seconds)
        writer.write(piece)
        await writer.drain()
    writer.close()


async def _answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(_PIECE_BYTES):
        writer.write(piece)
        await writer.drain()
    writer.close()
