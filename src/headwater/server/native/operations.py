"""For whoever operates it."""

from typing import Final

from headwater.server.metrics import CONTENT_TYPE
from headwater.server.native.endpoint import Call, Endpoint, Nothing, Reply, endpoint


async def metrics(call: Call, query: Nothing) -> Reply:
    call.services.metrics.going_on(call.services.runs.running())
    return Reply(call.services.metrics_text(), media_type=CONTENT_TYPE)


ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    endpoint("GET", "/metrics", metrics, Nothing, "text/plain", "How runs went, for Prometheus", needs=("admin",)),
)
