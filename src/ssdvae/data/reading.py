"""How much of a document a model reads: chosen for its training, and kept with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from ssdvae.config import TrainSettings
from ssdvae.data.documents import Documents
from ssdvae.errors import Malformed
from ssdvae.shapes import made


@dataclass(frozen=True)
class Reading:
    """What a model was trained on; all None for one that was saved before this was kept."""

    events: int | None = None  # the first ones of each document, and no others
    window: int | None = None  # longer documents were read as windows of so many
    stride: int | None = None  # of which one began every so many
    longest: int | None = None  # of what was read in one piece

    @classmethod
    def of(cls, settings: TrainSettings) -> Self:
        """What the settings ask for; the documents say what is the longest."""
        return cls(settings.events, settings.window, settings.window_stride)

    @classmethod
    def from_record(cls, record: object) -> Self:
        """From JSON; ``Malformed`` if it has another shape."""
        reading = made(cls, record)
        for name, value in vars(reading).items():
            if value is not None and value < 1:
                raise Malformed(f"{value} at {name}", "1 or more")
        if (reading.window is None) != (reading.stride is None):
            raise Malformed(f"a window of {reading.window} and a stride of {reading.stride}", "both, or none")
        if reading.window is not None and reading.stride is not None and reading.stride > reading.window:
            raise Malformed(f"{reading.stride} at stride", f"at most {reading.window}, the window")
        return reading

    @property
    def measured(self) -> int | None:
        """How many events of each document this model is measured on, unless asked for others; None: all."""
        return self.events or self.window

    @property
    def sentence(self) -> str:
        """What to know before it is given longer documents."""
        if self.longest is None:
            return ""
        first = "" if self.events is None else f"the first {self.events} events of "
        if self.window is None:
            pieces = f"at most {self.longest} events in one piece"
        else:
            pieces = f"in windows of {self.window} events, one every {self.stride}"
        return f"It was trained on {first}documents, {pieces}."

    def beyond(self, events: int) -> str | None:
        """What to know of a document of so many events, if it was trained on none so long."""
        if self.longest is None or self.window is not None or events <= self.longest:
            return None
        return (
            f"a document has {events} events, and the model was trained on at most {self.longest}: "
            "beyond them its frames lose their place\n"
            "train ssdvae-exact, the default model, or with --window"
        )

    def parts(self, documents: Documents) -> Documents:
        """What there is to train on."""
        cut = documents.first(self.events)
        if self.window is None or self.stride is None:
            return cut
        return cut.windows(self.window, self.stride)


def left_out(documents: Documents, events: int | None) -> str | None:
    """What is lost if only the first events are read, in words; None if nothing is."""
    kept, all_of_them = documents.first(events).events, documents.events
    if kept == all_of_them:
        return None
    lost = all_of_them - kept
    first = "the first event" if events == 1 else f"the first {events} events"
    return (
        f"{first} of each document: leaves out {lost / all_of_them:.0%} of the events "
        f"({lost:,} of {all_of_them:,})"
    )
