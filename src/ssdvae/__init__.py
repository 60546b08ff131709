"""Learn what usually happens next from sequences of events."""

__version__ = "0.1.0"
