"""The host: takes, changes and cancels reservations, and puts callers through."""

from __future__ import annotations

from datetime import date

from livekit.agents import Agent, ChatContext, function_tool

from safe_session import tool_policy

from ..menu import allergens_of
from ..restaurant import Context
from .contact import TakeContact
from .manager import Manager
from .takeaway import Takeaway

INSTRUCTIONS = """You are the host of Bamboo House, a restaurant, on the telephone.
Today is {today}. Answer in the caller's language, in one or two short sentences.
Look for a table before you offer one. Once the caller agrees, make the reservation and send the
confirmation in one step. Never make a reservation that you have already made, or are making."""


class Host(Agent):
    """Answers first. Every tool works on the restaurant that the session carries."""

    def __init__(self) -> None:
        super().__init__(instructions=INSTRUCTIONS.format(today=f"{date.today():%A, %Y-%m-%d}"))

    async def on_enter(self) -> None:
        self.session.generate_reply(instructions="Greet the caller.")

    @tool_policy(repeat="freely")
    @function_tool
    async def find_table(self, ctx: Context, day: str, time: str, people: int) -> str:
        """Look in the calendar for a free table.

        Args:
            day: Day of the week, in English, such as Friday; today or tomorrow; or a date such as 2025-12-24.
            time: Time of day, such as 19:00.
            people: Size of the party.
        """
        async with ctx.userdata.at_work(ctx):
            wanted, free = ctx.userdata.book.look(day=day, time=time, people=people)
        table = f"table for {people} on {wanted:%A %Y-%m-%d} at {wanted:%H:%M}"
        if wanted in free:
            return f"There is a free {table}."
        others = " or ".join(f"{each:%H:%M}" for each in free[:2])
        return f"There is no free {table}" + (f"; there is one at {others}." if others else ".")

    @tool_policy(repeat="freely")
    @function_tool
    async def find_reservation(self, ctx: Context, name_or_order: str) -> str:
        """Look a reservation up.

        Args:
            name_or_order: The name it is under, or its order number, such as 047.
        """
        async with ctx.userdata.at_work(ctx):
            found = ctx.userdata.book.find(name_or_order)
        return f"Found: {found}."

    @function_tool
    async def create_reservation(self, ctx: Context, name: str, day: str, time: str, people: int) -> str:
        """Make a reservation. Only once the caller has agreed.

        Args:
            name: The caller's name.
            day: Day of the week, in English, such as Friday; today or tomorrow; or a date such as 2025-12-24.
            time: Time of day, such as 19:00.
            people: Size of the party.
        """
        async with ctx.userdata.at_work(ctx):
            made = ctx.userdata.book.create(name=name, day=day, time=time, people=people)
        return f"Reserved: {made}."

    @function_tool
    async def change_reservation(
        self,
        ctx: Context,
        order: str,
        day: str | None = None,
        time: str | None = None,
        people: int | None = None,
    ) -> str:
        """Change the day, the time or the size of a reservation.

        Args:
            order: The order number, such as 047, or the name it is under.
            day: The new day, if it changes: a day of the week, or a date.
            time: The new time of day, if it changes.
            people: The new size of the party, if it changes.
        """
        async with ctx.userdata.at_work(ctx):
            changed = ctx.userdata.book.change(order, day=day, time=time, people=people)
        return f"Changed: {changed}."

    @function_tool
    async def cancel_reservation(self, ctx: Context, order: str) -> str:
        """Cancel a reservation.

        Args:
            order: The order number, such as 047, or the name it is under.
        """
        async with ctx.userdata.at_work(ctx):
            cancelled = ctx.userdata.book.cancel(order)
        return f"Cancelled: {cancelled}."

    @tool_policy(repeat="once")
    @function_tool
    async def charge_deposit(self, ctx: Context, order: str) -> str:
        """Charge the deposit for a reservation to the caller's card. Only once the caller has agreed.

        Args:
            order: The order number, such as 047.
        """
        async with ctx.userdata.at_work(ctx):
            deposit = ctx.userdata.book.charge_deposit(order)
        return f"Charged: {deposit}."

    @function_tool
    async def send_confirmation(self, ctx: Context, name: str) -> str:
        """Send the caller a text message that says which reservations stand under their name.

        Args:
            name: The caller's name.
        """
        async with ctx.userdata.at_work(ctx):
            orders = [each.order for each in ctx.userdata.book.standing() if each.name == name]
        return f"Text message sent, with {'order ' + ', '.join(orders) if orders else 'no order'}."

    @tool_policy(on_handoff="retarget")  # whoever has the floor by then says what is in the dish
    @function_tool
    async def check_allergens(self, ctx: Context, dish: str) -> str:
        """Ask the kitchen what is in a dish. The answer comes later; talk on meanwhile.

        Args:
            dish: The dish, as the caller names it.
        """
        await ctx.update(f"The kitchen was asked what is in {dish}.")
        async with ctx.userdata.at_work(ctx):
            allergens = allergens_of(dish)
        return f"The kitchen says: {dish} contains {', '.join(allergens)}."

    @function_tool
    async def request_callback(self, ctx: Context) -> str:
        """Have the manager call the caller back; asks for name and number. Only if the caller asks for it."""
        async with ctx.userdata.at_work(ctx, asks_caller=True):
            contact = await TakeContact(chat_ctx=self._said_so_far())
        return f"The manager will call {contact.name} back on {contact.number}."

    @function_tool
    async def transfer_to_manager(self, ctx: Context) -> Agent:
        """Hand the caller over to the manager. Only if the caller asks for it."""
        async with ctx.userdata.at_work(ctx):
            return Manager(chat_ctx=self._said_so_far())

    @function_tool
    async def transfer_to_takeaway(self, ctx: Context) -> Agent:
        """Hand the caller over to takeaway, who takes orders of food. Only if the caller wants to order."""
        async with ctx.userdata.at_work(ctx):
            return Takeaway(chat_ctx=self._said_so_far())

    def _said_so_far(self) -> ChatContext:
        """What the next agent begins with."""
        return self.chat_ctx.copy(exclude_instructions=True, exclude_handoff=True)
