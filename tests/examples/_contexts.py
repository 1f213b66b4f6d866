"""Contexts as the model is shown them, in short."""

import json

from livekit.agents import ChatContext
from livekit.agents.llm import FunctionCall, FunctionCallOutput

from examples.restaurant.model import decide

RUNNING = "The tool call is still in progress."


def caller(text):
    return ("user", text)


def agent(text):
    return ("assistant", text)


def context(*items) -> ChatContext:
    """Messages are (role, text); calls are (tool, arguments), or (tool, arguments, output)."""
    shown = ChatContext.empty()
    for number, item in enumerate(items):
        if item[0] in {"user", "assistant", "system"}:
            shown.add_message(role=item[0], content=item[1])
            continue
        tool, arguments, *output = item
        shown.items.append(FunctionCall(call_id=f"c{number}", name=tool, arguments=json.dumps(arguments)))
        for text in output:
            failed = text.startswith("!")
            shown.items.append(
                FunctionCallOutput(call_id=f"c{number}", name=tool, output=text.strip("!"), is_error=failed)
            )
    return shown


def calls(*items):
    return [(call.name, call.arguments) for call in decide(context(*items)).calls]
