"""Script files: what they can say, and how they are told what is wrong."""

from pathlib import Path

import pytest

from headwater.simulate.load import ScriptError, load_scenario
from headwater.simulate.script import Answer, Call, Http, Pace, Reset, Scenario, Script, Stall

EXAMPLES = sorted((Path(__file__).parent.parent.parent / "examples").glob("simulate/*.toml"))

WHOLE = """
key = "secret"
strict = false

[models.flaky]
answers = [{ http = { status = 429, headers = { retry-after = "1" } }, times = 2 }, { text = "Hello" }]

[[models.broken.answers]]
pace = { tokens_per_s = 50, delays_s = [0.1, 0.2] }
calls = [{ name = "look", arguments = { at = 1 }, extras = { extra_content = { google = { thought_signature = "x" } } } }]
faults = [{ kind = "stall", tokens = 3, seconds = 2.5 }, { kind = "reset", at = "before_finish" }]

[models.quick]
like = "sim/tokens-5"
"""


def test_a_file_says_all_that_python_can() -> None:
    signed = {"extra_content": {"google": {"thought_signature": "x"}}}
    assert load_scenario(WHOLE) == Scenario(
        key="secret",
        strict=False,
        models={
            "flaky": Script(
                answers=(Answer(http=Http(status=429, headers={"retry-after": "1"}), times=2), Answer(text="Hello"))
            ),
            "broken": Script(
                answers=(
                    Answer(
                        pace=Pace(tokens_per_s=50, delays_s=(0.1, 0.2)),
                        calls=(Call(name="look", arguments={"at": 1}, extras=signed),),
                        faults=(Stall(tokens=3, seconds=2.5), Reset(at="before_finish")),
                    ),
                )
            ),
            "quick": Script(like="sim/tokens-5"),
        },
    )


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_are_scripts(path: Path) -> None:
    assert load_scenario(path.read_text()).models


def answer(fields: str) -> str:
    return f"[[models.m.answers]]\n{fields}"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("key = \n", "f.toml: this is no TOML: .*line 1"),
        (b"\xff", "f.toml: this is no TOML: .*utf-8"),
        ("kye = 1", "f.toml: unknown key `kye`; did you mean `key`\\?"),
        ("[models.m]\nanswer = []", r"models\.m: unknown key `answer`; did you mean `answers`\?"),
        (answer("text = 5"), r"models\.m\.answers\[0\]\.text: Expected `str \| null`, got `int`"),
        (answer("colour = 1"), r"answers\[0\]: unknown key `colour`; there are: .*pace.*writes"),
        (answer("pace = { token_per_s = 1 }"), "pace: unknown key `token_per_s`; did you mean `tokens_per_s`"),
        (answer("pace = { tokens_per_s = 0 }"), "pace: `tokens_per_s` must be more than 0"),
        (answer("writes = { tokens = 0 }"), "writes: .*at least 1"),
        (answer("times = 0"), "`times` must be at least 1"),
        (answer("finish = 1"), "finish"),
        (answer("faults = [{ kind = 'explode' }]"), "kind: Invalid value 'explode'; there are: cut, fin, reset"),
        (answer("streaming = 'maybe'"), "streaming: Invalid enum value 'maybe'; there are: as_asked, never, refused"),
        ("models = 1", "models: Expected a table"),
        ("[models]\nm = 1", r"models\.m: Expected `object`, got `int`"),
        (answer("faults = [{ kind = 'cut', token = 1 }]"), "unknown key `token`; did you mean `tokens`"),
        (
            answer("faults = [{ kind = 'cut', at = 'noon' }]"),
            r"answers\[0\]\.faults\[0\]\.at: Invalid enum value 'noon'; there are: before_head, ",
        ),
        (answer("faults = [{ kind = 'cut', at = 'after_head', tokens = 1 }]"), "`tokens` counts only with"),
        (answer("faults = [{ kind = 'error', at = 'in_head' }]"), "'after_head' is the first place"),
        (answer("faults = [{ kind = 'stall', keep_alive_s = 0 }]"), "more than 0"),
        (answer("faults = [{ kind = 'stall', keep_alive_s = 1, at = 'before_head' }]"), "needs a body"),
        ("[models.m]\nanswers = []", "`answers` must have at least one"),
        ("[models.m]\nlike = 'sim/nonsense'", r"models\.m\.like: 'nonsense' is no word"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text: str | bytes, complaint: str) -> None:
    with pytest.raises(ScriptError, match=complaint):
        load_scenario(text, "f.toml")
