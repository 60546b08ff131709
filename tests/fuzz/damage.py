"""Ways to damage a file: its bytes, and the values that stand in it."""

from __future__ import annotations

import copy
import json
import struct
from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import yaml

Damage = Callable[[bytes, Random], bytes]

NASTY: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, -5, 7, 2**31 - 1, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**30, 10**310,
    -(10**400), 0.5, -0.5,
    1e308, -1e308, float("inf"), float("nan"), "", "a", "0", "-1", "1e9", "\0", "a\0b", "/", "..", "é" * 100,
    "x" * 5000, "\ud800", [], {}, [[]], [None], {"": None}, [1] * 300, ["a", "a"], "null", "yes",
    "2020-01-01",
)  # fmt: skip
"""Values that a program may stumble over."""

TEXTS = (
    b"\0", b"\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"NaN", b"Infinity", b"-1", b"1e999", b"9" * 20, b"9" * 400,
    b"null",
    b"\t", b"[" * 3000, b"{" * 10, b'"', b"\n", b"\r\n", b"&a [*a]", b"!!python/object:os.system x", b": ",
)  # fmt: skip


def columns_changed(table: pa.Table, index: int, way: float, rng: Random) -> pa.Table | None:
    """A column dropped or named like another, or rows left out; None if ``way`` is not below 0.3."""
    if way < 0.1:
        return table.remove_column(index)
    if way < 0.2:
        return table.rename_columns([*table.column_names[:-1], rng.choice(table.column_names)])
    return table.slice(rng.randrange(len(table) + 1)) if way < 0.3 else None


def bytes_changed(content: bytes, rng: Random) -> bytes:
    """One to three changes anywhere."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at, size = rng.randrange(len(data) + 1), rng.choice((1, 1, 2, 8, 100))
        match rng.randrange(7):
            case 0 if at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                data[at : at + size] = b""
            case 2:
                data[at:at] = rng.choice(TEXTS)
            case 3:
                data[at : at + size] = rng.randbytes(size)
            case 4:
                data[at:at] = data[at : at + size]
            case 5:
                data = data[: at if rng.random() < 0.7 else 0]
            case 6:
                data[at : at + 1] = rng.choice(TEXTS)
    return bytes(data)


def value_changed(value: Any, rng: Random) -> Any:
    """One place of a JSON value changed, dropped, added or doubled."""
    value = copy.deepcopy(value)
    if not isinstance(value, dict | list) or not value or rng.random() < 0.03:
        return copy.deepcopy(rng.choice(NASTY))
    inner, way = value, rng.random()
    while True:
        key: Any = rng.choice(list(inner)) if isinstance(inner, dict) else rng.randrange(len(inner))
        deeper = inner[key]
        if not isinstance(deeper, dict | list) or not deeper or rng.random() < 0.25:
            break
        inner = deeper
    if way < 0.15:
        del inner[key]
    elif way < 0.2 and isinstance(inner, dict):
        inner[str(rng.choice(NASTY))[:50]] = copy.deepcopy(rng.choice(NASTY))
    elif way < 0.25 and isinstance(inner, list):
        inner.insert(key, inner[key])
    elif way < 0.3:
        inner[key] = [inner[key]]
    elif way < 0.4 and isinstance(inner[key], int | float):
        inner[key] = inner[key] + rng.choice((1, -1, 0.5, 1000))
    else:
        inner[key] = copy.deepcopy(rng.choice(NASTY))
    return value


def json_changed(content: bytes, rng: Random) -> bytes:
    return json.dumps(value_changed(json.loads(content), rng)).encode()


def lines_changed(content: bytes, rng: Random) -> bytes:
    """One of the JSON lines changed."""
    lines = content.splitlines()
    at = rng.randrange(len(lines))
    lines[at] = json_changed(lines[at], rng)
    return b"\n".join(lines) + b"\n"


def yaml_changed(content: bytes, rng: Random) -> bytes:
    value = value_changed(yaml.safe_load(content), rng)
    try:
        return yaml.safe_dump(value, allow_unicode=rng.random() < 0.5).encode("utf-8", "surrogatepass")
    except (yaml.YAMLError, UnicodeEncodeError):
        return b""


def header_changed(content: bytes, rng: Random) -> bytes:
    """The JSON header of a safetensors file changed, its size with it."""
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    if rng.random() < 0.5 and "state" in header.get("__metadata__", {}):
        state = value_changed(json.loads(header["__metadata__"]["state"]), rng)
        header["__metadata__"]["state"] = json.dumps(state)
        if rng.random() < 0.5:
            header["__metadata__"].pop("sha256", None)  # as older files have it: then it is looked at
    else:
        header = value_changed(header, rng)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + content[8 + size :]
