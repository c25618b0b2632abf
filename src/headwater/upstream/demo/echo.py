"""`demo/echo`: says what was said."""

from headwater.upstream.demo.asked import Asked
from headwater.upstream.demo.script import Say, Script


def script(asked: Asked) -> Script:
    pictures = f"\n\n(And {asked.images} image{'s' * (asked.images > 1)}, which I can't draw.)" if asked.images else ""
    text = asked.prompt if asked.prompt.strip() else "(You said nothing, so there is nothing to say.)"
    return Script(beats=(Say(text + pictures),), first_s=0.2, tokens_per_s=60)
