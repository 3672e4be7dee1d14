"""The description of the service's HTTP interface, by OpenAPI 3.1."""

from typing import Any

OBSERVATION = {
    "type": "object",
    "required": ["series", "time", "values"],
    "additionalProperties": False,
    "properties": {
        "series": {"type": ["string", "integer"], "description": "The id of the series."},
        "time": {"type": ["number", "string"], "description": "A stamp: a number, or a datetime in ISO 8601."},
        "values": {
            "type": "object",
            "additionalProperties": {"type": ["number", "null"]},
            "description": "Numbers by channel, of those that were observed.",
        },
        "id": {"type": "string", "description": "An event id: the same observation is taken once."},
        "terms": {"type": "array", "items": {"type": "number"}},
        "static": {"type": "array", "items": {"type": "number"}, "description": "In the first of a series only."},
        "origin": {"type": ["number", "string"], "description": "In the first of a series only."},
    },
}
ANSWER = {
    "type": "object",
    "properties": {
        "series": {"type": ["string", "integer"]},
        "time": {"type": ["number", "string"], "description": "The stamp of the prediction."},
        "prediction": {"description": "As the model's task has it; null is a number that is not finite."},
        "repeated": {"type": "boolean", "description": "The event id had been taken before."},
        "error": {"type": "string", "description": "Why it was refused, and what to do."},
        "reason": {"type": "string"},
        "channel": {"type": ["string", "null"]},
        "stamp": {"type": ["number", "string", "null"]},
    },
}


def description(version: str) -> dict[str, Any]:
    """The document, for a version of the package.

    >>> sorted(description("1")["paths"])[:3]
    ['/alerts', '/dead-letters', '/events']
    """
    observation, json = {"$ref": "#/components/schemas/Observation"}, "application/json"
    answers = {
        "type": "object",
        "properties": {
            "taken": {"type": "integer"},
            "refused": {"type": "integer"},
            "answers": {"type": "array", "items": {"$ref": "#/components/schemas/Answer"}},
        },
    }
    posted = {
        json: {"schema": {"oneOf": [observation, {"type": "array", "items": observation}]}},
        "application/x-ndjson": {"schema": {"type": "string"}},
        "application/vnd.apache.arrow.stream": {"schema": {"type": "string", "format": "binary"}},
    }
    either = {"oneOf": [{"$ref": "#/components/schemas/Answer"}, answers]}
    observe = {
        "summary": "Observe. Answered once everything is durable.",
        "requestBody": {"required": True, "content": posted},
        "responses": {
            "200": _json("All were taken.", either),
            "207": _json("Some were refused; the answers say which.", answers),
            "422": _json("All were refused.", either),
            **{str(status): {"description": text} for status, text in FAULTS.items()},
        },
    }
    listed = [
        _query("sort", "Order of the list.", {"enum": ["risk", "updated", "name"]}),
        _query("search", "Text that the id contains.", {"type": "string"}),
        _query("show", "Which series.", {"enum": ["open", "archived", "alert"]}),
        _query("limit", "Length of the page, up to 1000.", {"type": "integer"}),
        _query("offset", "Beginning of the page.", {"type": "integer"}),
        _query("reverse", "1 for the opposite order.", {"type": "string"}),
        _query("recent", "Add so many last values of the risk, up to 200.", {"type": "integer"}),
    ]
    one = [
        {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
        _query("at", "Predict as if the series ended at this stamp.", {"type": "string"}),
        _query("attribution", "1 to add on which observations the current prediction rests.", {"type": "string"}),
        _query("history", "Add so many last observations, up to 5000; 100 by default.", {"type": "integer"}),
        _query("id", "`text` or `number`, if there are series with both.", {"enum": ["text", "number"]}),
    ]
    followed = [
        {"name": "Last-Event-ID", "in": "header", "schema": {"type": "integer"}},
        _query("after", "The same, where headers cannot be set.", {"type": "integer"}),
        _query("kind", "Only these.", {"enum": ["prediction", "alert"]}),
        _query("series", "Only those of this series.", {"type": "string"}),
    ]
    past = [
        _query("series", "Only those of this series.", {"type": "string"}),
        _query("limit", "At most so many, up to 1000; 100 by default.", {"type": "integer"}),
    ]
    return {
        "openapi": "3.1.0",
        "info": {"title": "logcde serve", "version": version},
        "paths": {
            "/observations": {"post": observe},
            "/series": {"get": _get("A page of series.", listed)},
            "/series/{id}": {"get": _get("One series: prediction, last observations.", one)},
            "/events": {"get": _get("Predictions and alerts as server-sent events.", followed, "text/event-stream")},
            "/model": {"get": _get("The model: channels, outputs, clock, query intervals, alerts.", [])},
            "/feeds": {"get": _get("Feeds: position, lag, what waits; and what was refused since the start.", [])},
            "/alerts": {"get": _get("Past alerts that are kept, latest first.", past)},
            "/dead-letters": {"get": _get("Refused observations, latest first.", [])},
            "/healthz": {"get": _get("Whether observations can be taken.", [])},
            "/metrics": {"get": _get("Numbers for Prometheus.", [], "text/plain")},
        },
        "components": {
            "schemas": {"Observation": OBSERVATION, "Answer": ANSWER},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


FAULTS = {
    400: "The body cannot be read.",
    401: "The token is missing or wrong.",
    403: "The request may come from a page of another site.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    415: "The content type is not known.",
    429: "Too many observations in a second; Retry-After says when to send them again.",
    500: "The service failed at these observations, and has taken none of them.",
    503: "The store cannot be written, or too many observations are waiting. Nothing was taken: send them again.",
}
"""What answers to `POST /observations` with these statuses mean."""


def _json(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def _query(name: str, text: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": text, "schema": schema}


def _get(text: str, parameters: list[dict[str, Any]], type: str = "application/json") -> dict[str, Any]:
    return {
        "summary": text,
        "parameters": parameters,
        "responses": {"200": {"description": text, "content": {type: {}}}},
    }
