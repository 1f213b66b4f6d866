"""What may be configured: every bad value is one clear error when it is given."""

import math
from dataclasses import FrozenInstanceError

import pytest
from livekit.agents import function_tool

from safe_session import SafeOptions, ToolPolicy, tool_policy


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("interruption_grace", -1, "SafeOptions.interruption_grace is -1; it must be 0 or more seconds"),
        ("interruption_grace", math.nan, "SafeOptions.interruption_grace is nan; it must be 0 or more"),
        ("interruption_grace", "soon", "SafeOptions.interruption_grace is 'soon'; it must be a number"),
        ("interruption_grace", True, "SafeOptions.interruption_grace is True; it must be a number"),
        ("close_timeout", -0.1, "SafeOptions.close_timeout is -0.1; it must be 0 or more seconds"),
        ("close_timeout", math.inf, "SafeOptions.close_timeout is inf; .* or None for no limit"),
        ("redeliver", -1, "SafeOptions.redeliver is -1; it must be 0 or more"),
        ("redeliver", 1.5, "SafeOptions.redeliver is 1.5; it must be a whole number"),
        ("redeliver", None, "SafeOptions.redeliver is None; it must be a whole number"),
        ("interrupted_handoff", "maybe", "SafeOptions.interrupted_handoff is 'maybe'; .* 'cancel', 'apply'"),
        ("policies", {"pay": "once"}, r"SafeOptions.policies\['pay'\] is 'once'; it must be a ToolPolicy"),
    ],
)
def test_a_bad_option(setting, value, message):
    with pytest.raises((TypeError, ValueError), match=message):
        SafeOptions(**{setting: value})


@pytest.mark.parametrize("build", [ToolPolicy, tool_policy])
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"repeat": "twice"}, "ToolPolicy.repeat is 'twice'; .* 'knowingly', 'once', 'freely'"),
        ({"repeat": None}, "ToolPolicy.repeat is None; it must be one of"),
        ({"on_handoff": "keep"}, "ToolPolicy.on_handoff is 'keep'; .* 'drop', 'retarget'"),
    ],
)
def test_a_bad_policy(build, setting, message):
    with pytest.raises(ValueError, match=message):
        build(**setting)


@pytest.mark.parametrize("build", [ToolPolicy, SafeOptions, tool_policy])
def test_an_unknown_setting(build):
    with pytest.raises(TypeError, match="retries"):
        build(retries=3)


def test_the_defaults():
    assert SafeOptions(interruption_grace=None, close_timeout=None, redeliver=0)
    assert ToolPolicy() == ToolPolicy(repeat="knowingly", on_handoff="drop")
    options = SafeOptions()
    assert (options.interruption_grace, options.close_timeout, options.redeliver) == (0.25, 10, 1)
    assert (options.interrupted_handoff, options.policies) == ("cancel", {})


@pytest.mark.parametrize("value", [ToolPolicy(), SafeOptions()])
def test_they_are_frozen(value):
    with pytest.raises(FrozenInstanceError):
        value.repeat = "once"


def test_the_options_win_over_the_decorator_and_it_over_the_default():
    @tool_policy(repeat="once")
    @function_tool
    async def pay():
        """Pay."""

    @function_tool
    @tool_policy(on_handoff="retarget")
    async def look():
        """Look."""

    options = SafeOptions(policies={"pay": ToolPolicy(repeat="freely")})
    assert options.policy_of(pay, "pay").repeat == "freely"
    assert SafeOptions().policy_of(pay, "pay").repeat == "once"
    assert SafeOptions().policy_of(look, "look") == ToolPolicy(on_handoff="retarget")
    assert SafeOptions().policy_of(object(), "other") == ToolPolicy()
