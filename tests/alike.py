"""Answers that are the same, but for the last digits of their numbers."""

from __future__ import annotations

from typing import Any

import pytest


def assert_alike(found: Any, expected: Any, *, abs: float, rel: float | None = None) -> None:
    """The last digits depend on what is in a batch, and on the order in which it is summed."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name in expected:
            assert_alike(found[name], expected[name], abs=abs, rel=rel)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_alike(one, other, abs=abs, rel=rel)
    else:
        close = isinstance(expected, float)
        assert found == (pytest.approx(expected, rel=rel, abs=abs) if close else expected)
