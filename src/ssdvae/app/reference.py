"""The page about the REST API, from its OpenAPI description: FastAPI's own asks another host for scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ssdvae.report.html import Html, join, table, tag


def reference(description: Mapping[str, Any]) -> Html:
    """Every operation with its parameters."""
    schemas = description.get("components", {}).get("schemas", {})
    parts = [
        tag(
            "p",
            "The same answers as JSON. The whole description, for programs: ",
            tag("a", "openapi.json", href="/openapi.json"),
            ".",
        )
    ]
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            parts.append(tag("h2", f"{method.upper()} {path}"))
            parts.append(tag("p", operation.get("summary", "")))
            rows = [*_parameters(operation), *_fields(operation, schemas)]
            if rows:
                head = ["name", "type", "default", "meaning"]
                parts.append(table(f"What {method.upper()} {path} takes", head, rows, names=len(head)))
    return join(parts)


def _parameters(operation: Mapping[str, Any]) -> Iterator[list[str]]:
    for given in operation.get("parameters", []):
        yield _row(given["name"], given.get("schema", {}), given.get("required", False))


def _fields(operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[list[str]]:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
    schema = schemas.get(name, {})
    for field, kind in schema.get("properties", {}).items():
        yield _row(field, kind, field in schema.get("required", []))


def _row(name: str, kind: Mapping[str, Any], required: bool) -> list[str]:
    kinds = [k.get("type", "any") for k in kind.get("anyOf", [kind])]
    default = "required" if required else str(kind.get("default", ""))
    return [name, " or ".join(kinds), default.replace("None", "null"), kind.get("description", "")]
