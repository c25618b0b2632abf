"""Headwater: a streaming server for LLM chat and agents."""

__version__ = "0.1.0"
