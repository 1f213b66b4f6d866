"""What is known of every call: plain data, no session and no loop."""

import pytest
from livekit.agents import Agent
from livekit.agents.llm import FunctionCall, FunctionCallOutput

from safe_session import CallLedger
from safe_session.ledger import REMEMBERED_ENDINGS, Body

HOST = Agent(instructions="You are the host.")


class Desk:
    """A ledger, told what happens in few words."""

    def __init__(self):
        self.ledger = CallLedger()
        self.calls = 0

    def infer(self, *shown, speech="s1"):
        inference = self.ledger.begin_inference(HOST, 0.0, shown)
        self.ledger.spoken_in(speech, inference)
        return inference

    def call(self, arguments=6, *, name="book", speech="s1", code=max):
        self.calls += 1
        made = FunctionCall(call_id=f"c{self.calls}", name=name, arguments="{}")
        record = self.ledger.begin(made, HOST, speech)
        record.body = Body(name, code, arguments)
        return record

    def end(self, record, state="done"):
        output = FunctionCallOutput(call_id=record.call_id, name="book", output="047", is_error=False)
        self.ledger.end(record, state, [record.call, output])
        return record


@pytest.fixture
def desk():
    return Desk()


def test_a_call_runs_and_ends(desk):
    desk.infer()
    record = desk.call()
    assert (record.state, record.ended, record.output) == ("running", False, None)
    assert desk.ledger.unsettled() == [record]
    desk.end(record)
    assert (record.state, record.ended, record.output.output) == ("done", True, "047")
    assert list(desk.ledger) == [record]
    assert desk.ledger.get("c1") is record
    assert desk.ledger.get("c2") is None


def test_a_call_is_settled_by_the_first_inference_that_is_shown_its_ending(desk):
    desk.infer()
    record = desk.call()
    desk.infer(record, speech="s2")
    assert record.settled is None
    desk.end(record)
    desk.infer(record, speech="s3")
    assert record.settled is not None
    assert desk.ledger.unsettled() == []
    assert desk.ledger.settled_after(record.output.created_at - 1) == [record]
    assert desk.ledger.settled_after(record.output.created_at + 1) == []


def test_a_twin_is_one_that_the_inference_was_not_shown(desk):
    desk.infer(speech="s1")
    desk.infer(speech="s2")
    first = desk.call(speech="s1")
    assert desk.ledger.unseen_twin(desk.call(speech="s2")) is first


def test_a_twin_that_was_shown_as_running_is_repeated_knowingly(desk):
    desk.infer(speech="s1")
    first = desk.call(speech="s1")
    desk.infer(first, speech="s2")
    assert desk.ledger.unseen_twin(desk.call(speech="s2")) is None


def test_a_twin_that_was_settled_before_is_none(desk):
    desk.infer(speech="s1")
    first = desk.end(desk.call(speech="s1"))
    desk.infer(first, speech="s1")
    desk.infer(speech="s2")
    assert desk.ledger.unseen_twin(desk.call(speech="s2")) is None


def test_a_twin_that_was_settled_after_is_one(desk):
    """Both inferences had begun; another one was shown the ending in between."""
    desk.infer(speech="s1")
    desk.infer(speech="s2")
    first = desk.end(desk.call(speech="s1"))
    desk.infer(first, speech="s1")
    assert desk.ledger.unseen_twin(desk.call(speech="s2")) is first


def test_two_calls_of_one_inference_are_no_twins(desk):
    desk.infer()
    desk.call()
    assert desk.ledger.unseen_twin(desk.call()) is None


@pytest.mark.parametrize(
    "other", [{"arguments": 7}, {"name": "look"}, {"code": min}], ids=["arguments", "name", "tool"]
)
def test_another_call_is_no_twin(desk, other):
    desk.infer(speech="s1")
    desk.infer(speech="s2")
    desk.call(speech="s1")
    assert desk.ledger.unseen_twin(desk.call(speech="s2", **other)) is None


@pytest.mark.parametrize(
    ("state", "counts"), [("done", True), ("cancelled", True), ("unknown", True), ("failed", False)]
)
def test_a_twin_that_failed_does_not_count(desk, state, counts):
    desk.infer(speech="s1")
    desk.infer(speech="s2")
    first = desk.end(desk.call(speech="s1"), state)
    assert desk.ledger.unseen_twin(desk.call(speech="s2")) is (first if counts else None)


def test_a_call_that_was_not_run_is_no_twin_of_another(desk):
    for speech in ("s1", "s2", "s3"):
        desk.infer(speech=speech)
    first, second, third = (desk.call(speech=speech) for speech in ("s1", "s2", "s3"))
    second.twin = first
    assert desk.ledger.unseen_twin(third) is first


def test_a_call_whose_inference_is_not_known_has_no_twin(desk):
    desk.infer(speech="s1")
    desk.call(speech="s1")
    assert desk.ledger.unseen_twin(desk.call(speech="nobody's")) is None


def test_once_counts_even_what_was_shown(desk):
    desk.infer()
    first = desk.end(desk.call())
    desk.ledger.remember_once(first)
    desk.infer(first)
    assert desk.ledger.once_twin(desk.call()) is first
    assert desk.ledger.once_twin(desk.call(7)) is None


def test_who_waits_is_told_of_a_release_or_an_end(desk):
    told = []
    desk.infer()
    released, ended = desk.call(), desk.call(7)
    for record in (released, ended):
        record.waiting.append(lambda record=record: told.append(record.call_id))
    desk.ledger.release(released, [])
    desk.end(ended)
    desk.end(released)
    assert told == ["c1", "c2"]


def test_the_oldest_endings_are_forgotten_and_no_unfinished_call(desk):
    desk.infer()
    running = desk.call(0)
    for number in range(REMEMBERED_ENDINGS + 10):
        desk.end(desk.call(number))
    assert len(list(desk.ledger)) == REMEMBERED_ENDINGS + 1
    assert desk.ledger.get(running.call_id) is running
    assert len(desk.ledger.unsettled()) == REMEMBERED_ENDINGS + 1
