"""The second reading: what was most likely meant, or an error that says why not."""

from headwater.dialects.lenient import mended_all


def test_halves_of_characters_are_joined_or_replaced_wherever_they_are() -> None:
    assert mended_all({"a\ud83d": ["\ud83d\ude00", 1, None, {"b": "x\ude00"}]}) == {
        "a\ufffd": ["\U0001f600", 1, None, {"b": "x\ufffd"}]
    }
