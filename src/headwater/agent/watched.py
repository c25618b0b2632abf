"""A user's own agent as the server runs it: told what was said, watched, and told of where it can't be had at all."""

from headwater.agent.own import OwnAgent
from headwater.agent.watch import Stepped, Watch
from headwater.conversation import Message, Text, User
from headwater.events import Failed, Notice
from headwater.sessions.context import Context
from headwater.source import Ended, Sink, emit

GO_ON = "Go on with your last message, exactly where it ended."


def told(context: Context) -> tuple[Message, ...]:
    """All that was said; a cut answer that is to be gone on with at the end, and that it is."""
    messages = context.request.messages
    if context.goes_on is None:
        return messages
    return (*messages, context.goes_on, User((Text(GO_ON),)))


class Watched:
    """A `Source`."""

    def __init__(self, own: OwnAgent, watch: Watch, name: str, notice: Notice | None) -> None:
        self.unwind_s = own.unwind_s
        self._own = own
        self._watch = watch
        self._name = name
        self._notice = notice

    async def run(self, sink: Sink) -> Ended:
        if self._notice is not None:
            emit(sink, self._notice)
        return await Stepped(self._own.run(sink), self._watch, self._name)

    def pause(self) -> None:
        self._own.pause()

    def resume(self) -> None:
        self._own.resume()


class Broken:
    """A `Source` of which nothing comes but that it can't be had."""

    unwind_s: float | None = None

    def __init__(self, failed: Failed) -> None:
        self._failed = failed

    async def run(self, sink: Sink) -> Ended:
        return Ended(self._failed)

    def pause(self) -> None:
        """There is nothing to hold up."""

    def resume(self) -> None:
        """Nor to go on with."""
