"""Takeaway: takes orders of food from callers whom the host hands over."""

from __future__ import annotations

from livekit.agents import Agent, ChatContext, function_tool

from ..menu import allergens_of
from ..restaurant import Context, Meal

INSTRUCTIONS = """You are the takeaway of Bamboo House, a restaurant, on the telephone.
The host has handed the caller over to you. Take orders of food to take away. Answer in the caller's
language, in one or two short sentences. Never order what you have already ordered."""
MINUTES = 20


class Takeaway(Agent):
    """Takes over with what the host and the caller have said so far."""

    def __init__(self, *, chat_ctx: ChatContext) -> None:
        super().__init__(instructions=INSTRUCTIONS, chat_ctx=chat_ctx)

    async def on_enter(self) -> None:
        self.session.generate_reply(instructions="Ask what the caller would like to take away.")

    @function_tool
    async def order_meal(self, ctx: Context, dish: str, portions: int) -> str:
        """Have the kitchen cook a dish, for the caller to take away.

        Args:
            dish: The dish, as the caller names it.
            portions: How many of it.
        """
        async with ctx.userdata.at_work(ctx):
            allergens_of(dish)  # or it is not on the menu
            ctx.userdata.meals.append(Meal(dish, portions))
        return f"Ordered: {portions} of {dish}, ready in {MINUTES} minutes."
