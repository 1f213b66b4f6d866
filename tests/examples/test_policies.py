"""Which of the host's tools may be repeated, and who tells what comes late: the policies of the example."""

import asyncio
from datetime import datetime

import pytest
from livekit.agents.llm import FunctionCallOutput

from examples.restaurant.agents import Host, Manager
from examples.restaurant.book import Book
from examples.restaurant.restaurant import DURATIONS, Restaurant
from safe_session import SafeAgentSession, SafeOptions, ToolPolicy
from safe_session.testing import Answer, Call, ScriptedModel

TABLE = {"name": "Miller", "day": "Friday", "time": "19:00", "people": 8}
CREATE = Call("create_reservation", TABLE)
CANCEL = Call("cancel_reservation", {"order": "047"})
DEPOSIT = Call("charge_deposit", {"order": "047"})
NOT_AGAIN = "Not run again: the same call with the same arguments was already made. It gave: "


class Telephone:
    """A call in text: each thing that the caller says is answered with the next calls of a script.

    Args:
        *script: What the model does, one after the other: a call, which it then says is done, or an answer.
        book: The reservations; none, if it is not given.
        safe: The session's options.
        **durations: Seconds that tools take.

    """

    def __init__(
        self,
        *script: Call | Answer,
        book: Book | None = None,
        safe: SafeOptions | None = None,
        **durations: float,
    ) -> None:
        answers = [answer for each in script for answer in answers_for(each)]
        self.ran: list[str] = []
        self.restaurant = Restaurant(
            book or Book(now=lambda: datetime(2025, 12, 2, 12)),
            durations={**dict.fromkeys(DURATIONS, 0.1), **durations},
            noticed=lambda work: self.ran.append(work.tool) if work.ended is None else None,
        )
        self.model = ScriptedModel([Answer("Bamboo House."), *answers, *[Answer("Well.")] * 5])
        self.session = SafeAgentSession[Restaurant](llm=self.model, userdata=self.restaurant, safe=safe)
        self.host = Host()

    async def __aenter__(self) -> "Telephone":
        await self.session.start(self.host)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.aclose()
        self.restaurant.book.close()

    async def says(self, *texts: str) -> None:
        for text in texts:
            await self.session.generate_reply(user_input=text)

    @property
    def outputs(self) -> list[str]:
        return [item.output for item in self.session.history.items if isinstance(item, FunctionCallOutput)]

    @property
    def orders(self) -> list[str]:
        return [reservation.order for reservation in self.restaurant.book.standing()]


def answers_for(what: Call | Answer) -> list[Answer]:
    return [what] if isinstance(what, Answer) else [Answer("", [what]), Answer("Done.")]


async def test_a_deposit_is_charged_once_although_the_model_asks_again():
    async with Telephone(CREATE, DEPOSIT, DEPOSIT) as call:
        await call.says("Eight on Friday.", "Charge the deposit.", "Charge the deposit.")
    assert call.ran == ["create_reservation", "charge_deposit"]
    charged = "Charged: 80 euros for order 047."
    assert call.outputs[1:] == [charged, NOT_AGAIN + charged]


async def test_a_deposit_that_could_not_be_charged_may_be_charged_again():
    async with Telephone(DEPOSIT, CREATE, DEPOSIT) as call:
        await call.says("Charge the deposit.", "Eight on Friday.", "Now charge the deposit.")
    assert call.ran == ["charge_deposit", "create_reservation", "charge_deposit"]
    assert call.outputs[0] == "there is no reservation '047'"
    assert call.outputs[-1] == "Charged: 80 euros for order 047."


async def test_the_book_charges_no_second_deposit_in_another_call():
    """Once is once per conversation; the database remembers longer."""
    async with Telephone(CREATE, DEPOSIT) as first:
        await first.says("Eight on Friday.", "Charge the deposit.")
        async with Telephone(DEPOSIT, book=first.restaurant.book) as second:
            await second.says("Charge the deposit.")
    assert second.outputs == ["the deposit for order 047 has been paid"]


async def test_what_was_cancelled_can_be_booked_again_knowingly():
    async with Telephone(CREATE, CANCEL, CREATE) as call:
        await call.says("Eight on Friday.", "Cancel it.", "Book it after all.")
        assert call.orders == ["048"]


async def test_once_does_not_suit_what_can_be_undone():
    """The model is given the number of an order that stands no more."""
    once = SafeOptions(policies={"create_reservation": ToolPolicy(repeat="once")})
    async with Telephone(CREATE, CANCEL, CREATE, safe=once) as call:
        await call.says("Eight on Friday.", "Cancel it.", "Book it after all.")
        assert call.orders == []
        assert call.outputs[-1].startswith(f"{NOT_AGAIN}Reserved: order 047")


@pytest.mark.parametrize(
    ("look_up", "times"),
    [
        (Call("find_table", {"day": "Friday", "time": "19:00", "people": 4}), 2),
        (Call("find_reservation", {"name_or_order": "Miller"}), 2),
        (CREATE, 1),
    ],
    ids=lambda value: getattr(value, "name", value),
)
async def test_a_look_up_is_never_held_back(look_up, times):
    """Two replies that are queued together decide on the same call."""
    async with Telephone(Answer("", [look_up]), Answer("", [look_up])) as call:
        call.restaurant.book.create(**TABLE)
        replies = [call.session.generate_reply(user_input=words) for words in ("What?", "What, please?")]
        for reply in replies:
            await reply
    assert call.ran == [look_up.name] * times


async def test_what_the_kitchen_says_is_told_by_whoever_has_the_floor():
    allergens = Call("check_allergens", {"dish": "spring rolls"})
    async with Telephone(allergens, check_allergens=3) as call:
        await call.says("What is in the spring rolls?")
        call.session.update_agent(Manager(chat_ctx=call.host.chat_ctx.copy(exclude_function_call=True)))
        await asyncio.sleep(10)
        told = call.model.inferences[-1]
        assert isinstance(call.session.current_agent, Manager)
        assert "gluten" in [output.output for output in told.outputs.values()][-1]


async def test_a_tool_that_is_stopped_before_its_one_write_has_written_nothing():
    """The session closes while the tool still waits for its turn in the book."""
    async with Telephone(CREATE, create_reservation=60) as call:
        call.session.generate_reply(user_input="Eight on Friday.")
        await asyncio.sleep(1)
        await call.session.aclose()
        assert call.orders == []
        assert "may already have taken effect" in call.outputs[-1]
