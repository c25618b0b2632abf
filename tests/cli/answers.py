"""Answers that no upstream gave."""

from headwater.cli.facts import Facts
from headwater.cli.probing import Heard
from headwater.events import Completed


def facts_of(text: str) -> Facts:
    return Facts(
        outcome=Completed(),
        text=text,
        reasoning="",
        calls=(),
        usage=True,
        streamed=True,
        finish="stop",
        terminated=True,
        valid_utf8=True,
        text_times_s=(0.1,),
        heard=Heard(status=200),
    )
