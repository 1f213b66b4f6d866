"""Talk to the host on the terminal. Typing while it speaks interrupts it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

from livekit.agents.llm import LLM
from livekit.agents.voice import SpeechHandle
from livekit.agents.voice.io import TextOutput

from safe_session import SafeAgentSession
from safe_session.testing import ScriptedModel

from .agents import Host
from .book import Book
from .model import decide
from .restaurant import Restaurant
from .texts import Texts

WORD = re.compile(r"\s*(?:[\u3000-\u9fff]|[^\s\u3000-\u9fff]+)\s*")  # a Chinese character is one
SECONDS_PER_WORD = 0.25


def chat_on_terminal(path: Path | None) -> None:
    """Talk until the caller hangs up with `/quit`, Ctrl-D or Ctrl-C."""
    book = Book(path)
    try:
        asyncio.run(_chat(Restaurant(book)))
        for reservation in book.standing():
            print(f"in the book: {reservation}")
    finally:
        book.close()


async def _chat(restaurant: Restaurant) -> None:
    model, which = _model()
    print(f"{which} Type while it speaks to interrupt it; /quit ends the call.")
    session = SafeAgentSession[Restaurant](llm=model, userdata=restaurant, tools=[Texts()])
    session.output.transcription = SpokenText(lambda: session.current_agent.id)
    await session.start(Host())
    try:
        reply: SpeechHandle | None = None
        async for line in _lines():
            session.interrupt()
            reply = session.generate_reply(user_input=line)
        if reply and not sys.stdin.isatty():  # a script ends before it is answered
            await reply.wait_for_playout()
    finally:
        await session.aclose()
        print()


def _model() -> tuple[LLM, str]:
    """The model, and a sentence that says which it is."""
    if not os.environ.get("OPENAI_API_KEY"):
        return ScriptedModel(decide), "You talk to the offline model (no OPENAI_API_KEY is set)."
    from livekit.plugins import openai  # noqa: PLC0415 - slow to import, and not always there

    model = openai.LLM()
    return model, f"You talk to OpenAI's {model.model}."


class SpokenText(TextOutput):
    """Prints what the agent says at the pace at which it would be spoken."""

    def __init__(self, speaker: Callable[[], str]) -> None:
        super().__init__(label="terminal", next_in_chain=None)
        self._speaker = speaker
        self._speaking = False

    async def capture_text(self, text: str) -> None:
        for word in WORD.findall(text):
            if not self._speaking:
                self._speaking = True
                print(f"\n{self._speaker()}: ", end="")
            print(word, end="", flush=True)
            try:
                await asyncio.sleep(SECONDS_PER_WORD)
            except asyncio.CancelledError:
                print("╳", end="")
                raise

    def flush(self) -> None:
        if self._speaking:
            self._speaking = False
            print(flush=True)


async def _lines() -> AsyncIterator[str]:
    """What is typed, line by line, until the end of the input, `/quit` or Ctrl-C."""
    loop = asyncio.get_running_loop()
    typed: asyncio.Queue[str | None] = asyncio.Queue()

    def read() -> None:
        # A thread of its own: a daemon, for nothing can end a thread that waits for the keyboard.
        for line in sys.stdin:
            loop.call_soon_threadsafe(typed.put_nowait, line)
        loop.call_soon_threadsafe(typed.put_nowait, None)

    threading.Thread(target=read, daemon=True).start()
    with suppress(NotImplementedError):  # Windows has no such handlers: there, Ctrl-C raises
        loop.add_signal_handler(signal.SIGINT, typed.put_nowait, None)
    while (line := await typed.get()) is not None and line.strip() != "/quit":
        if line.strip():
            yield line.strip()
