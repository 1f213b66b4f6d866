"""How the model words its answers in Chinese."""

from __future__ import annotations

import re
from typing import Any

from ..opening import WEEKDAYS
from .voice import Voice

_NUMBERS = ("零", "一", "两", "三", "四", "五", "六", "七", "八", "九", "十", "十一", "十二")
_WORDS = {
    "peanuts": "花生",
    "soy": "大豆",
    "gluten": "麸质",
    "sesame": "芝麻",
    "fish": "鱼",
    "menu": "菜单",
    "directions": "路线",
}
_EXCUSES = (  # what the restaurant's tools say if they can't do what they are asked to
    (r"tables for parties of 1 to (\d+)", r"我们最多坐\1位"),
    (r"there is no table", "那个时间没有桌子了"),
    (r"is over$", "那个时间已经过了"),
    (r"for the next (\d+) days", r"现在只能订\1天以内的桌子"),
    (r"closed on Mondays", "我们周一休息"),
    (r"from (\S+) to (\S+) and from (\S+) to (\S+),", r"我们的入座时间是\1到\2、\3到\4"),
    (r"no reservation '(.+)'", r"没有找到\1的预订"),
    (r"several reservations '(.+)': (.+);", r"\1有好几个预订：\2，请告诉我订单号"),
    (r"parties of (\d+) or more pay", r"\1位以上才收定金"),
    (r"has been paid", "定金已经付过了"),
    (r"'(.+)' is not on the menu", r"菜单上没有\1"),
)


def _in_chinese(name: str, value: Any) -> str:
    if name in _IN_CHINESE:
        return _IN_CHINESE[name](value)
    if name in {"people", "portions"} and int(value) < len(_NUMBERS):
        return _NUMBERS[int(value)]
    if name == "name" and len(value) == 1:
        return "姓" + value
    if name in {"allergens", "about"}:
        return "和".join(_WORDS.get(word, word) for word in str(value).split(", "))
    return str(value)


def _day_in_chinese(day: str) -> str:
    if day in {"today", "tomorrow"}:
        return {"today": "今天", "tomorrow": "明天"}[day]
    if day in WEEKDAYS:
        return "周" + "一二三四五六日"[WEEKDAYS.index(day)]
    month, of_month = map(int, day.split("-")[-2:])
    return f"{month}月{of_month}日"


def _time_in_chinese(time: str) -> str:
    hour, minute = int(time[:2]), time[3:]
    part = "晚上" if hour >= 18 else "下午" if hour > 12 else "中午" if hour == 12 else "上午"
    past = {"00": "点", "30": "点半"}.get(minute, f"点{minute}分")
    return part + _NUMBERS[(hour - 1) % 12 + 1] + past


def _excuse(output: str) -> str:
    for pattern, words in _EXCUSES:
        if found := re.search(pattern, output):
            return found.expand(words)
    return output


_IN_CHINESE = {"day": _day_in_chinese, "time": _time_in_chinese, "output": _excuse}

CHINESE = Voice(
    greeting="竹园餐厅，您好。Bamboo House, good evening.",
    greetings={
        "manager": "您好，我是经理，请问有什么可以帮您？",
        "takeaway": "您好，这里是外卖部，请问要点什么？",
    },
    goodbye="谢谢您的来电，再见。",
    anything_else="请问还有什么可以帮您？",
    ask_name="请问您贵姓？",
    ask_phone="请问您的电话号码？",
    asks={"day": "请问是哪一天？", "time": "请问几点？", "people": "请问几位？"},
    announces={
        "find_table": "请稍等，我查一下{day}{time}{people}位的桌子。",
        "find_reservation": "我查一下您的预订。",
        "create_reservation": "好的，{day}{time}，{people}位，{name}。我这就把您的预订记下来，",
        "send_confirmation": "再给您发一条确认短信。",
        "change_reservation": "好的，我来为您改。",
        "cancel_reservation": "好的，我来为您取消。",
        "charge_deposit": "我从您的卡上扣定金。",
        "check_allergens": "我问一下厨房{dish}的配料。",
        "send_text": "我把{about}用短信发给您。",
        "order_meal": "{portions}份{dish}，我这就下单。",
        "request_callback": "经理会给您回电话，我记一下怎么联系您。",
        "note_contact": "好的，谢谢。",
        "transfer_to_manager": "我为您转接经理。",
        "transfer_to_takeaway": "我为您转接外卖部。",
    },
    running={
        "find_table": "我还在查桌子。",
        "find_reservation": "我还在查您的预订。",
        "create_reservation": "您的预订正在登记。",
        "send_confirmation": "确认短信正在发送。",
        "change_reservation": "您的预订正在修改。",
        "cancel_reservation": "您的预订正在取消。",
        "charge_deposit": "定金正在扣。",
        "check_allergens": "厨房正在查{dish}的配料，一会儿告诉您。",
        "send_text": "{about}的短信还在发送。",
        "order_meal": "您点的菜正在下单。",
        "request_callback": "我正在记您的联系方式。",
        "note_contact": "我正在记。",
        "transfer_to_manager": "我为您转接经理。",
        "transfer_to_takeaway": "我为您转接外卖部。",
    },
    done={
        "find_table": "{day}{time}有{people}位的桌子，要为您订下吗？",
        "find_reservation": "查到了：订单{order}，{day}{time}，{people}位，{name}。",
        "create_reservation": "已经为您订好了：订单{order}，{day}{time}，{people}位。",
        "send_confirmation": "确认短信已经发出。",
        "change_reservation": "改好了：订单{order}，{day}{time}，{people}位。",
        "cancel_reservation": "订单{order}已经取消。",
        "charge_deposit": "{euros}欧元的定金已经扣了。",
        "check_allergens": "厨房说，{dish}含有{allergens}。",
        "send_text": "{about}的短信已经发出，确认号{number}。",
        "order_meal": "{portions}份{dish}下好单了，{minutes}分钟后可以取。",
        "request_callback": "经理会打{number}给您回电话。",
        "note_contact": "",
        "transfer_to_manager": "",
        "transfer_to_takeaway": "",
    },
    no_table="抱歉，{day}{time}没有{people}位的桌子了，换个时间可以吗？",
    text_number="短信的确认号是{number}。",
    failed="抱歉，没有办成：{output}。",
    in_words=_in_chinese,
)
