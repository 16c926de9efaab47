"""How much one text may grow to: variables, aliases and merges can multiply what is written without end."""

from __future__ import annotations

import msgspec

from trimtab.messages import Message, msg

MOST_WORDS = 2_000
"""Of one launch, its variables counted too; the longest published one has 120."""
LAUNCH_WORDS = 50
"""What a launch counts for beside its words."""
TOO_MANY = msg("From here on launches are left out: this text grows to too many words.")


class Allowance(msgspec.Struct):
    """How many words are still allowed."""

    words: int = 200_000

    def take(self, words: int) -> bool:
        """Whether so many more are allowed; if so, they are counted."""
        if words > self.words:
            return False
        self.words -= words
        return True

    def refusal(self, words: int) -> Message | None:
        """Why a launch of so many words is left out, and all after it; None when it is taken."""
        if not self.take(LAUNCH_WORDS + words):
            self.words = 0
            return TOO_MANY
        if words > MOST_WORDS:
            return msg("This launch grows to {words:,} words; at most {most:,} are read.", words=words, most=MOST_WORDS)
        return None
