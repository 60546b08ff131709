"""Connections with limits, below the application: how many there are, and how long each may be silent."""

from __future__ import annotations

import asyncio
import time
from typing import ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

from ssdvae.app.guard import HEADER_BYTES, READ_SECONDS
from ssdvae.app.options import ExploreOptions


class Connection(H11Protocol):
    """A connection that is cut off if its request does not come, or its answer is not taken, in time."""

    most: ClassVar[int]
    answer_seconds: ClassVar[float]

    @classmethod
    def limited(cls, options: ExploreOptions) -> type[Connection]:
        """Return a class of connections with the limits of the options."""
        seconds = options.seconds + 2 * READ_SECONDS  # to read the body, to answer, and to send
        return type("Limited", (cls,), {"most": options.connections, "answer_seconds": seconds})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Begin; if there are too many connections, the one that was idle for longest ends."""
        self._unsent = 0
        self._timer: asyncio.TimerHandle | None = None
        super().connection_made(transport)
        self._expect(READ_SECONDS)
        if len(self.connections) > self.most:
            idle = [c for c in self.connections if isinstance(c, Connection) and c.idle and c is not self]
            ended = min(idle, key=lambda connection: connection.since, default=self)
            self.connections.discard(ended)  # at once: it is lost a little later
            ended.transport.abort()

    @property
    def idle(self) -> bool:
        """True if no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _expect(self, seconds: float) -> None:
        """Give the connection so many seconds until it is idle, or until its next request is there."""
        if self._timer is not None:
            self._timer.cancel()
        self.since = time.monotonic()
        self._timer = self.loop.call_later(seconds, self._expire)

    def _expire(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        if unsent and unsent < self._unsent:  # slow, but the answer is being taken
            self._expect(READ_SECONDS)
            self._unsent = unsent
        else:
            self.transport.abort()

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._expect(self.answer_seconds)

    def on_response_complete(self) -> None:
        self._expect(READ_SECONDS)
        self._unsent = self.transport.get_write_buffer_size() + 1
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Tell why a request cannot be read."""
        super().send_400_response(
            f"The request is not HTTP, or has more than {HEADER_BYTES:,} bytes of headers."
        )
