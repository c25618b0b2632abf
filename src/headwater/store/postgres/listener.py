"""Hears of what other workers have done, by LISTEN; and looks by itself now and then, for nobody may depend on that.

A connection that listens can break, or be a pooler's, through which nothing is ever heard. So the listener writes to
itself: while it does not hear that, it looks often.
"""

import asyncio
import logging
from typing import Final

from msgspec import Struct

from headwater.errors import StoreError
from headwater.store.news import Hub, News
from headwater.store.postgres.connection import Address
from headwater.store.postgres.glance import Glance
from headwater.store.postgres.letters import is_from, news_of, read, write
from headwater.store.postgres.post import CHANNEL, NEWS_S, Post
from headwater.store.results import Changed

LOOK_GAP_S: Final = 0.05
"""Between two looks that others ask for."""

_log = logging.getLogger("headwater.store")


class Pace(Struct, frozen=True):
    """How often it looks by itself."""

    hearing_s: float = 5.0
    deaf_s: float = 0.5
    """While letters do not arrive."""


class Listener:
    def __init__(self, address: Address, hub: Hub, glance: Glance, post: Post, pace: Pace) -> None:
        self._address = address
        self._hub = hub
        self._glance = glance
        self._post = post
        self._pace = pace
        self._arrived = False
        """The last letter to itself."""
        self._looking: asyncio.Task[None] | None = None
        self.began = asyncio.Event()
        """It listens, or can't: in any case nothing has been missed before."""

    async def run(self) -> None:
        """Until it is cancelled."""
        try:
            await self._run()
        finally:
            if self._looking is not None:
                self._looking.cancel()

    async def _run(self) -> None:
        hears = True
        while True:
            try:
                await self._listen()
            except StoreError as error:
                if hears:
                    _log.warning("news of other workers come late, until it can listen again: %s", error)
            self.began.set()
            hears = self._arrived
            # What keeps it from listening may leave it what it needs to look.
            await self._look_all()
            await asyncio.sleep(self._pace.deaf_s)

    async def _listen(self) -> None:
        """Until the connection breaks."""
        self._arrived = False
        self._expect_others()
        async with await self._address.connect() as connection:
            with self._address.answering(connection, NEWS_S):
                await connection.execute(f"LISTEN {CHANNEL}")
            with self._address.translated():
                # What came while nobody listened.
                await self._look_all()
                self.began.set()
                while True:
                    wait_s = self._pace.hearing_s if self._arrived else self._pace.deaf_s
                    self._arrived = False
                    await self._post.notify(write(self._post.sender, News()))
                    async for letter in connection.notifies(timeout=wait_s):
                        self._hear(letter.payload)
                    if self._arrived:
                        await self._glance.look()
                    else:
                        self._expect_others()
                        await self._look_all()

    def _hear(self, payload: str) -> None:
        if is_from(self._post.sender, payload):
            self._arrived = True
            return
        letter = read(payload)
        if letter is None:
            return
        self._expect_others()
        if not letter.look:
            self._hub.publish(news_of(letter))
        elif self._looking is None:
            self._looking = asyncio.create_task(self._look_soon())

    def _expect_others(self) -> None:
        """Each writes to itself once in a while, which all hear."""
        self._post.expect_readers(3 * self._pace.hearing_s)

    async def _look_soon(self) -> None:
        await asyncio.sleep(LOOK_GAP_S)
        self._looking = None
        await self._look_all()

    async def _look_all(self) -> None:
        """Whoever watches an owner is to fetch everything anew; of runs it shows what has changed.

        If it can't look, whoever watches a run is to ask, and so hears that the store can't be reached: a run of
        another worker's goes on and ends, and here nobody would ever be told.
        """
        try:
            await self._glance.look()
        except StoreError as error:
            _log.debug("could not look: %s", error)
            for run_id in self._hub.runs.watched():
                self._hub.runs.tell(run_id)
        for owner in self._hub.owners.watched():
            self._hub.owners.tell(owner, Changed("all", ""))
