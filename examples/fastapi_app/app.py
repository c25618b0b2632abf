"""An async generator of one's own as a durable stream: followed, resumed and stopped over HTTP.

pip install headwater fastapi
uvicorn app:app --timeout-graceful-shutdown 5
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, Header, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from headwater.errors import CallerError
from headwater.streams import EVENT_STREAM, Streams, open_streams


async def answer(question: str) -> AsyncIterator[str]:
    """Yours: whatever yields text, as it comes."""
    for n, word in enumerate(question.split() * 20):
        await asyncio.sleep(0.05)
        yield f"{n}:{word} "


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with open_streams(os.environ.get("STREAMS", "sqlite:streams.db")) as app.state.streams:
        yield


app = FastAPI(lifespan=lifespan)
Durable = Annotated[Streams, Depends(lambda: app.state.streams)]


@app.post("/runs", status_code=201)
async def start(streams: Durable, question: str) -> dict[str, str]:
    return {"id": (await streams.start(answer(question))).id}


@app.get("/runs/{run_id}/events")
async def events(streams: Durable, run_id: str, last_event_id: Annotated[int, Header()] = -1) -> Response:
    body = await streams.sse(run_id, after=last_event_id)
    return Response(status_code=204) if body is None else StreamingResponse(body, headers=EVENT_STREAM)


@app.post("/runs/{run_id}/stop")
async def stop(streams: Durable, run_id: str) -> dict[str, str]:
    return {"outcome": repr((await streams.stop(run_id)).run.outcome)}


@app.exception_handler(CallerError)
async def refused(request: Request, error: CallerError) -> JSONResponse:
    return JSONResponse({"error": {"code": error.code, "message": error.message}}, status_code=error.status)
