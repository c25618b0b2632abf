"""The store that comes of the rules and any engine's tables."""

from headwater.store.engine.sessions import SessionEngine
from headwater.store.engine.workers import WorkerEngine


class Engine(WorkerEngine, SessionEngine):
    """All of `base.Store`."""
