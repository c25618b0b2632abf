"""Headwater's own client: runs followed over HTTP, and the rest of the native API asked. The terminal uses it."""

from headwater.client.api import ApiError, Client
from headwater.client.follow import FollowError, Persistence, follow

__all__ = ["ApiError", "Client", "FollowError", "Persistence", "follow"]
