"""The HTTP API, described for those who make clients of descriptions."""

from collections.abc import Mapping
from typing import Any, Final

import moldau

_ERROR: Final = {
    "description": "What is wrong; for a text that is no SQL, with a caret under the place.",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Failure"}}},
}


def describe() -> Mapping[str, Any]:
    """Return the description, of OpenAPI 3.1."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "Moldau SQL", "version": moldau.__version__},
        "paths": {
            "/statements": {"post": _STATEMENTS},
            "/views": {"get": _VIEWS},
            "/views/{table}": {"get": _VIEW},
            "/health": {"get": _HEALTH},
        },
        "components": {"schemas": _SCHEMAS},
    }


_STATEMENTS: Final = {
    "operationId": "execute",
    "summary": "Execute statements, one after the other.",
    "description": "The answer is a line of JSON for each message, row and result, as they come."
    " A query with EMIT CHANGES goes on until its LIMIT, or until the client hangs up. If a"
    " statement fails, its error is the last line; if it is the first, the status says so, too.",
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Statements"}}},
    },
    "responses": {
        "200": {
            "description": "Lines, each of them an Answer.",
            "content": {
                "application/x-ndjson": {"schema": {"$ref": "#/components/schemas/Answer"}}
            },
        },
        "400": _ERROR,
        "413": _ERROR,
        "415": _ERROR,
        "503": _ERROR,
    },
}
_VIEWS: Final = {
    "operationId": "views",
    "summary": "The tables that can be asked by key.",
    "responses": {
        "200": {
            "description": "All of them.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Views"}}},
        }
    },
}
_VIEW: Final = {
    "operationId": "get",
    "summary": "The latest row of a table's key, from the view that follows it.",
    "parameters": [
        {"name": "table", "in": "path", "required": True, "schema": {"type": "string"}},
        {
            "name": "key",
            "in": "query",
            "required": True,
            "description": "A text or a number; of several columns, a JSON object.",
            "schema": {"type": "string"},
        },
        {
            "name": "start",
            "in": "query",
            "description": "Of a windowed table: when the first window begins.",
            "schema": {"type": "string", "format": "date-time"},
        },
        {
            "name": "until",
            "in": "query",
            "description": "Of a windowed table: before this the last window begins.",
            "schema": {"type": "string", "format": "date-time"},
        },
        {
            "name": "values",
            "in": "query",
            "description": "Whether the values of the records are wanted, too.",
            "schema": {"type": "string", "enum": ["true"]},
        },
    ],
    "responses": {
        "200": {
            "description": "The rows, none if the key is not there.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ViewRows"}}},
        },
        "400": _ERROR,
        "404": _ERROR,
    },
}
_HEALTH: Final = {
    "operationId": "health",
    "summary": "Who serves, since when, and whether it has the service already.",
    "responses": {
        "200": {
            "description": "The server answers questions.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Health"}}},
        }
    },
}
_COLUMNS: Final = {"type": "array", "items": {"$ref": "#/components/schemas/Column"}}
_TEXTS: Final = {"type": "object", "additionalProperties": {"type": "string"}}
_SCHEMAS: Final = {
    "Statements": {
        "type": "object",
        "required": ["sql"],
        "additionalProperties": False,
        "properties": {
            "sql": {"type": "string", "description": "One or more statements."},
            "settings": {**_TEXTS, "description": "What the session has SET before."},
        },
    },
    "Column": {
        "type": "object",
        "required": ["name", "type"],
        "properties": {
            "name": {"type": "string"},
            "type": {"type": "string", "description": "As Spark's DDL writes it."},
        },
    },
    "Answer": {
        "description": "A message, the settings of the session, the columns of a result, one of"
        " its rows, how many there were, progress, what takes its time, or an error.",
        "type": "object",
        "properties": {
            "statement": {"type": "integer", "description": "Which one, from 1 on."},
            "message": {"type": "string"},
            "settings": _TEXTS,
            "columns": _COLUMNS,
            "engine": {"type": "string", "description": "Who answers."},
            "notes": {"type": "array", "items": {"type": "string"}},
            "row": {"type": "array", "items": {}},
            "rows": {"type": "integer", "description": "The result ends after so many."},
            "progress": {
                "type": "object",
                "description": "How many records were read, and of how many, if that is known.",
                "properties": {
                    "done": {"type": "integer"},
                    "total": {"type": ["integer", "null"]},
                },
            },
            "note": {
                "type": "string",
                "description": "What is being done, such as a start of Spark.",
            },
            "error": {"$ref": "#/components/schemas/Error"},
        },
    },
    "Error": {
        "type": "object",
        "required": ["message"],
        "properties": {
            "message": {"type": "string"},
            "statement": {"type": "integer"},
            "line": {"type": "integer"},
            "column": {"type": "integer"},
        },
    },
    "Failure": {
        "type": "object",
        "required": ["error"],
        "properties": {"error": {"$ref": "#/components/schemas/Error"}},
    },
    "ViewRows": {
        "type": "object",
        "properties": {
            "columns": _COLUMNS,
            "rows": {"type": "array", "items": {"type": "array", "items": {}}},
            "offsets": {
                "type": "object",
                "additionalProperties": {"type": "integer"},
                "description": "Of each partition: every record before it is reflected.",
            },
            "caught_up": {"type": "boolean"},
            "values": {
                "type": "array",
                "items": {"type": "string", "format": "byte"},
                "description": "Of each row, the value of its record, if it was asked for.",
            },
        },
    },
    "Views": {
        "type": "object",
        "properties": {
            "views": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "topic": {"type": "string"},
                        "key": {**_TEXTS, "description": "The key's columns, and their types."},
                    },
                },
            }
        },
    },
    "Health": {
        "type": "object",
        "properties": {
            "service": {"type": "string"},
            "host": {"type": "string"},
            "pid": {"type": "integer"},
            "since_ms": {"type": "integer"},
            "is_owner": {"type": "boolean"},
            "queries": {"type": "integer", "description": "How many are to run."},
        },
    },
}
