"""The second reading: what was most likely meant, or an error that says why not."""

import pytest

from headwater.dialects.lenient import mended_all
from headwater.errors import FrameUnreadable


def test_halves_of_characters_are_joined_or_replaced_wherever_they_are() -> None:
    assert mended_all({"a\ud83d": ["\ud83d\ude00", 1, None, {"b": "x\ude00"}]}) == {
        "a\ufffd": ["\U0001f600", 1, None, {"b": "x\ufffd"}]
    }


def test_what_is_nested_too_deep_is_unreadable() -> None:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(FrameUnreadable, match="too deep"):
        mended_all(value)
