"""Agents: what answers a run by more than one request to a model."""
