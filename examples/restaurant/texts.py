"""Text messages to the caller. The session has these tools, so that they go on whoever has the floor."""

from __future__ import annotations

from typing import Literal

from livekit.agents import function_tool
from livekit.agents.llm.async_toolset import AsyncToolset

from .restaurant import Context

FIRST_NUMBER = 301


class Texts(AsyncToolset):
    """What a session needs to send text messages; it gives each session one of its own."""

    def __init__(self) -> None:
        super().__init__(id="texts", tools=[send_text])


@function_tool
async def send_text(ctx: Context, about: Literal["menu", "directions"]) -> str:
    """Send the caller a text message. Its confirmation number comes later; talk on meanwhile.

    Args:
        about: What the caller is to get.
    """
    await ctx.update(f"The text message with the {about} is on its way.")
    async with ctx.userdata.at_work(ctx):
        ctx.userdata.texts.append(about)
        number = FIRST_NUMBER - 1 + len(ctx.userdata.texts)
    return f"Text message sent, with the {about}: confirmation number {number}."
