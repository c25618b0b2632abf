"""An upstream as it is configured: how it is asked, how patiently, and what was learned of it on the way."""

from msgspec import Struct

from headwater.config.settings import UpstreamSettings
from headwater.conversation import Target
from headwater.dialects import DIALECTS
from headwater.dialects.base import Dialect
from headwater.judge import Rules
from headwater.policy import Prefill, RetryLimits, StallLimits
from headwater.upstream.exchange import Opener
from headwater.upstream.health import CannotStream, Health
from headwater.upstream.keys import Keys
from headwater.upstream.mask import Mask
from headwater.upstream.providers import PrefixFlag


class Endpoint:
    """One for each upstream, for as long as its settings last."""

    def __init__(self, name: str, settings: UpstreamSettings, opener: Opener, *, needs_finish_reason: bool) -> None:
        self.name = name
        self.opener = opener
        self.dialect: Dialect = DIALECTS[settings.dialect]
        self.keys = Keys([key.reveal() for key in settings.api_key], settings.cool_down_s)
        self.mask = Mask(settings)
        self.health = Health(settings.cool_down_after, settings.cool_down_s)
        self.cannot_stream = CannotStream(settings.not_streaming_s)
        self.rules = Rules(needs_finish_reason, settings.allow_empty)
        self.think_tags = settings.think_tags == "auto"
        self.limit_bytes = settings.limit_bytes
        self.retry_limits = RetryLimits(
            settings.retries,
            settings.backoff_s,
            settings.backoff_cap_s,
            settings.retry_after_cap_s,
            settings.continuations,
        )
        self._stall = StallLimits(settings.first_token_timeout_s, settings.idle_timeout_s, settings.total_timeout_s)

    def stall_limits(self, *, streamed: bool) -> StallLimits:
        """An answer in one piece has its first token at its end."""
        whole_s = self._stall.total_s
        return self._stall if streamed else StallLimits(whole_s, whole_s, whole_s)


class Route(Struct, frozen=True, kw_only=True):
    """A model at an endpoint: what a client's name for it leads to."""

    endpoint: Endpoint
    model: str
    """As the endpoint calls it."""
    target: Target
    prefill: Prefill = "none"
    prefix_flag: PrefixFlag = PrefixFlag()
