"""G10: every decision is an event on the session, one log line and one count, and tells no secrets."""

import logging
from collections import Counter

import pytest
from livekit.agents import ToolError, function_tool
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from safe_session import (
    CallKept,
    CallReplayed,
    CallShown,
    HandoffApplied,
    HandoffNotApplied,
    SafeEvent,
    SafeOptions,
    ToolPolicy,
)
from safe_session.testing import Answer, Call, ScriptedModel

from ._scenes import Host, diligent, either_path

pytestmark = either_path

SECRETS = ("Liechtenstein", "swordfish", "Six!")
SECRET_CALL = Call("book", {"people": 6, "name": "Liechtenstein"})
TRANSFER = Call("transfer", {})


class Discreet(Host):
    """Whose results are secret too."""

    def __init__(self, **kwargs):
        super().__init__(then={"book": lambda: "the password is swordfish"}, **kwargs)

    @function_tool
    async def transfer(self):
        """Transfer the caller."""
        return Host(id="manager"), "the password is swordfish"


@pytest.fixture(scope="module")
def meter():
    reader = InMemoryMetricReader()
    metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))
    return reader


@pytest.fixture
def counted(meter):
    """What has been counted since: decisions by name and tool."""
    before = counts(meter)
    return lambda: counts(meter) - before


def counts(reader):
    data = reader.get_metrics_data()
    points = [
        point
        for resource in (data.resource_metrics if data else ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == "safe_session.decisions"
        for point in metric.data.data_points
    ]
    return Counter({(p.attributes["decision"], p.attributes["tool"]): p.value for p in points})


def listen(session):
    """All that the session decides, from now on."""
    heard = []
    for kind in SafeEvent.__subclasses__():
        session.on(kind.model_fields["type"].default, heard.append)
    return heard


async def interrupted(stage):
    """The tool ends 0.15 seconds after the interruption, in which the next inference begins."""
    async with stage(diligent(SECRET_CALL), Discreet(id="host")) as call:
        heard = listen(call.session)
        await call.says("Six!")
        await call.at(0.35)
        await call.says("Six!")
        await call.at(30)
    return heard


async def queued(stage):
    model = ScriptedModel([Answer("", [SECRET_CALL]), Answer("", [SECRET_CALL]), *[Answer("Done.")] * 3])
    async with stage(model, Discreet(id="host")) as call:
        heard = listen(call.session)
        call.session.generate_reply(user_input="Six!")
        call.session.generate_reply(user_input="Six!")
        await call.at(30)
    return heard


async def repeated(stage):
    once = SafeOptions(policies={"book": ToolPolicy(repeat="once")})
    model = ScriptedModel([Answer("", [SECRET_CALL]), Answer("", [SECRET_CALL]), Answer("Done.")])
    async with stage(model, Discreet(id="host"), safe=once) as call:
        heard = listen(call.session)
        await call.says("Six!")
        await call.at(30)
    return heard


async def transferring(stage, what="cancel"):
    safe = SafeOptions(interrupted_handoff=what)
    async with stage(diligent(TRANSFER), Discreet(id="host"), safe=safe, forgets=True) as call:
        heard = listen(call.session)
        await call.says("Six!")
        await call.at(0.5)
        call.session.interrupt()
        await call.at(5)
    return heard


async def applied(stage):
    return await transferring(stage, "apply")


async def test_kept(safe_stage):
    (event,) = [event for event in await interrupted(safe_stage) if isinstance(event, CallKept)]
    assert (event.tool, event.agent_id, event.state) == ("book", "host", "done")


@pytest.mark.pipeline_only("a server knows the calls that its model has made")
async def test_shown(safe_stage):
    heard = await interrupted(safe_stage)
    (event,) = [event for event in heard if isinstance(event, CallShown)]
    assert (event.tool, event.agent_id, event.shown_to, event.as_running) == ("book", "host", "host", True)
    assert [event.call_id] == [other.call_id for other in heard if isinstance(other, CallKept)]


async def test_kept_says_that_the_call_failed(safe_stage):
    def fail():
        raise ToolError("We are full.")

    host = Host(then={"book": fail})
    async with safe_stage(diligent(SECRET_CALL), host) as call:
        heard = listen(call.session)
        await call.says("Six!")
        await call.at(0.35)
        await call.says("Six!")
        await call.at(30)
    assert [event.state for event in heard if isinstance(event, CallKept)] == ["failed"]


@pytest.mark.parametrize(("scene", "reason"), [(queued, "unseen"), (repeated, "once")])
async def test_replayed(safe_stage, scene, reason):
    (event,) = [event for event in await scene(safe_stage) if isinstance(event, CallReplayed)]
    assert (event.tool, event.agent_id, event.reason) == ("book", "host", reason)
    assert event.twin_id != event.call_id


async def test_handoff_not_applied(safe_stage):
    (event,) = [event for event in await transferring(safe_stage) if isinstance(event, HandoffNotApplied)]
    assert (event.tool, event.to_agent_id, event.reason) == ("transfer", "manager", "interrupted")


async def test_handoff_applied(safe_stage):
    (event,) = [event for event in await applied(safe_stage) if isinstance(event, HandoffApplied)]
    assert (event.tool, event.to_agent_id) == ("transfer", "manager")


scenes = pytest.mark.parametrize("scene", [interrupted, queued, repeated, transferring, applied])


@scenes
async def test_one_log_line_for_each_event(safe_stage, scene, caplog):
    caplog.set_level(logging.INFO, "safe_session")
    heard = await scene(safe_stage)
    lines = [record for record in caplog.records if record.name == "safe_session"]
    assert heard
    assert [line.getMessage() for line in lines] == [event.type for event in heard]
    for line, event in zip(lines, heard, strict=True):
        fields = event.model_dump(exclude={"type", "created_at"})
        assert {name: getattr(line, name) for name in fields} == fields


@scenes
async def test_what_was_said_and_returned_stays_under_pii_keys(safe_stage, scene, caplog):
    caplog.set_level(logging.DEBUG, "safe_session")
    heard = await scene(safe_stage)
    told = [event.model_dump_json() for event in heard]
    for line in [record for record in caplog.records if record.name == "safe_session"]:
        told += [repr(value) for key, value in vars(line).items() if not key.startswith("lk.pii.")]
    assert told
    assert not [text for text in told for secret in SECRETS if secret in text]


@scenes
async def test_one_count_for_each_event(safe_stage, scene, counted):
    heard = await scene(safe_stage)
    assert counted() == Counter((event.type, event.tool) for event in heard)


async def test_nothing_is_decided_in_a_call_that_goes_well(safe_stage):
    async with safe_stage(diligent(SECRET_CALL), Discreet()) as call:
        heard = listen(call.session)
        await call.says("Six!")
        await call.at(30)
    assert heard == []
