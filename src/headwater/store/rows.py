"""Records as they are kept: JSON. A decoder each, made once."""

from typing import Final

import msgspec
from msgspec import Struct

from headwater.conversation import Message
from headwater.records import (
    Approval,
    AtHead,
    Group,
    Key,
    Reservation,
    Run,
    RunBody,
    Session,
    SessionMessage,
    SessionNotice,
    Under,
    Worker,
)


class QueuedBody(Struct, frozen=True):
    """Of a queue's entry, what is not its run."""

    messages: tuple[SessionMessage, ...]
    place: AtHead | Under


encode: Final = msgspec.json.Encoder().encode
decode_run: Final = msgspec.json.Decoder(Run).decode
decode_body: Final = msgspec.json.Decoder(RunBody).decode
decode_output: Final = msgspec.json.Decoder(tuple[Message, ...]).decode
decode_approval: Final = msgspec.json.Decoder(Approval).decode
decode_reservation: Final = msgspec.json.Decoder(Reservation).decode
decode_session: Final = msgspec.json.Decoder(Session).decode
decode_message: Final = msgspec.json.Decoder(SessionMessage).decode
decode_notice: Final = msgspec.json.Decoder(SessionNotice).decode
decode_queued: Final = msgspec.json.Decoder(QueuedBody).decode
decode_group: Final = msgspec.json.Decoder(Group).decode
decode_key: Final = msgspec.json.Decoder(Key).decode
decode_worker: Final = msgspec.json.Decoder(Worker).decode
