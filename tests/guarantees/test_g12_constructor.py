"""G12: what `AgentSession` of the installed release takes, a `SafeAgentSession` takes, and passes it on."""

import inspect

import pytest
from livekit.agents import AgentSession

from safe_session import SafeAgentSession, SafeOptions

PARAMETERS = {
    name: parameter
    for name, parameter in inspect.signature(AgentSession.__init__).parameters.items()
    if name != "self"
}


def test_livekit_takes_keywords_only():
    assert {parameter.kind for parameter in PARAMETERS.values()} == {inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize("name", PARAMETERS)
def test_every_keyword_reaches_livekit(monkeypatch, name):
    reached = {}

    class ReachedError(Exception):
        pass

    def record(_, **kwargs):
        reached.update(kwargs)
        raise ReachedError

    monkeypatch.setattr(AgentSession, "__init__", record)
    value = object()
    with pytest.raises(ReachedError):
        SafeAgentSession(safe=SafeOptions(), **{name: value})
    assert reached == {name: value}


@pytest.mark.parametrize("of", [SafeAgentSession, SafeAgentSession.__init__], ids=["class", "constructor"])
def test_its_signature_is_livekits_and_safe(of):
    taken = dict(inspect.signature(of).parameters)
    taken.pop("self", None)
    assert taken.pop("safe").default is None
    assert taken == PARAMETERS


def test_a_subclass_has_a_signature_of_its_own():
    class HouseSession(SafeAgentSession):
        def __init__(self, *, table: int) -> None:
            super().__init__(userdata=table)

    assert list(inspect.signature(HouseSession).parameters) == ["table"]


@pytest.mark.parametrize("method", ["start", "generate_reply", "say", "update_agent", "run", "emit"])
def test_its_methods_take_what_livekits_take(method):
    """Called as livekit's own signature says: positional where it is, and each keyword."""
    livekits = inspect.signature(getattr(AgentSession, method))
    ours = inspect.signature(getattr(SafeAgentSession, method))
    parameters = livekits.parameters.values()
    given = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    named = {p.name: p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    ours.bind(*given, **named)


def test_an_unknown_keyword_is_refused():
    with pytest.raises(TypeError, match="max_tool_stepz"):
        SafeAgentSession(max_tool_stepz=3)


def test_a_positional_argument_is_refused_on_both(session_class):
    with pytest.raises(TypeError, match="positional argument"):
        session_class("an stt")


def test_options_of_another_kind_are_refused():
    with pytest.raises(TypeError, match="safe is 'once'; it must be a SafeOptions"):
        SafeAgentSession(safe="once")


async def test_options_are_those_of_a_plain_session_on_both():
    given = {"max_tool_steps": 2, "turn_handling": {"turn_detection": "stt"}}
    plain, safe = AgentSession(**given), SafeAgentSession(**given)
    assert vars(safe.options) == vars(plain.options)


async def test_a_deprecated_keyword_is_warned_of_once_on_both(session_class, caplog):
    session_class(min_endpointing_delay=0.7)
    warnings = [text for text in caplog.messages if "min_endpointing_delay is deprecated" in text]
    assert len(warnings) == 1
