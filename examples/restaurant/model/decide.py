"""Decides what to say and what to call, from the context alone."""

from __future__ import annotations

from livekit.agents import ChatContext

from safe_session.testing import Answer, Call

from .context import Conversation, read
from .ears import hear
from .voice import VOICES, Voice
from .wishes import Wishes, wishes

THINKING = 0.2  # seconds before the first word
ABOUT_THE_BOOK = {"create_reservation", "change_reservation", "cancel_reservation"}


def decide(shown: ChatContext) -> Answer:
    """Call what the caller asked for and no shown call has done; else tell what came of it."""
    conversation = read(shown)
    voice = VOICES[conversation.language]
    wanted = wishes(conversation)
    todo = [wish for wish in wanted.all if conversation.find(*wish) is None]
    if todo and not _is_manager(conversation):  # who has none of these tools
        return Answer(
            voice.announce(todo), calls=[Call(tool, arguments) for tool, arguments in todo], delay=THINKING
        )
    said = [_greeting(conversation, voice), *_results(conversation, voice)]
    if conversation.open and not any(said):
        said += _reply(conversation, wanted, voice)
    return Answer("".join(dict.fromkeys(said)), delay=THINKING)


def _results(conversation: Conversation, voice: Voice) -> list[str]:
    """What ended since the assistant last spoke."""
    return [voice.tell(made) for made in conversation.made if made.fresh and made.state != "running"]


def _reply(conversation: Conversation, wanted: Wishes, voice: Voice) -> list[str]:
    """An answer to what the caller said last, where no call is to be made for it."""
    heard = hear(conversation.turns[-1].text)
    booked = [wish for wish in wanted.all if wish[0] in ABOUT_THE_BOOK]
    about = booked[-1:] if heard.checks else wanted.latest
    if said := [voice.tell(made) for wish in about if (made := conversation.find(*wish))]:
        return said
    if heard.thanks:
        return [voice.goodbye]
    if wanted.details.missing():
        return [voice.ask(wanted.details.missing())]
    return [voice.ask_name if wanted.details.name is None else voice.anything_else]


def _greeting(conversation: Conversation, voice: Voice) -> str:
    """What an agent begins with."""
    if not _is_manager(conversation):
        return "" if conversation.answers or conversation.turns else voice.greeting
    greeted = any(voice.manager_greeting[:8] in answer for answer in conversation.answers)
    return "" if greeted else voice.manager_greeting


def _is_manager(conversation: Conversation) -> bool:
    return "You are the manager" in conversation.instructions
