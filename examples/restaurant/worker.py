"""The restaurant's telephone as a LiveKit worker.

    python -m examples.restaurant.worker dev                        # or: start, console, connect
    python -m livekit.agents start examples/restaurant/worker.py    # what the `lk` tool runs

The environment:

LIVEKIT_URL, LIVEKIT_API_KEY, LIVEKIT_API_SECRET   where the calls come from
OPENAI_API_KEY         the models' key
RESTAURANT_REALTIME    1: one speech-to-speech model instead of the three that hear, think and speak
RESTAURANT_BOOK        the file with the reservations (restaurant.db)
RESTAURANT_REPORTS     a folder for the reports of the calls; without it, none are kept
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from livekit.agents import AgentServer, JobContext, JobProcess, cli
from livekit.plugins import openai, silero

from safe_session import CallReplayed, SafeAgentSession

from .agents import Host
from .book import Book
from .restaurant import AT_ONCE, Restaurant
from .texts import Texts

logger = logging.getLogger("restaurant")

KEY = "OPENAI_API_KEY"
LIVEKIT = MappingProxyType(
    {"LIVEKIT_URL": "--url", "LIVEKIT_API_KEY": "--api-key", "LIVEKIT_API_SECRET": "--api-secret"}
)  # with the options that give the same
NEEDS = MappingProxyType(
    {"console": (KEY,), "connect": (KEY, *LIVEKIT), "dev": (KEY, *LIVEKIT), "start": (KEY, *LIVEKIT)}
)

server = AgentServer()


def prewarm(process: JobProcess) -> None:
    """Load, before the first call comes, what takes long."""
    process.userdata["vad"] = silero.VAD.load()


server.setup_fnc = prewarm


async def keep_report(ctx: JobContext) -> None:
    """Keep what was said and done in a call. Each tool call is in it, with its ending."""
    folder = os.environ.get("RESTAURANT_REPORTS")
    if not folder:
        return
    try:
        report = ctx.make_session_report()
    except RuntimeError:
        return  # the job has ended before its session began
    path = Path(folder) / f"{report.job_id}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report.to_dict(), ensure_ascii=False, indent=2), encoding="utf-8")


@server.rtc_session(on_session_end=keep_report)
async def answer(ctx: JobContext) -> None:
    """Answer one call."""
    ctx.log_context_fields = {"room": ctx.room.name}
    book = Book(Path(os.environ.get("RESTAURANT_BOOK", "restaurant.db")))
    session = SafeAgentSession[Restaurant](
        userdata=Restaurant(book, durations=AT_ONCE), tools=[Texts()], **models(ctx.proc)
    )

    @session.on("call_replayed")
    def on_call_replayed(event: CallReplayed) -> None:
        logger.info("%s was not run again: its model could not know of the first", event.tool)

    async def hang_up() -> None:
        logger.info("models used: %s", session.usage)
        book.close()

    ctx.add_shutdown_callback(hang_up)
    await session.start(Host(), room=ctx.room)


def models(process: JobProcess) -> dict[str, Any]:
    """What hears, thinks and speaks."""
    if os.environ.get("RESTAURANT_REALTIME"):
        return {"llm": openai.realtime.RealtimeModel(voice="coral")}
    return {
        "vad": process.userdata["vad"],
        "stt": openai.STT(detect_language=True),  # callers speak English and Chinese
        "llm": openai.LLM(model="gpt-4.1"),
        "tts": openai.TTS(voice="coral"),
    }


def missing(arguments: Sequence[str]) -> list[str]:
    """What a command needs, and neither the environment nor one of its options gives."""
    needed = NEEDS.get(arguments[0], ()) if arguments else ()
    options = {argument.partition("=")[0] for argument in arguments}
    return [each for each in needed if not os.environ.get(each) and LIVEKIT.get(each) not in options]


# Here, and not below: `python -m livekit.agents` and the `lk` tool import this module and run its server.
if absent := missing(sys.argv[1:]):
    sys.exit(f"missing in the environment: {', '.join(absent)}")

if __name__ == "__main__":
    cli.run_app(server)
