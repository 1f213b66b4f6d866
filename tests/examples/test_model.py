"""What the offline model decides from the context that it is shown, in both languages."""

import re
from contextlib import closing
from datetime import datetime

import pytest
from _contexts import RUNNING, agent, caller, calls, context

from examples.restaurant.book import Book, BookError
from examples.restaurant.menu import MenuError, allergens_of
from examples.restaurant.model import decide
from examples.restaurant.opening import OpeningError

ASKED = {
    "zh": caller("你好，我姓王，周五晚上七点，四位，有桌子吗？"),
    "en": caller("Hello, my name is Wang. Have you got a table for four on Friday at seven?"),
}
AGREED = {"zh": caller("改成六位，就这样订吧。"), "en": caller("Make it six, please. Yes, book it.")}
CHECKED = {"zh": caller("是六位，对吧？"), "en": caller("Six people, right?")}
NAME = {"zh": "王", "en": "Wang"}

FOUR = {"day": "Friday", "time": "19:00", "people": 4}
SIX = {**FOUR, "people": 6}
FOUND = ("find_table", FOUR, "There is a free table for 4 on Friday at 19:00.")

languages = pytest.mark.parametrize("language", ["zh", "en"])


def made(language, *output):
    return ("create_reservation", {"name": NAME[language], **SIX}, *output)


def reserved(language):
    return made(language, f"Reserved: order 047, {NAME[language]}, Friday 2025-12-05 19:00, 6 people.")


def sent(language, *output):
    return ("send_confirmation", {"name": NAME[language]}, *output)


@languages
def test_a_table_is_looked_for_first(language):
    assert calls(ASKED[language]) == [("find_table", FOUR)]


@languages
def test_a_table_found_is_offered(language):
    answer = decide(context(ASKED[language], FOUND))
    assert not answer.calls
    assert (
        answer.text
        == {
            "zh": "周五晚上七点有四位的桌子，要为您订下吗？",
            "en": "There is a table for four on Friday at 7 pm. Shall I book it? ",
        }[language]
    )


@languages
def test_it_is_booked_and_confirmed_in_one_step(language):
    assert calls(ASKED[language], FOUND, agent("…"), AGREED[language]) == [
        ("create_reservation", {"name": NAME[language], **SIX}),
        ("send_confirmation", {"name": NAME[language]}),
    ]


@languages
def test_what_is_not_shown_is_not_known(language):
    """This is how one order becomes two."""
    before = (ASKED[language], FOUND, agent("…"), AGREED[language], agent("…"))
    assert len(calls(*before, CHECKED[language])) == 2
    assert calls(*before, sent(language, RUNNING), CHECKED[language]) == [made(language)]


@languages
@pytest.mark.parametrize("confirmation", [(), (RUNNING,), ("Text message sent, with order 047.",)])
def test_what_is_shown_is_told_and_not_done_again(language, confirmation):
    before = (ASKED[language], FOUND, agent("…"), AGREED[language], agent("…"), reserved(language))
    answer = decide(context(*before, sent(language, *confirmation), CHECKED[language]))
    assert not answer.calls
    assert "047" in answer.text
    assert {"zh": "六位", "en": "six people"}[language] in answer.text


@languages
@pytest.mark.parametrize("output", [(), (RUNNING,)])
def test_a_reservation_being_made_is_not_made_again(language, output):
    before = (ASKED[language], FOUND, agent("…"), AGREED[language], made(language, *output))
    answer = decide(context(*before, sent(language), CHECKED[language]))
    assert not answer.calls
    assert {"zh": "正在登记", "en": "right now"}[language] in answer.text


@languages
def test_a_result_is_told_once(language):
    before = (
        ASKED[language],
        FOUND,
        agent("…"),
        AGREED[language],
        reserved(language),
        sent(language, "sent"),
    )
    told = decide(context(*before)).text
    assert "047" in told
    assert decide(context(*before, agent(told))).text == ""


@languages
def test_a_failure_is_told_and_not_tried_again(language):
    failed = made(language, "!there is no table for 6 on Friday at 19:00")
    answer = decide(
        context(ASKED[language], FOUND, agent("…"), AGREED[language], failed, sent(language, "!none"))
    )
    assert not answer.calls
    assert {"zh": "那个时间没有桌子了", "en": "there is no table for 6"}[language] in answer.text


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ("改成五位", ("change_reservation", {"order": "047", "people": 5})),
        ("Change it to eight o'clock, please.", ("change_reservation", {"order": "047", "time": "20:00"})),
        ("换成星期天，五个人", ("change_reservation", {"order": "047", "day": "Sunday", "people": 5})),
        ("请取消", ("cancel_reservation", {"order": "047"})),
        ("Please cancel order 048.", ("cancel_reservation", {"order": "048"})),
        ("Please charge the deposit.", ("charge_deposit", {"order": "047"})),
        ("请从我的卡上扣定金。", ("charge_deposit", {"order": "047"})),
        ("改到12月24号", ("change_reservation", {"order": "047", "day": "12-24"})),
    ],
)
def test_a_reservation_is_changed_or_cancelled(words, call):
    before = (ASKED["zh"], FOUND, agent("…"), AGREED["zh"], reserved("zh"), sent("zh", "sent"), agent("…"))
    assert calls(*before, caller(words)) == [call]


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ("Cancel reservation number 47.", ("cancel_reservation", {"order": "047"})),
        ("请把订单047改成六位", ("change_reservation", {"order": "047", "people": 6})),
        (
            "My name is Miller, please change my reservation to Sunday.",
            ("change_reservation", {"order": "Miller", "day": "Sunday"}),
        ),
        ("Have I got a reservation? Miller, order 47", ("find_reservation", {"name_or_order": "047"})),
        ("查一下我的预订，我姓王。", ("find_reservation", {"name_or_order": "王"})),
    ],
)
def test_a_reservation_of_an_earlier_call(words, call):
    assert calls(caller(words)) == [call]


def test_a_reservation_is_looked_up_once_the_name_is_known_and_then_changed():
    asked = caller("Do I have a reservation?")
    assert decide(context(asked)).text == "May I have your name, please? "
    named = (asked, agent("May I have your name, please? "), caller("My name is Miller."))
    found = {"name_or_order": "Miller"}
    assert calls(*named) == [("find_reservation", found)]
    output = "Found: order 051, Miller, Wednesday 2025-12-24 19:30, 2 people."
    told = "I have found it: order 051, two people on Wednesday at 7:30 pm, under Miller. "
    known = (*named, ("find_reservation", found, output))
    assert decide(context(*known)).text == told
    assert calls(*known, agent(told), caller("Make it four.")) == [
        ("change_reservation", {"order": "051", "people": 4})
    ]
    assert calls(*known, agent(told), caller("Please cancel it.")) == [
        ("cancel_reservation", {"order": "051"})
    ]


CANCEL = ("cancel_reservation", {"order": "王"})


def test_cancelled_and_confirmed_in_one_step():
    asked = caller("我姓王，请取消我的预订，再给我发个短信。")
    assert calls(asked) == [CANCEL, ("send_confirmation", {"name": "王"})]
    output = "Cancelled: order 047, 王, Friday 2025-12-05 19:00, 8 people."
    checked = decide(context(asked, (*CANCEL, output), sent("zh"), agent("…"), caller("取消了吗？")))
    assert checked.text == "订单047已经取消。"
    assert not checked.calls


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("A table for four, please.", "For which day, please? "),
        ("A table for four on Friday, please.", "At what time, please? "),
        ("我想订位子，周五晚上七点", "请问几位？"),
    ],
)
def test_what_is_missing_is_asked_for(words, asked):
    assert decide(context(caller(words))).text == asked


def test_the_name_is_asked_for_and_then_it_is_booked():
    before = (caller("周五晚上七点，四位，有桌子吗？"), FOUND, agent("…"), caller("好的"))
    assert decide(context(*before)).text == "请问您贵姓？"
    create, _ = calls(*before, agent("请问您贵姓？"), caller("我姓王"))
    assert create == ("create_reservation", {"name": "王", **FOUR})


def test_the_kitchen_is_asked_and_the_caller_handed_over_in_one_step():
    words = "Are there peanuts in the Kung Pao chicken? And may I speak to the manager?"
    assert calls(caller(words)) == [
        ("check_allergens", {"dish": "kung pao chicken"}),
        ("transfer_to_manager", {}),
    ]


@pytest.mark.parametrize(
    ("dish", "told"),
    [
        ("kung pao chicken", "The kitchen says that the kung pao chicken contains peanuts, soy. "),
        ("宫保鸡丁", "厨房说，宫保鸡丁含有花生和大豆。"),
    ],
)
def test_a_late_result_is_told(dish, told):
    asked = ("check_allergens", {"dish": dish}, f"The tool has updated. {RUNNING}")
    late = ("check_allergens", {"dish": dish}, f"The kitchen says: {dish} contains peanuts, soy.")
    assert decide(context(caller(dish), asked, agent("…"), late, ("system", "New results."))).text == told


@pytest.mark.parametrize(
    ("words", "told"),
    [("Are you still there?", "I am still looking for a table. "), ("喂，还在吗？", "我还在查桌子。")],
)
def test_a_caller_who_waits_is_told_what_runs(words, told):
    asked = {"Are you still there?": ASKED["en"], "喂，还在吗？": ASKED["zh"]}[words]
    shown = context(asked, (*FOUND[:2], RUNNING), agent("…"), caller(words))
    assert decide(shown).text == told


@pytest.mark.parametrize(
    ("day", "spoken"),
    [
        ("tomorrow", ("明天", "for four tomorrow at 7 pm")),
        ("12-24", ("12月24日", "for four on December 24 at 7 pm")),
        ("2026-01-02", ("1月2日", "for four on January 2 at 7 pm")),
    ],
)
def test_days_are_said_as_people_say_them(day, spoken):
    found = ("find_table", {**FOUR, "day": day}, "There is a free table.")
    for greeting, words in zip(("你好", "Hello"), spoken, strict=True):
        assert words in decide(context(caller(greeting), found)).text


EXCUSES = {
    "party": lambda book: book.create(name="王", day="Friday", time="19:00", people=13),
    "closed": lambda book: book.create(name="王", day="Monday", time="19:00", people=4),
    "hours": lambda book: book.create(name="王", day="Friday", time="16:00", people=4),
    "over": lambda book: book.create(name="王", day="2025-01-01", time="19:00", people=4),
    "ahead": lambda book: book.create(name="王", day="2027-01-05", time="19:00", people=4),
    "full": lambda book: [book.create(name="李", day="Friday", time="19:00", people=12) for _ in range(2)],
    "unknown": lambda book: book.find("王"),
    "several": lambda book: [book.create(name="王", day="Friday", time="12:00", people=2), book.find("王")],
    "small": lambda book: book.charge_deposit("047"),
    "paid": lambda book: [book.change("047", people=8), *(book.charge_deposit("047") for _ in range(2))],
    "menu": lambda _: allergens_of("鱼香肉丝"),
}


@pytest.mark.parametrize("excuse", EXCUSES)
def test_a_chinese_caller_is_told_in_chinese_why_not(excuse):
    """Whatever the restaurant may say: the model knows its words."""
    with closing(Book(now=lambda: datetime(2025, 12, 2, 12))) as book:
        if excuse != "unknown":
            book.create(name="王", day="Friday", time="12:00", people=2)
        with pytest.raises((BookError, OpeningError, MenuError)) as why:
            EXCUSES[excuse](book)
    failed = ("create_reservation", {"name": "王", **FOUR}, f"!{why.value}")
    told = decide(context(caller("你好"), failed)).text
    assert told.startswith("抱歉，没有办成：")
    assert not re.search("[a-z]", told)
