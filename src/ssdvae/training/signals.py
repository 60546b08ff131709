"""Ctrl-C and SIGTERM during training."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Self

from ssdvae.io.errors import UserError


class Interrupted(UserError):
    """A signal asked the run to stop; it was saved first."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number


class Signals:
    """Remembers Ctrl-C and SIGTERM, to be acted on between two steps; a second Ctrl-C acts at once."""

    def __enter__(self) -> Self:
        self.received = 0
        # Python allows handlers in the main thread only; elsewhere the caller has its own way to stop.
        self.numbers = (
            (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
        )
        self.previous = [signal.signal(number, self._receive) for number in self.numbers]
        return self

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.received:
            raise KeyboardInterrupt
        self.received = number

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in zip(self.numbers, self.previous, strict=True):
            signal.signal(number, handler)
