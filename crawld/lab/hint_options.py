"""The properties of simulated hints, as `--hints` gives them.

`lag=60,miss=0.05,false=0.1,poll=600:0.1`: a change is reported `lag` seconds after it happens; a
share `miss` of the changes is never reported; a share `false` of all hints is false, at random
pages and times; with `poll`, hints arrive only at intervals of that many seconds, and the polls
take the given share of the slots.
"""

from __future__ import annotations

from dataclasses import dataclass

from crawld.errors import OperatorError

_FORM = "Give --hints lag=60[,miss=0.05][,false=0.1][,poll=600:0.1]."


@dataclass(frozen=True, slots=True)
class HintOptions:
    """Properties of the simulated hints.

    Attributes:
        lag_s: from change to hint, seconds.
        miss: share of changes never reported. false: share of hints that are false. Both in [0, 1).
        poll_s: seconds between polls, 0 = pushed. poll_share: share of the slots polls take.
    """

    lag_s: float
    miss: float = 0.0
    false: float = 0.0
    poll_s: float = 0.0
    poll_share: float = 0.0

    def __str__(self) -> str:
        poll = f",poll={self.poll_s:g}:{self.poll_share:g}" if self.poll_s else ""
        return f"lag={self.lag_s:g},miss={self.miss:g},false={self.false:g}{poll}"

    @staticmethod
    def parse(text: str) -> HintOptions:
        """Parse the value of `--hints`.

        Raises:
            OperatorError: a part is unknown or out of range; the message shows the form.
        """
        names = {"lag": "lag_s", "miss": "miss", "false": "false"}
        values = {"lag_s": 0.0, "miss": 0.0, "false": 0.0, "poll_s": 0.0, "poll_share": 0.0}
        try:
            for part in text.split(","):
                name, _, value = part.partition("=")
                if name == "poll":
                    every, _, share = value.partition(":")
                    values["poll_s"], values["poll_share"] = float(every), float(share)
                else:
                    values[names[name]] = float(value)
        except (KeyError, ValueError) as error:
            raise OperatorError(f"cannot parse the hints {text!r}", hint=_FORM) from error
        shares = (values["miss"], values["false"], values["poll_share"])
        if not all(0.0 <= share < 1.0 for share in shares) or min(values.values()) < 0.0:
            raise OperatorError(f"the hints {text!r} are out of range", hint=_FORM)
        return HintOptions(**values)
