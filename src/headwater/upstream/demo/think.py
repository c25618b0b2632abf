"""`demo/think`: reasons first, then answers. Small sums it can really do; of any other question it counts the words."""

import re
from typing import Final

from headwater.upstream.demo.asked import Asked
from headwater.upstream.demo.script import Beat, Say, Script, Think

# Neither a date nor a part of a longer number.
_SUM: Final = re.compile(
    r"(?<![\d.-])(-?\d{1,9})\s*(\+|-|−|–|\*|x|×|times|plus|minus)\s*(-?\d{1,9})(?![\d.]*\d|-\d)", re.IGNORECASE
)
_SIGNS: Final = {
    "+": "+",
    "plus": "+",
    "-": "−",
    "−": "−",
    "–": "−",
    "minus": "−",
    "*": "×",
    "x": "×",
    "×": "×",
    "times": "×",
}
_WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_BRIEF: Final = ("minimal", "low")


def script(asked: Asked) -> Script:
    found = _SUM.search(asked.prompt)
    thought, answer = _sum(found) if found else _count(asked.prompt)
    if asked.effort in _BRIEF:
        thought = thought.split("\n\n")[0]
    beats: list[Beat] = [Say(answer)] if asked.effort == "none" else [Think(thought), Say(answer)]
    return Script(beats=tuple(beats), first_s=0.6)


def _sum(found: re.Match[str]) -> tuple[str, str]:
    a, b, sign = int(found[1]), int(found[3]), _SIGNS[found[2].lower()]
    match sign:
        case "+":
            total, way, back = a + b, f"I go up from {a} by {b}.", f"{a + b} − {b} = {a}"
        case "−":
            total, way, back = a - b, f"I go down from {a} by {b}.", f"{a - b} + {b} = {a}"
        case _:
            total, way, back = a * b, _split(a, b), f"{a * b} is {b} times {a}"
    thought = (
        f"There is a sum in this: {a} {sign} {b}. That I can do.\n\n{way}\n\n"
        f"So {a} {sign} {b} = {total}. The way back, to be sure: {back}. It fits.\n\n"
        "I was asked for a number, so the number comes first, and then how I got there."
    )
    return thought, f"**{total}**\n\nThat is {a} {sign} {b}. My reasoning is above; unfold it to see how I got there."


def _split(a: int, b: int) -> str:
    tens, ones = b // 10 * 10, b % 10
    if not tens or not ones:
        return f"{b} times {a}: that is {a * b}."
    return f"I take {b} apart: {a} × {tens} = {a * tens}, and {a} × {ones} = {a * ones}. Together: {a * b}."


def _count(prompt: str) -> tuple[str, str]:
    words = _WORD.findall(prompt)
    letters = sum(letter.isalpha() for letter in prompt)
    longest = max(words, key=len, default="")
    kind = "a question" if prompt.rstrip().endswith("?") else "no question"
    thought = (
        f"What do I have? {len(words)} words. It is {kind}, going by how it ends.\n\n"
        "Do I know the answer? I am a demo model: I know nothing of the world. But I can look at the words themselves, "
        "and what I say of them will be true. How long is each?\n\n"
        + "\n".join(f"- “{word}”: {len(word)}" for word in words[:12])
        + f"\n\nThe longest one is “{longest}”. Together they have {letters} letters. That is something that I can say "
        "with certainty, and I had better add how to get a real answer."
    )
    if not words:
        return thought, "There is not a word in what you said, and that is all I can make of it."
    answer = (
        f"Your message has **{len(words)} word{'s' * (len(words) != 1)}** and **{letters} letters**; "
        f"the longest word is “{longest}”.\n\n"
        "I can't tell you more than that: I am a demo model, here to show how reasoning streams. "
        "Give me a sum, such as *17 × 23*, and I'll work it out; for real answers, set a key and choose a real model."
    )
    return thought, answer
