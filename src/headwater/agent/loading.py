"""`package.module:name` to the agent that it names, or to words about why there is none."""

import logging
import os
import sys
from importlib import import_module
from typing import Any

from msgspec import Struct

from headwater.agent.own import Agent

_log = logging.getLogger("headwater.agent")


class Unloaded(Struct, frozen=True):
    why: str


def load(name: str, reference: str) -> Agent | Unloaded:
    """Modules of the working folder are found, too. What goes wrong is in the log, whole, and keeps nobody else."""
    module, _, attribute = reference.partition(":")
    if (here := os.getcwd()) not in sys.path:
        sys.path.append(here)
    try:
        found: Any = getattr(import_module(module), attribute)
    except Exception as error:
        # It is somebody else's code, that may raise anything.
        _log.error("agent %s: %s can't be loaded", name, reference, exc_info=error)
        return Unloaded(f"{reference} can't be loaded ({type(error).__name__}); the server's log has more.")
    if not callable(found):
        return Unloaded(f"{reference} is no function of a context.")
    agent: Agent = found
    return agent
