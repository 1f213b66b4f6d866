"""How the model words its answers in English."""

from __future__ import annotations

from typing import Any

from ..opening import WEEKDAYS
from .voice import Voice
from .words import MONTHS, NUMBERS


def _in_english(name: str, value: Any) -> str:
    if name == "day":
        return _day_in_english(value)
    if name == "time":
        hour, minute = int(value[:2]), value[3:]
        return f"{(hour - 1) % 12 + 1}{'' if minute == '00' else ':' + minute} {'pm' if hour >= 12 else 'am'}"
    if name in {"people", "portions"} and 1 <= int(value) <= len(NUMBERS):
        return NUMBERS[int(value) - 1]
    return str(value)


def _day_in_english(day: str) -> str:
    if day in {"today", "tomorrow"}:
        return day
    if day in WEEKDAYS:
        return f"on {day}"
    month, of_month = map(int, day.split("-")[-2:])
    return f"on {MONTHS[month - 1]} {of_month}"


ENGLISH = Voice(
    greeting="Bamboo House, good evening. 竹园餐厅，您好。",
    greetings={
        "manager": "Good evening, I am the manager. How can I help? ",
        "takeaway": "Takeaway, good evening. What would you like? ",
    },
    goodbye="Thank you for calling. Goodbye. ",
    anything_else="Is there anything else I can do for you? ",
    ask_name="May I have your name, please? ",
    ask_phone="And your telephone number, please? ",
    asks={
        "day": "For which day, please? ",
        "time": "At what time, please? ",
        "people": "For how many people, please? ",
    },
    announces={
        "find_table": "One moment, I am looking for a table for {people} {day} at {time}. ",
        "find_reservation": "I am looking it up. ",
        "create_reservation": "Certainly: {people} people {day} at {time}, under {name}. "
        "I am writing it into the book for you right now, ",
        "send_confirmation": "and I am sending you a text message to confirm it. ",
        "change_reservation": "Of course, I am changing that for you. ",
        "cancel_reservation": "I am cancelling that for you. ",
        "charge_deposit": "I am charging the deposit to your card. ",
        "check_allergens": "I am asking the kitchen about the {dish}. ",
        "send_text": "I am texting you the {about}. ",
        "order_meal": "That is {portions} {dish}, I am passing it on. ",
        "request_callback": "The manager will call you back, I only need to know where. ",
        "note_contact": "Thank you. ",
        "transfer_to_manager": "I am putting you through. ",
        "transfer_to_takeaway": "I am putting you through to takeaway. ",
    },
    running={
        "find_table": "I am still looking for a table. ",
        "find_reservation": "I am still looking it up. ",
        "create_reservation": "I am writing your reservation down right now. ",
        "send_confirmation": "The text message to confirm it is on its way. ",
        "change_reservation": "I am changing your reservation right now. ",
        "cancel_reservation": "I am cancelling it right now. ",
        "charge_deposit": "I am charging the deposit right now. ",
        "check_allergens": "The kitchen is looking into the {dish}, I will tell you. ",
        "send_text": "The text message with the {about} is still on its way. ",
        "order_meal": "I am passing your order on right now. ",
        "request_callback": "I am taking down where to call you back. ",
        "note_contact": "I am taking that down. ",
        "transfer_to_manager": "I am putting you through. ",
        "transfer_to_takeaway": "I am putting you through. ",
    },
    done={
        "find_table": "There is a table for {people} {day} at {time}. Shall I book it? ",
        "find_reservation": "I have found it: order {order}, {people} people {day} at {time}, under {name}. ",
        "create_reservation": "It is booked: order {order}, {people} people {day} at {time}. ",
        "send_confirmation": "The text message has been sent. ",
        "change_reservation": "Done: order {order} is now for {people} people {day} at {time}. ",
        "cancel_reservation": "Order {order} is cancelled. ",
        "charge_deposit": "The deposit of {euros} euros has been charged. ",
        "check_allergens": "The kitchen says that the {dish} contains {allergens}. ",
        "send_text": "The text message with the {about} has been sent, confirmation number {number}. ",
        "order_meal": "Your {portions} {dish} will be ready in {minutes} minutes. ",
        "request_callback": "The manager will call you back on {number}. ",
        "note_contact": "",
        "transfer_to_manager": "",
        "transfer_to_takeaway": "",
    },
    no_table="I am sorry, there is no table for {people} {day} at {time}. Would another time do? ",
    text_number="The confirmation number of your text message was {number}. ",
    failed="I am sorry, that did not work: {output}. ",
    in_words=_in_english,
)
