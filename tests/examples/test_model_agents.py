"""What the offline model decides as each agent, and about what any of them may be told."""

import pytest
from _contexts import RUNNING, agent, caller, calls, context

from examples.restaurant.model import decide

CLERK = ("system", "You are the clerk of Bamboo House")
TAKEAWAY = ("system", "You are the takeaway of Bamboo House")
MANAGER = ("system", "You are the manager of Bamboo House")


@pytest.mark.parametrize(
    ("words", "made"),
    [
        ("Could you text me the menu, please?", [("send_text", {"about": "menu"})]),
        ("请把路线发短信给我。", [("send_text", {"about": "directions"})]),
        ("短信发一下菜单", [("send_text", {"about": "menu"})]),
        ("Can the manager call me back?", [("request_callback", {})]),
        ("请经理给我回个电话", [("request_callback", {})]),
        ("I would like to order something to take away.", [("transfer_to_takeaway", {})]),
        ("两份春卷，打包", [("transfer_to_takeaway", {})]),
        (
            "Text me the menu, and have the manager call me back.",
            [("send_text", {"about": "menu"}), ("request_callback", {})],
        ),
    ],
)
def test_the_host_does_errands(words, made):
    assert calls(caller(words)) == made


@pytest.mark.parametrize(
    ("words", "meal"),
    [
        ("Two portions of spring rolls, please.", {"dish": "spring rolls", "portions": 2}),
        ("12 Kung Pao chicken", {"dish": "kung pao chicken", "portions": 12}),
        ("来三份清蒸鱼", {"dish": "清蒸鱼", "portions": 3}),
    ],
)
def test_takeaway_orders_meals(words, meal):
    assert calls(TAKEAWAY, caller(words)) == [("order_meal", meal)]


def test_who_has_a_tool_calls_it():
    """Everyone has the session's; the clerk only asks."""
    words = caller("Text me the menu. Two spring rolls. My name is Miller, my number is 555 0142.")
    text = ("send_text", {"about": "menu"})
    assert calls(MANAGER, words) == [text]
    assert calls(TAKEAWAY, words) == [("order_meal", {"dish": "spring rolls", "portions": 2}), text]
    assert calls(words) == [text, ("transfer_to_takeaway", {})]
    assert calls(CLERK, words) == [("note_contact", {"name": "Miller", "number": "5550142"})]


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ([caller("Call me back")], "May I have your name, please? "),
        (
            [caller("Call me back"), agent("The manager will call you back.")],
            "May I have your name, please? ",
        ),
        ([caller("Call me back"), agent("May I have your name, please?")], ""),
        ([caller("我姓王")], "请问您的电话号码？"),
        ([caller("My number is 555 0142")], "May I have your name, please? "),
        (
            [caller("This is Miller"), ("send_text", {"about": "menu"}, "sent: confirmation number 301.")],
            "The text message with the menu has been sent, confirmation number 301. "
            "And your telephone number, please? ",
        ),
    ],
)
def test_the_clerk_asks_for_what_it_does_not_know(said, asked):
    assert decide(context(CLERK, *said)).text == asked


TEXT = ("send_text", {"about": "menu"})


@pytest.mark.parametrize(
    ("outputs", "told"),
    [
        ((), "The text message with the menu is still on its way. "),
        ((RUNNING,), "The text message with the menu is still on its way. "),
        (
            ("Text message sent, with the menu: confirmation number 301.",),
            "The confirmation number of your text message was 301. ",
        ),
    ],
)
@pytest.mark.parametrize("role", [MANAGER, TAKEAWAY, ("system", "You are the host of Bamboo House")])
def test_a_text_messages_number_is_remembered_if_it_is_shown(role, outputs, told):
    greeting = agent("Good evening, I am the manager. Takeaway, good evening.")
    before = (role, caller("Text me the menu"), (*TEXT, *outputs), greeting)
    assert decide(context(*before, caller("What was the confirmation number?"))).text == told


def test_a_text_message_that_is_not_shown_is_sent_again():
    """This is how the next agent sends it a second time."""
    before = (TAKEAWAY, caller("Text me the menu"), agent("Takeaway, good evening."))
    assert calls(*before, caller("What was the confirmation number?")) == [TEXT]


def test_what_is_asked_to_be_told_is_told_unless_it_was():
    """A late result that the caller may have heard of already."""
    kitchen = ("check_allergens", {"dish": "春卷"}, "The kitchen says: 春卷 contains gluten, sesame.")
    before = (caller("春卷里有什么？"), kitchen, caller("谢谢"), agent("谢谢您的来电，再见。"))
    assert decide(context(*before)).text == ""
    please_tell = ("system", "The tools [id='c1'] have ended; tell the caller what is new in ['c1'].")
    told = "厨房说，春卷含有麸质和芝麻。"
    assert decide(context(*before, please_tell)).text == told
    assert decide(context(*before, agent(told), please_tell)).text == ""


def test_each_agent_greets_once():
    assert "Bamboo House" in decide(context()).text
    greeting = decide(
        context(MANAGER, caller("经理"), ("transfer_to_manager", {}, ""), agent("我为您转接。"))
    ).text
    assert greeting == "您好，我是经理，请问有什么可以帮您？"
    put_through = (caller("Something to take away"), agent("I am putting you through to takeaway. "))
    assert decide(context(TAKEAWAY, *put_through)).text == "Takeaway, good evening. What would you like? "
