"""The words of a model's name, and what they mean together."""

import pytest

from headwater.simulate.names import EXAMPLES, UnknownName, script_of
from headwater.simulate.script import (
    Answer,
    BadChunk,
    Call,
    Cut,
    Http,
    Pace,
    Reasoning,
    Reset,
    Stall,
    StreamError,
    Usage,
    Writes,
)


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("sim/echo", Answer(echo=True)),
        ("echo@20", Answer(echo=True, pace=Pace(tokens_per_s=20))),
        ("sim/tokens-500", Answer(tokens=500)),
        ("sim/tokens-500@12.5", Answer(tokens=500, pace=Pace(tokens_per_s=12.5))),
        ("sim/think", Answer(reasoning=Reasoning())),
        ("sim/think-3,tokens-2", Answer(reasoning=Reasoning(tokens=3), tokens=2)),
        ("sim/finish-network_error", Answer(finish="network_error")),
        ("sim/usage-every_chunk", Answer(usage=Usage(send="every_chunk"))),
        ("sim/bytes-1,close", Answer(writes=Writes(every_bytes=1, framing="close"))),
        ("sim/random-7,writes-3", Answer(writes=Writes(seed=7, tokens=3))),
        ("sim/tokens-9@5,first-2,head-1.5", Answer(tokens=9, pace=Pace(tokens_per_s=5, first_token_s=2, head_s=1.5))),
        ("sim/omit-finish,omit-usage", Answer(omit=("finish", "usage"))),
        ("sim/whole", Answer(streaming="never")),
        ("sim/nostream", Answer(streaming="refused")),
        ("sim/status-503, retry-2", Answer(http=Http(status=503), headers={"retry-after": "2"})),
        ("sim/speaks-messages", Answer(dialect="messages")),
        ("sim/cut-after-10", Answer(faults=(Cut(tokens=10),))),
        ("sim/reset-at-in_arguments", Answer(faults=(Reset(at="in_arguments"),))),
        ("sim/stall-at-before_head", Answer(faults=(Stall(at="before_head"),))),
        ("sim/pings-after-1,error-after-2", Answer(faults=(Stall(tokens=1, keep_alive_s=1), StreamError(tokens=2)))),
        ("sim/badchunk-at-before_terminator", Answer(faults=(BadChunk(at="before_terminator"),))),
    ],
)
def test_a_name_is_an_answer(name: str, answer: Answer) -> None:
    assert script_of(name).answers == (answer,)


def test_what_happens_so_often_is_followed_by_what_works() -> None:
    assert script_of("sim/tokens-3,reset-after-1x2").answers == (
        Answer(tokens=3, faults=(Reset(tokens=1),), times=2),
        Answer(tokens=3),
    )


def test_what_happens_less_often_is_over_sooner() -> None:
    assert script_of("sim/status-429x1,head-2x3,retry-1").answers == (
        Answer(http=Http(status=429), pace=Pace(head_s=2), headers={"retry-after": "1"}),
        Answer(pace=Pace(head_s=2), headers={"retry-after": "1"}, times=2),
        Answer(headers={"retry-after": "1"}),
    )


def test_one_that_calls_tools_tells_their_results() -> None:
    assert script_of("sim/tool-2,cut-at-in_argumentsx1").answers == (
        Answer(calls=(Call(), Call()), when="user", faults=(Cut(at="in_arguments"),)),
        Answer(echo=True, when="tool_result", faults=(Cut(at="in_arguments"),)),
        Answer(calls=(Call(), Call()), when="user"),
        Answer(echo=True, when="tool_result"),
    )


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("sim/", "''"),
        ("sim/nonsense", "'nonsense'"),
        ("sim/echo,cut", "'cut'"),
        ("sim/cut-at-noon", "'cut-at-noon'"),
        ("sim/error-at-before_head", "'error-at-before_head'"),
        ("sim/tokens-3x2", "'tokens-3x2'"),
        ("sim/status-429x0", "'status-429x0'"),
        ("sim/tokens-1.2.3", "tokens"),
        ("gpt-5", "'gpt-5'"),
    ],
)
def test_an_unknown_word_is_told_the_known_ones(name: str, word: str) -> None:
    with pytest.raises(UnknownName, match="tokens-N") as raised:
        script_of(name)
    assert word in str(raised.value)


def test_a_word_with_an_impossible_number_says_what_is_wrong() -> None:
    with pytest.raises(UnknownName, match="tokens_per_s"):
        script_of("sim/echo@0")
    with pytest.raises(UnknownName, match="every_bytes"):
        script_of("sim/bytes-0")


def test_the_examples_are_names() -> None:
    for name in EXAMPLES:
        assert script_of(name).answers
