"""Decides what to say and what to call, from the context alone."""

from __future__ import annotations

from collections.abc import Container, Iterable

from livekit.agents import ChatContext

from safe_session.testing import Answer, Call

from .chinese import CHINESE
from .context import Conversation, Made, read
from .ears import Heard, hear
from .english import ENGLISH
from .voice import Voice
from .wishes import Details, Wish, Wishes, wishes

THINKING = 0.2  # seconds before the first word
VOICES = {"en": ENGLISH, "zh": CHINESE}
ABOUT_THE_BOOK = {"create_reservation", "change_reservation", "cancel_reservation", "charge_deposit"}
OF_THE_SESSION = {"send_text"}
TOOLS = {
    "host": {
        *ABOUT_THE_BOOK,
        *OF_THE_SESSION,
        "find_table",
        "find_reservation",
        "send_confirmation",
        "check_allergens",
        "request_callback",
        "transfer_to_manager",
        "transfer_to_takeaway",
    },
    "manager": OF_THE_SESSION,
    "takeaway": {"order_meal", *OF_THE_SESSION},
    "clerk": {"note_contact"},  # who is to do nothing else
}


def decide(shown: ChatContext) -> Answer:
    """Call what the caller asked for and no shown call has done; else tell what came of it."""
    conversation = read(shown)
    voice = VOICES[conversation.language]
    wanted = wishes(conversation)
    tools = TOOLS[conversation.role]
    todo = [wish for wish in wanted.all if wish[0] in tools and conversation.find(*wish) is None]
    if todo:
        return Answer(
            voice.announce(todo), calls=[Call(tool, arguments) for tool, arguments in todo], delay=THINKING
        )
    said = [_greeting(conversation, voice), *_results(conversation, voice)]
    if conversation.role == "clerk":
        said.append(_question(conversation, wanted.details, voice))
    elif conversation.open and not any(said):
        said += _reply(conversation, wanted, voice)
    return Answer("".join(dict.fromkeys(said)), delay=THINKING)


def _results(conversation: Conversation, voice: Voice) -> list[str]:
    """What ended since the assistant last spoke, and what it is asked to tell and has not told yet."""
    ended = [made for made in conversation.made if made.state != "running"]
    told = [(made, voice.tell(made)) for made in ended if made.fresh or made.to_tell]
    return [sentence for made, sentence in told if made.fresh or not conversation.was_said(sentence)]


def _reply(conversation: Conversation, wanted: Wishes, voice: Voice) -> list[str]:
    """An answer to what the caller said last, where no call is to be made for it."""
    heard = hear(conversation.turns[-1].text)
    asked_about = _asked_about(heard, conversation, wanted)
    if said := [sentence for made in asked_about if (sentence := voice.tell(made))]:
        return said
    if heard.asks_number and (text := _newest(OF_THE_SESSION, conversation, wanted)):
        return [voice.recall(text[0])]
    if heard.thanks:
        return [voice.goodbye]
    if conversation.role != "host":
        return [voice.anything_else]
    return [_next_question(heard, wanted.details, voice)]


def _next_question(heard: Heard, details: Details, voice: Voice) -> str:
    """What the host needs to know for what the caller wants."""
    if not heard.looks_up and details.missing():
        return voice.ask(details.missing())
    return voice.ask_name if details.name is None else voice.anything_else


def _asked_about(heard: Heard, conversation: Conversation, wanted: Wishes) -> list[Made]:
    """The calls that the caller asks about, as far as they are shown."""
    if heard.waits:
        return conversation.running
    if heard.checks:
        return _newest(ABOUT_THE_BOOK, conversation, wanted)
    return _shown(wanted.latest, conversation)


def _newest(tools: Container[str], conversation: Conversation, wanted: Wishes) -> list[Made]:
    """The call that was asked for last, of those tools."""
    return _shown([wish for wish in wanted.all if wish[0] in tools][-1:], conversation)


def _shown(asked_for: Iterable[Wish], conversation: Conversation) -> list[Made]:
    return [made for wish in asked_for if (made := conversation.find(*wish))]


def _greeting(conversation: Conversation, voice: Voice) -> str:
    """What an agent begins with."""
    if conversation.role == "host":
        return "" if conversation.answers or conversation.turns else voice.greeting
    greeting = voice.greetings.get(conversation.role, "")
    return "" if conversation.was_said(greeting[:8]) else greeting


def _question(conversation: Conversation, details: Details, voice: Voice) -> str:
    """What the clerk still needs to know; asked again only once the caller has spoken."""
    question = voice.ask_name if details.name is None else voice.ask_phone
    return question if conversation.open or not conversation.was_said(question) else ""
