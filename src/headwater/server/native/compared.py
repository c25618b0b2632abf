"""Comparisons as they are asked for and shown."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta

from headwater.server.native.shapes import Content, Given, Id, ModelName, ParametersShape, PartsIn, RunShape, Taken


class GroupIn(Taken, frozen=True, kw_only=True):
    models: Annotated[tuple[ModelName, ...], Meta(min_length=1, max_length=8)]
    content: Content = ""
    parts: PartsIn = ()
    parameters: ParametersShape = ParametersShape()


class GroupSaidIn(Taken, frozen=True, kw_only=True):
    content: Content = ""
    parts: PartsIn = ()
    parameters: ParametersShape = ParametersShape()


class PickIn(Taken, frozen=True, kw_only=True):
    session_id: Id


class Pane(Given, frozen=True, kw_only=True):
    session_id: str
    model: str | None
    run: RunShape | None
    """The newest one. Only `completed` is finished (C81)."""


class GroupShape(Given, frozen=True, kw_only=True):
    id: str
    created_at: datetime
    picked_id: str | None
    panes: tuple[Pane, ...]


class PaneSummary(Given, frozen=True, kw_only=True):
    session_id: str
    model: str | None


class GroupSummary(Given, frozen=True, kw_only=True):
    id: str
    created_at: datetime
    title: str | None
    """As its panes have it: from what was said first."""
    picked_id: str | None
    panes: tuple[PaneSummary, ...]


class GroupPage(Given, frozen=True, kw_only=True):
    groups: tuple[GroupSummary, ...]
    next: str | None
