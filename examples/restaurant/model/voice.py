"""How the model words its answers, in each language."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .context import Made
from .wishes import Wish
from .words import DAYS, NUMBERS

_FACTS = (
    re.compile(
        r"order (?P<order>\d+), (?P<name>.+), (?P<day>\w+) (?P<time>\d\d:\d\d), (?P<people>\d+) people"
    ),
    re.compile(r"contains (?P<allergens>[\w, ]+)"),
    re.compile(r"confirmation number (?P<number>\d+)"),
    re.compile(r"ready in (?P<minutes>\d+) minutes"),
    re.compile(r"call (?P<name>.+) back on (?P<number>\d+)"),
)


@dataclass(frozen=True)
class Voice:
    """The sentences of one language. Those about a call are filled in from its arguments and its output."""

    greeting: str
    greetings: Mapping[str, str]
    goodbye: str
    anything_else: str
    ask_name: str
    ask_phone: str
    asks: Mapping[str, str]
    announces: Mapping[str, str]
    running: Mapping[str, str]
    done: Mapping[str, str]
    no_table: str
    text_number: str
    failed: str
    in_words: Callable[[str, Any], str]

    def ask(self, missing: Sequence[str]) -> str:
        return self.asks[missing[0]]

    def announce(self, wishes: Iterable[Wish]) -> str:
        return "".join(self._fill(self.announces[tool], arguments) for tool, arguments in wishes)

    def tell(self, made: Made) -> str:
        """How a call stands."""
        return self._fill(self._sentence(made), self._facts(made))

    def recall(self, text: Made) -> str:
        """The confirmation number of a text message."""
        return self._fill(self.text_number, self._facts(text)) if text.state == "done" else self.tell(text)

    def _facts(self, made: Made) -> dict[str, Any]:
        facts = {**made.arguments, "output": made.output}
        for pattern in _FACTS:
            facts.update(found.groupdict() if (found := pattern.search(made.output)) else {})
        return facts

    def _sentence(self, made: Made) -> str:
        if made.state == "failed":
            return self.failed
        if made.state == "running":
            return self.running[made.tool]
        if made.tool == "find_table" and "no free table" in made.output:
            return self.no_table
        return self.done[made.tool]

    def _fill(self, sentence: str, facts: Mapping[str, Any]) -> str:
        words = {name: self.in_words(name, value) for name, value in facts.items()}
        return sentence.format_map(defaultdict(lambda: "…", words))


def _in_english(name: str, value: Any) -> str:
    if name == "time":
        hour, minute = int(value[:2]), value[3:]
        return f"{(hour - 1) % 12 + 1}{'' if minute == '00' else ':' + minute} {'pm' if hour >= 12 else 'am'}"
    if name in {"people", "portions"} and 1 <= int(value) <= len(NUMBERS):
        return NUMBERS[int(value) - 1]
    return str(value)


_ZH_NUMBERS = ("零", "一", "两", "三", "四", "五", "六", "七", "八", "九", "十", "十一", "十二")
_ZH_WORDS = {
    "peanuts": "花生",
    "soy": "大豆",
    "gluten": "麸质",
    "sesame": "芝麻",
    "fish": "鱼",
    "menu": "菜单",
    "directions": "路线",
}


def _in_chinese(name: str, value: Any) -> str:
    if name == "day":
        return "周" + "一二三四五六日"[DAYS.index(value)]
    if name == "time":
        hour, minute = int(value[:2]), value[3:]
        part = "晚上" if hour >= 18 else "下午" if hour > 12 else "中午" if hour == 12 else "上午"
        past = {"00": "点", "30": "点半"}.get(minute, f"点{minute}分")
        return part + _ZH_NUMBERS[(hour - 1) % 12 + 1] + past
    if name in {"people", "portions"} and int(value) < len(_ZH_NUMBERS):
        return _ZH_NUMBERS[int(value)]
    if name == "name" and len(value) == 1:
        return "姓" + value
    if name in {"allergens", "about"}:
        return "和".join(_ZH_WORDS.get(word, word) for word in str(value).split(", "))
    return str(value)


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
        "find_table": "One moment, I am looking for a table for {people} on {day} at {time}. ",
        "create_reservation": "Certainly: {people} people on {day} at {time}, under {name}. "
        "I am writing it into the book for you right now, ",
        "send_confirmation": "and I am sending you a text message to confirm it. ",
        "change_reservation": "Of course, I am changing that for you. ",
        "cancel_reservation": "I am cancelling that for you. ",
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
        "create_reservation": "I am writing your reservation down right now. ",
        "send_confirmation": "The text message to confirm it is on its way. ",
        "change_reservation": "I am changing your reservation right now. ",
        "cancel_reservation": "I am cancelling it right now. ",
        "check_allergens": "The kitchen is looking into the {dish}, I will tell you. ",
        "send_text": "The text message with the {about} is still on its way. ",
        "order_meal": "I am passing your order on right now. ",
        "request_callback": "I am taking down where to call you back. ",
        "note_contact": "I am taking that down. ",
        "transfer_to_manager": "I am putting you through. ",
        "transfer_to_takeaway": "I am putting you through. ",
    },
    done={
        "find_table": "There is a table for {people} on {day} at {time}. Shall I book it? ",
        "create_reservation": "It is booked: order {order}, {people} people on {day} at {time}. ",
        "send_confirmation": "The text message has been sent. ",
        "change_reservation": "Done: order {order} is now for {people} people on {day} at {time}. ",
        "cancel_reservation": "Order {order} is cancelled. ",
        "check_allergens": "The kitchen says that the {dish} contains {allergens}. ",
        "send_text": "The text message with the {about} has been sent, confirmation number {number}. ",
        "order_meal": "Your {portions} {dish} will be ready in {minutes} minutes. ",
        "request_callback": "The manager will call you back on {number}. ",
        "note_contact": "",
        "transfer_to_manager": "",
        "transfer_to_takeaway": "",
    },
    no_table="I am sorry, there is no table for {people} on {day} at {time}. Would another time do? ",
    text_number="The confirmation number of your text message was {number}. ",
    failed="I am sorry, that did not work: {output}. ",
    in_words=_in_english,
)

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
        "create_reservation": "好的，{day}{time}，{people}位，{name}。我这就把您的预订记下来，",
        "send_confirmation": "再给您发一条确认短信。",
        "change_reservation": "好的，我来为您改。",
        "cancel_reservation": "好的，我来为您取消。",
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
        "create_reservation": "您的预订正在登记。",
        "send_confirmation": "确认短信正在发送。",
        "change_reservation": "您的预订正在修改。",
        "cancel_reservation": "您的预订正在取消。",
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
        "create_reservation": "已经为您订好了：订单{order}，{day}{time}，{people}位。",
        "send_confirmation": "确认短信已经发出。",
        "change_reservation": "改好了：订单{order}，{day}{time}，{people}位。",
        "cancel_reservation": "订单{order}已经取消。",
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

VOICES: Mapping[str, Voice] = {"en": ENGLISH, "zh": CHINESE}
