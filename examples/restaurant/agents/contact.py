"""Takes the caller's name and number, for whichever tool needs them."""

from __future__ import annotations

from dataclasses import dataclass

from livekit.agents import AgentTask, ChatContext, function_tool

INSTRUCTIONS = """You are the clerk of Bamboo House, a restaurant, on the telephone.
Take the caller's name and telephone number, and note them down in one call once you know both. Do not
ask for what the caller has told already. Answer in the caller's language, in one short sentence."""


@dataclass(frozen=True)
class Contact:
    """Who called, and where to call back."""

    name: str
    number: str


class TakeContact(AgentTask[Contact]):
    """Has the floor until the caller has told both."""

    def __init__(self, *, chat_ctx: ChatContext) -> None:
        super().__init__(instructions=INSTRUCTIONS, chat_ctx=chat_ctx)

    async def on_enter(self) -> None:
        self.session.generate_reply(instructions="Ask the caller for what you do not know yet.")

    @function_tool
    async def note_contact(self, name: str, number: str) -> None:
        """Note down the caller's name and number. Only once you know both.

        Args:
            name: The caller's name.
            number: The caller's telephone number, digits only.
        """
        self.complete(Contact(name, number))
