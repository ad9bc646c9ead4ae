"""The public endpoints as an OpenAPI document, for people and programs that write another client."""

from __future__ import annotations

from typing import Any

from polyseme.collection.server.problems import PREFIX, PROBLEMS
from polyseme.collection.server.reports import REPORT_MEDIA_TYPE
from polyseme.device.collecting import LARGEST_REPORT
from polyseme.version import __version__

__all__ = ["public_document"]

_CODE = {"type": "integer", "minimum": 0, "maximum": (1 << 32) - 1}
_ID = {"type": "string", "pattern": "^[A-Za-z0-9_-]{21}[AQgw]$", "description": "16 random bytes in base64url."}
_REPORT = {
    "type": "object",
    "description": (
        "What leaves a device, padded to exactly the number of bytes that the campaign says. Which columns, attributes "
        "and codes there are follows from the campaign's document."
    ),
    "required": ["id", "open", "sets", "pad"],
    "additionalProperties": False,
    "properties": {
        "id": _ID,
        "open": {"type": "object", "additionalProperties": _CODE, "description": "Column: code in its domain."},
        "sets": {
            "type": "object",
            "additionalProperties": {"type": "array", "items": _CODE, "uniqueItems": True},
            "description": "Attribute: the codes of its candidates, ascending.",
        },
        "token": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1024,
            "description": "Where the campaign asks for one.",
        },
        "pad": {"type": "string", "description": "Makes every report equally long; thrown away."},
    },
}
_PROBLEM = {
    "type": "object",
    "description": "RFC 9457. Nothing of what was sent is repeated in it.",
    "required": ["type", "title", "status"],
    "additionalProperties": False,
    "properties": {
        "type": {"type": "string", "enum": [f"{PREFIX}{kind}" for kind in PROBLEMS]},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
}


def public_document() -> dict[str, Any]:
    """The whole document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "polyseme collector",
            "version": __version__,
            "description": "Devices publish before they send: reports are sets of candidates, never values.",
        },
        "paths": {
            "/v1/campaigns/{campaign}": {"parameters": [_campaign()], "get": _document()},
            "/v1/campaigns/{campaign}/state": {"parameters": [_campaign()], "get": _state()},
            "/v1/campaigns/{campaign}/reports": {"parameters": [_campaign()], "post": _reports()},
            "/v1/campaigns/{campaign}/withdrawals": {"parameters": [_campaign()], "post": _withdrawals()},
        },
        "components": {"schemas": {"Report": _REPORT, "Problem": _PROBLEM}},
    }


def _campaign() -> dict[str, Any]:
    text = "SHA-256 of the campaign's document in base64url."
    schema = {"type": "string", "pattern": "^[A-Za-z0-9_-]{43}$"}
    return {"name": "campaign", "in": "path", "required": True, "description": text, "schema": schema}


def _document() -> dict[str, Any]:
    found = {"description": "Its exact bytes; a device that uses it checks the hash.", **_json({"type": "object"})}
    return {"operationId": "document", "responses": {"200": found, **_problems(404, 503)}}


def _state() -> dict[str, Any]:
    schema = _closed({"state": {"enum": ["draft", "open", "closed"]}})
    found = {"description": "Whether it takes reports now.", **_json(schema)}
    return {"operationId": "state", "responses": {"200": found, **_problems(404, 503)}}


def _reports() -> dict[str, Any]:
    stored = _json(_closed({"status": {"const": "stored"}}))
    body = {f"{REPORT_MEDIA_TYPE};v=1": {"schema": {"$ref": "#/components/schemas/Report"}}}
    return {
        "operationId": "report",
        "description": f"At most {LARGEST_REPORT:,} bytes. Sending the same report again is safe.",
        "requestBody": {"required": True, "content": body},
        "responses": {
            "201": {"description": "On the disk.", **stored},
            "200": {"description": "The same report again; it was on the disk already.", **stored},
            **_problems(400, 401, 404, 409, 410, 413, 415, 422, 429, 503),
        },
    }


def _withdrawals() -> dict[str, Any]:
    return {
        "operationId": "withdraw",
        "description": "Until the campaign closes. A report that has not come yet will not be taken any more.",
        "requestBody": {"required": True, **_json(_closed({"id": _ID}))},
        "responses": {
            "200": {"description": "Gone for ever.", **_json(_closed({"status": {"const": "withdrawn"}}))},
            **_problems(400, 404, 410, 413, 415, 429, 503),
        },
    }


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _problems(*statuses: int) -> dict[str, Any]:
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {str(status): {"description": _titles(status), "content": content} for status in statuses}


def _titles(status: int) -> str:
    return "; ".join(title for found, title in PROBLEMS.values() if found == status)
