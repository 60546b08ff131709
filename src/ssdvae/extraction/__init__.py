"""From text to documents of events with frames."""
