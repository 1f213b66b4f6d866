"""The manager: talks to callers whom the host hands over."""

from __future__ import annotations

from livekit.agents import Agent, ChatContext

INSTRUCTIONS = """You are the manager of Bamboo House, a restaurant, on the telephone.
The host has handed the caller over to you. Answer in the caller's language, in one or two short
sentences."""


class Manager(Agent):
    """Takes over with what the host and the caller have said so far."""

    def __init__(self, *, chat_ctx: ChatContext) -> None:
        super().__init__(instructions=INSTRUCTIONS, chat_ctx=chat_ctx)

    async def on_enter(self) -> None:
        self.session.generate_reply(instructions="Say who you are, and ask how you can help.")
