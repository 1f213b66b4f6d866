"""What drives an `AgentSession` in a test, without a network and on a virtual clock.

A `ScriptedModel` answers, a scripted caller speaks and listens on a `Line`, `run()` makes the time pass at
once, and `check_guarantees()` tells whether a tool call was lost or doubled. All of it works with
livekit-agents' own `AgentSession` and with any subclass of it.
"""

from ._caller import Caller
from ._check import Violation, check_guarantees
from ._clock import run
from ._line import Line
from ._model import Answer, Call, Inference, ScriptedModel
from ._realtime import ScriptedRealtimeModel
from ._realtime_context import Push
from ._realtime_server import RealtimeInference
from ._realtime_session import ScriptedRealtimeSession
from ._speaker import Speaker, Utterance

__all__ = [
    "Answer",
    "Call",
    "Caller",
    "Inference",
    "Line",
    "Push",
    "RealtimeInference",
    "ScriptedModel",
    "ScriptedRealtimeModel",
    "ScriptedRealtimeSession",
    "Speaker",
    "Utterance",
    "Violation",
    "check_guarantees",
    "run",
]
