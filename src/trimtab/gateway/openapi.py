"""The admin API as an OpenAPI 3.1 document, made of the endpoints' own records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from trimtab.gateway.admin import Endpoint, Refusal

_REFUSALS = {
    "400": "What was sent is not as this document says.",
    "401": "No key, or none that is known.",
    "403": "A key that is no admin key.",
    "404": "What the path names is not there.",
    "409": "It contradicts what there is: an unknown plan, a plan in use, an end that is over, a faulty file.",
    "503": "The store cannot be reached.",
}


def document(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """The whole document."""
    records = [Refusal, *(e.gives for e in endpoints if e.gives), *(e.takes for e in endpoints if e.takes)]
    unique = list(dict.fromkeys(records))
    schemas, components = msgspec.json.schema_components(unique, ref_template="#/components/schemas/{name}")
    of = dict(zip(unique, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, of)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Trimtab gateway: admin API", "version": "1"},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"admin": {"type": "http", "scheme": "bearer", "description": "An admin key."}},
        },
        "security": [{"admin": []}],
    }


def _operation(endpoint: Endpoint, of: dict[type, dict[str, Any]]) -> dict[str, Any]:
    given: dict[str, Any] = {"description": endpoint.about}
    if endpoint.gives is not None:
        given["content"] = {"application/json": {"schema": of[endpoint.gives]}}
    refused = {"application/json": {"schema": of[Refusal]}}
    responses = {code: {"description": about, "content": refused} for code, about in _REFUSALS.items()}
    found: dict[str, Any] = {
        "summary": endpoint.about,
        "operationId": f"{endpoint.method.lower()}{endpoint.path.replace('/', '_').replace('{', '').replace('}', '')}",
        "parameters": _parameters(endpoint),
        "responses": {str(endpoint.status): given, **responses},
    }
    if endpoint.takes is not None:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": of[endpoint.takes]}}}
    return found


def _parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if "{name}" in endpoint.path:
        found.append({"name": "name", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}})
    for name, (schema, about) in endpoint.query.items():
        found.append({"name": name, "in": "query", "description": about, "schema": schema})
    return found
