"""What the offline model understands of a caller's words."""

import pytest

from examples.restaurant.model.ears import hear


@pytest.mark.parametrize(
    ("words", "heard"),
    [
        ("六位", {"people": 6}),
        ("我们六个人", {"people": 6}),
        ("12位", {"people": 12}),
        ("十二个人", {"people": 12}),
        ("两位", {"people": 2}),
        ("six people", {"people": 6}),
        ("a party of six", {"people": 6}),
        ("there are 6 of us", {"people": 6}),
        ("make it six", {"people": 6}),
        ("make it seven pm", {"people": None, "time": "19:00"}),
        ("晚上七点半", {"time": "19:30"}),
        ("上午十一点", {"time": "11:00"}),
        ("at half past seven", {"time": "19:30"}),
        ("at 7:45", {"time": "19:45"}),
        ("19:30", {"time": "19:30"}),
        ("8 pm", {"time": "20:00"}),
        ("twelve o'clock", {"time": "12:00"}),
        ("星期天", {"day": "Sunday"}),
        ("on friday", {"day": "Friday"}),
        ("tonight at eight", {"day": "today", "time": "20:00"}),
        ("明天晚上七点", {"day": "tomorrow", "time": "19:00"}),
        ("on December 24th at 7 pm, for two people", {"day": "12-24", "time": "19:00", "people": 2}),
        ("the 1st of January", {"day": "01-01"}),
        ("12月24号晚上六点，四位", {"day": "12-24", "time": "18:00", "people": 4}),
        ("on 2025-12-24, my number is 555 0142", {"day": "2025-12-24", "phone": "5550142"}),
        ("我叫李小龙", {"name": "李小龙"}),
        ("under Miller", {"name": "Miller"}),
        ("订单47", {"order": "047"}),
        ("my number is 555 0142", {"phone": "5550142", "order": None, "time": None}),
        ("我的电话是13800138000", {"phone": "13800138000", "order": None}),
        ("two kung pao chicken", {"dish": "kung pao chicken", "portions": 2, "people": None}),
        ("一份春卷", {"dish": "春卷", "portions": 1, "people": None}),
        ("the confirmation number", {"asks_number": True, "wants_text": False}),
        ("text me the menu", {"about": "menu", "wants_text": False}),
        ("text me a confirmation", {"about": None, "wants_text": True}),
        ("can the manager call me back", {"wants_callback": True, "wants_manager": False}),
        ("好的，订吧", {"agrees": True}),
        ("Have I got a reservation?", {"looks_up": True, "changes": False}),
        ("我有没有预订？", {"looks_up": True}),
        ("Have you got a table for four?", {"looks_up": False}),
        ("please cancel my reservation", {"looks_up": False, "cancels": True}),
        ("请取消", {"cancels": True, "checks": False}),
        ("取消了吗？", {"cancels": False, "checks": True}),
        ("Is it cancelled?", {"cancels": False, "checks": True}),
        ("pay the deposit", {"pays_deposit": True}),
        ("扣一下定金", {"pays_deposit": True}),
        ("是六位，对吧？", {"agrees": False, "checks": True}),
    ],
)
def test_words_are_understood(words, heard):
    assert {name: getattr(hear(words), name) for name in heard} == heard
