"""What an upstream's dialect can't be told of a request, and what a client's dialect can't say of an answer.

One table for each way. They are what `notes` and `unsaid` go by, and what docs/dialects.md is made of: nothing is
dropped in silence, and nothing is documented that does not happen.
"""

from headwater.dialects.carry.answered import ANSWERED, MAY_BE_UNSAID, Answered, unsaid
from headwater.dialects.carry.asked import ASKED, notes
from headwater.dialects.carry.fate import CARRIED, Fate
from headwater.dialects.carry.question import Question
from headwater.dialects.carry.row import Asked

__all__ = ["ANSWERED", "ASKED", "CARRIED", "MAY_BE_UNSAID", "Answered", "Asked", "Fate", "Question", "notes", "unsaid"]
