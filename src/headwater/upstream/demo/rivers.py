"""What `demo/story` has to tell: pieces that go together in any combination."""

from typing import Final

from msgspec import Struct


class River(Struct, frozen=True):
    name: str
    rises: str
    reaches: str
    length_km: int
    known_for: str


RIVERS: Final = (
    River("Danube", "the Black Forest", "the Black Sea", 2850, "touching ten countries on its way, more than any other river"),
    River("Rhine", "Lake Toma in the Swiss Alps", "the North Sea", 1230, "the castles that once took toll from every boat"),
    River("Loire", "the foot of Mont Gerbier de Jonc", "the Atlantic", 1006, "sandbanks that are somewhere else each spring"),
    River("Mekong", "the Tibetan Plateau", "the South China Sea", 4350, "a lake on its way that fills and empties with the seasons"),
    River("Mississippi", "Lake Itasca", "the Gulf of Mexico", 3770, "changing its bed whenever it finds a shorter one"),
    River("Tagus", "the Sierra de Albarracín", "the Atlantic", 1007, "the wide, golden water in front of Lisbon"),
    River("Thames", "a dry meadow in Gloucestershire", "the North Sea", 346, "a source where there is usually no water to be seen"),
    River("Vistula", "the slopes of Barania Góra", "the Baltic Sea", 1047, "carrying salt and grain for six hundred years"),
    River("Po", "the rocks below Monviso", "the Adriatic Sea", 652, "running higher than the fields on either side of it"),
    River("Columbia", "a quiet lake in British Columbia", "the Pacific", 2000, "salmon that swim back up all of it"),
)  # fmt: skip

OPENINGS: Final = (
    "Nobody has ever seen the {name} begin. People have stood at the place, {rises}, and pointed at a wet patch of moss: "
    "*there*. But a river does not begin the way a sentence does. It is first a dampness, then a trickle, and only when "
    "somebody downstream needs a word for it is it a river.",
    "The keeper of the lock had one rule: never tell the {name} that it is late. It had come all the way from {rises}, it had "
    "carried everything that was put into it, and it would reach {reaches} when it reached it. *One word after the other*, "
    "said the keeper, *and nobody has ever had to send it twice.*",
    "When the cable went down in the storm, the two villages on the {name} went back to what their grandparents had done: they wrote on "
    "slips of wood and let the water carry them. It was slow. It came in order. And when one of them went to bed in the middle of a "
    "message, it was all still there in the morning, lying in the reeds.",
    "On the map the {name} is a line from {rises} to {reaches}. In truth it is a great many things that happen to be going "
    "the same way. Most of what we call one thing is like that: a river, a story, an answer that comes a word at a time.",
)

BEGINNINGS: Final = (
    "A spring needs very little:\n\n"
    "- rain, but not today's: what comes out now fell **years ago**\n"
    "- a layer that lets it through, and below it\n  - one that doesn't, such as clay\n  - or a crack that leads somewhere\n"
    "- and *patience*, which costs nothing and is rarely in stock",
    "Three things that the first hundred metres decide:\n\n"
    "1. **Which sea.** A stone in the right place sends the water to the other side of a continent.\n"
    "2. **How it sounds.** Over gravel it talks; over sand it keeps its thoughts to itself.\n"
    "3. **What it is called**, for whoever gets there first with a name.",
    "What you would want to take along to look for a source:\n\n"
    "- [x] boots\n- [x] a map that is older than the road\n- [ ] certainty\n- [ ] dry socks, *afterwards*\n\n"
    "The last two can't be had, and you go all the same.",
)

TURNS: Final = (
    "Half-way down there is a weir, and the water has to decide. It doesn't, of course; it goes both ways, and meets itself again behind "
    "the mill. The miller's daughter once asked which of the two was the river. *The one that you are looking at*, said the "
    "miller, *until you look at the other.*",
    "In the dry summer the boats lay on the gravel, and people walked across where they had been ferried all their lives. The "
    "ferryman sat on the bank and waited. *It hasn't stopped*, he said. *It is only between two words.* In September it went on, at "
    "the very place where it had left off.",
    "Then came the flood. It took the bridge, the orchard and the sign that said how high the last flood had been. What it left behind was a "
    "hand's breadth of black earth, and the best harvest that anyone remembered. What was lost had been said already; what was "
    "kept was kept for good.",
    "There is an old argument about whether you can step into the same river twice. The woman who ran the gauging station had settled it "
    "for herself: she wrote down the level every hour, in ink, and *then* believed it. What isn't in the book, she said, I haven't seen.",
)

CODES: Final = (
    "A river can be put into four lines, if one leaves out the herons:\n\n"
    "```python\ndef flow(springs):\n    for spring in springs:\n        # What was passed on is never taken back.\n        yield from spring\n```\n\n"
    "The important word is `yield`. It gives away what there is *now*, and does not wait for the rest.",
    "The lock keeper's log, as a program would keep it:\n\n"
    "```js\nconst log = [];\n\nfor await (const drop of river) {\n  log.push(drop);          // first written down,\n  downstream.send(drop);   // then let go\n}\n```\n\n"
    "In that order. A drop that was let go before it was written down is a rumour.",
    "And where does the water go that nobody is looking at? The gauging station keeps it:\n\n"
    "```sql\nSELECT hour, level_cm\nFROM gauge\nWHERE hour > :last_seen   -- whoever comes back reads on from here\nORDER BY hour;\n```\n\n"
    "`:last_seen` is all that you have to remember. The river remembers the rest.",
)

SAYINGS: Final = (
    "> What has passed the bridge has passed the bridge.\n>\n> — *said by the ferryman, of most things*",
    "> A dam is a promise that it will not rain.\n>\n> — *scratched into the third step of the mill*",
    "> Go slowly; the sea is not closing.\n>\n> — *the lock keeper, to a boat with two engines*",
)

CLOSINGS: Final = (
    "At {reaches} nothing much happens. The {name} gets wide, then shallow, then salty; a few birds, a lot of sky. Somewhere out "
    "there the last of it stops being a river, and nobody has ever seen that, either. But upstream, {rises}, the moss is wet.",
    "So the {name} came to {reaches}, after {length} kilometres and a story that was rather shorter. It had been stopped twice and "
    "cut off once, and it had lost nothing that anybody had already seen. There are worse things to say of a life.",
    "The last kilometre is the slowest. The {name} spreads out as if it wanted to look at everything once more, and then it is "
    "{reaches}, and has always been. *Was that all?* asked the child in the boat. *No*, said the ferryman. *That was one.*",
)

TITLES: Final = (
    "What the {name} said",
    "The long sentence of the {name}",
    "Down the {name}, one word at a time",
    "The keeper of the {name}",
    "A short history of going downhill",
    "How the {name} was late, and wasn't",
)
