"""A phone line between a scripted caller and a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._caller import Caller
from ._changes import Changes
from ._ears import Ears, Microphone
from ._speaker import Speaker
from ._speech import Voice

if TYPE_CHECKING:
    from livekit.agents import (
        AgentSession,
        CloseEvent,
        SpeechCreatedEvent,
        UserStateChangedEvent,
    )
    from livekit.agents.voice import SpeechHandle


class Line:
    """A phone call without a phone: a caller who follows the test, and a speaker that knows what was heard.

        line = Line()
        session = AgentSession(llm=model, **line.options())
        line.connect(session)
        await session.start(agent)
        await line.caller.say("A table for four, please.")
        await line.quiet()
        assert line.speaker.heard == ["Booked for four."]

    Everything goes by the event loop's clock: in real time on an ordinary loop, in no time and exactly on a
    virtual one (see `run()`). A line belongs to one session; several sessions have a line each.

    Attributes:
        caller: Who calls. `await line.caller.say(text)`.
        speaker: What the caller hears the agent say.

    Args:
        words_per_second: How fast both of them speak.
    """

    def __init__(self, words_per_second: float = 3.0) -> None:
        if words_per_second <= 0:
            raise ValueError(f"words_per_second must be more than 0, not {words_per_second}")
        self._changes = Changes()
        self._ears = Ears()
        self._voice = Voice(words_per_second)
        self._microphone = Microphone()
        self._session: AgentSession[Any] | None = None
        self._closed = False
        self._speeches: list[SpeechHandle] = []  # those that are not done
        self.caller = Caller(self._ears, self._changes, words_per_second)
        self.speaker = Speaker(self._changes)

    def options(self, *, preemptive: bool = False, realtime: bool = False) -> dict[str, Any]:
        """Give the keyword arguments for an `AgentSession` on this line.

        Turns end when the caller's words do, without a delay of livekit-agents' own, and an interruption is
        an interruption: there is no echo warm-up in which it is ignored, and no resuming after a false one.

        Args:
            preemptive: Whether the session may start to generate before the caller's turn has ended.
            realtime: Whether its model is a realtime one, which hears the caller itself and finds out when
                their turn ends (`ScriptedRealtimeSession.hear`). What `caller` says is not heard then.
        """
        return {
            "stt": None if realtime else self._ears,
            "tts": self._voice,
            "vad": None,
            "turn_handling": {
                "turn_detection": "realtime_llm" if realtime else "stt",
                "endpointing": {"mode": "fixed", "min_delay": 0.0, "max_delay": 0.0},
                "interruption": {
                    "enabled": True,
                    "mode": "vad",
                    "min_duration": 0.0,
                    "min_words": 0,
                    "resume_false_interruption": False,
                    "false_interruption_timeout": None,
                    "backchannel_boundary": None,
                },
                "preemptive_generation": {"enabled": preemptive},
            },
            "aec_warmup_duration": None,
            # livekit-agents waits this long for a last transcript, or doesn't, by the wall clock.
            "session_close_transcript_timeout": 0.0,
            "tts_text_transforms": None,  # livekit-agents' own hold words back
        }

    def connect(self, session: AgentSession[Any]) -> None:
        """Connect a session that was made with `options()`, before it is started.

        Raises:
            RuntimeError: The line has had a session already.
        """
        if self._session is not None:
            raise RuntimeError("this line has a session already; make a new Line for each session")
        self._session = session
        self.caller.pick_up()
        session.input.audio = self._microphone
        session.output.audio = self.speaker
        session.on("user_state_changed", self._on_user_state)
        session.on("agent_state_changed", self._on_change)
        session.on("conversation_item_added", self._on_change)
        session.on("function_tools_executed", self._on_change)
        session.on("speech_created", self._on_speech)
        session.on("close", self._on_close)

    async def quiet(self, *, settle: float = 0.1) -> None:
        """Wait until neither side talks and the session has nothing left to say or to do.

        That is: the caller is silent, the agent listens or is idle, nothing plays, every reply that was
        begun is done (with the tools it waits for), and nothing of it changes for `settle` seconds. It
        returns at once after the session has closed. What the line cannot know of is not waited for: a tool
        that goes on in the background, and a user turn hook that takes longer than `settle`.

        Args:
            settle: Seconds without any change.

        Raises:
            RuntimeError: The line has no session.
        """
        session = self._session
        if session is None:
            raise RuntimeError("this line has no session; connect() one first")
        changed = True
        while changed and not self._closed:
            await self._changes.until(lambda: self._closed or self._is_quiet(session))
            changed = await self._changes.within(settle)

    def _is_quiet(self, session: AgentSession[Any]) -> bool:
        return (
            not self.caller.speaking
            and session.user_state != "speaking"
            and session.agent_state in ("listening", "idle")
            and not self.speaker.playing
            and not self._speeches
        )

    def _on_user_state(self, event: UserStateChangedEvent) -> None:
        if event.old_state == "speaking":
            self.caller.turn_noted()
        self._changes.notify()

    def _on_speech(self, event: SpeechCreatedEvent) -> None:
        self._speeches.append(event.speech_handle)
        event.speech_handle.add_done_callback(self._on_speech_done)
        self._changes.notify()

    def _on_speech_done(self, speech: SpeechHandle) -> None:
        self._speeches = [other for other in self._speeches if other is not speech]
        self._changes.notify()

    def _on_change(self, _: object) -> None:
        self._changes.notify()

    def _on_close(self, _: CloseEvent) -> None:
        self._closed = True
        self.caller.hang_up()
        self._changes.close("the session has closed, and what was waited for had not happened")
