"""Conversations, above the store: what a run leaves in one, what the next model is told of it, what people see of it.

All of it is pure but `sessions.Sessions`, which puts it over a store.
"""
