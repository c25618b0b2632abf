"""The list of models, as OpenAI and Anthropic give it. Pure."""

from collections.abc import Sequence
from typing import Any

from headwater.events import DialectName


def model_list(dialect: DialectName, names: Sequence[str]) -> dict[str, Any]:
    listed = [model(dialect, name) for name in names]
    if dialect == "messages":
        return {"data": listed, "has_more": False, "first_id": names[0], "last_id": names[-1]}
    return {"object": "list", "data": listed}


def model(dialect: DialectName, name: str) -> dict[str, Any]:
    if dialect == "messages":
        return {"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"}
    return {"id": name, "object": "model", "created": 1767225600, "owned_by": "simulator"}
