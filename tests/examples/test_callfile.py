"""Calls written down in files, and what is said of a file that is not as it should be."""

from pathlib import Path

import pytest

from examples.restaurant.model.decide import THINKING
from examples.restaurant.replay.callfile import CALLS, Expect, Step, load
from examples.restaurant.replay.nodes import FileError
from examples.restaurant.restaurant import DURATIONS


def load_text(tmp_path: Path, text: str):
    path = tmp_path / "call.yaml"
    path.write_text(text, encoding="utf-8")
    return load(path)


@pytest.mark.parametrize("path", sorted(CALLS.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_recorded_calls_are_as_they_should_be(path):
    call = load(path)
    assert call.timeline
    assert call.report.startswith("https://github.com/livekit/agents/issues/")


def test_everything_a_file_can_say(tmp_path):
    call = load_text(
        tmp_path,
        """
title: A call
report: "#1"
book: [{name: 王, day: Friday, time: 19:00, people: 4}]
durations: {find_table: 2}
thinking: 0.5
timeline:
  - {at: 1.5, says: 六位}
  - {when: create_reservation ends, after: 0.25, types: Hello}
  - {when: all is quiet, hangs up: true}
expect:
  {orders: 1, runs: {send_text: 2}, told: [047], kept: [find_table], known: [send_text], silence: 1,
  errors: 0}
""",
    )
    assert (call.title, call.report) == ("A call", "#1")
    assert call.book == ({"name": "王", "day": "Friday", "time": "19:00", "people": 4},)
    assert call.durations == {**DURATIONS, "find_table": 2.0}
    assert call.thinking == 0.5
    assert call.timeline == (
        Step("says", "六位", at=1.5),
        Step("types", "Hello", moment="create_reservation ends", after=0.25),
        Step("hangs up", moment="all is quiet"),
    )
    assert call.expect == Expect(
        orders=1,
        runs={"send_text": 2},
        told=("047",),
        kept=("find_table",),
        known=("send_text",),
        silence=1.0,
        errors=0,
    )


def test_the_example_of_the_readme(tmp_path):
    readme = (CALLS / "README.md").read_text(encoding="utf-8")
    call = load_text(tmp_path, readme.partition("```yaml\n")[2].partition("```")[0])
    assert all(getattr(call.expect, name) for name in Expect.__dataclass_fields__ if name != "errors")


def test_only_the_timeline_is_needed(tmp_path):
    call = load_text(tmp_path, "timeline: [{at: 0, says: hello}]")
    assert (call.title, call.durations, call.expect) == ("call", dict(DURATIONS), Expect())
    assert call.thinking == THINKING


STEP = "timeline:\n  - at: 1\n    says: hello\n"


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", 1, "the file is empty"),
        ("title: [", 1, "not YAML: "),
        ("title: a\n  b: c", 2, "not YAML: mapping values are not allowed here"),
        ("\x00", 1, "not YAML: "),
        ("just words", 1, "a mapping is expected here"),
        ("title: a call", 1, "a call needs a timeline"),
        (STEP + "expcet: {}", 4, "unknown key 'expcet'; did you mean 'expect'?"),
        (STEP + "title: a\ntitle: b", 5, "key 'title' stands here twice"),
        (STEP + "title: [a]", 4, "a text is expected here"),
        (STEP + "durations:\n  find_tabel: 1", 5, "unknown tool 'find_tabel'; did you mean 'find_table'?"),
        (STEP + "durations:\n  find_table: soon", 5, "a number is expected here, 0 or more"),
        (STEP + "durations:\n  find_table: -1", 5, "a number is expected here, 0 or more"),
        (STEP + "durations:\n  find_table: .inf", 5, "a number is expected here, 0 or more"),
        (STEP + "durations: 3", 4, "a mapping is expected here"),
        (STEP + "book: 3", 4, "a list is expected here"),
        (STEP + "book:\n  - name: Miller\n    day: Friday", 5, "a reservation needs time and people"),
        (
            STEP + "book: [{name: Miller, day: Monday, time: 19:00, people: 4}]",
            4,
            "the restaurant is closed on Mondays",
        ),
        (
            STEP + "book: [{name: Miller, day: Friday, time: 19:00, people: 13}]",
            4,
            "there are tables for parties of 1 to 12, not of 13",
        ),
        (STEP + "thinking: long", 4, "a number is expected here, 0 or more"),
        ("timeline: hello", 1, "a list is expected here"),
        ("timeline: []", 1, "a list is expected here"),
        ("timeline:\n  - hello", 2, "a mapping is expected here"),
        ("timeline:\n  - at: 1", 2, "a step needs one action, of: says, types, hangs up"),
        (STEP + "    types: hello", 2, "a step needs one action"),
        ("timeline:\n  - says: hello", 2, "a step needs either 'at' (seconds) or 'when' (a moment)"),
        (STEP + "    when: agent stops", 2, "a step needs either"),
        (STEP + "    after: 1", 4, "'after' goes with 'when', not with 'at'"),
        (
            "timeline:\n  - when: agent stop\n    says: x",
            2,
            "unknown moment 'agent stop'; did you mean 'agent stops'?",
        ),
        (
            "timeline:\n  - when: lunch\n    says: x",
            2,
            "unknown moment 'lunch'; it can be: agent speaks, agent stops",
        ),
        ("timeline:\n  - at: 1\n    says:", 3, "a text is expected here"),
        ("timeline:\n  - at: 1\n    hangs up: maybe", 3, "only 'true' can stand here"),
        (STEP + "    shouts: hello", 4, "unknown key 'shouts'"),
        (STEP + "expect:\n  orders: 1.5", 5, "a whole number is expected here"),
        (STEP + "expect:\n  kept: [cook]", 5, "unknown tool 'cook'"),
        (STEP + "expect:\n  known: [cook]", 5, "unknown tool 'cook'"),
        (STEP + "expect:\n  runs:\n    cook: 1", 6, "unknown tool 'cook'"),
        (STEP + "expect:\n  runs:\n    find_table: often", 6, "a number is expected here"),
        (STEP + "expect:\n  silence: none", 5, "a number is expected here, 0 or more"),
        (STEP + "expect:\n  told:\n    - a\n    - [b]", 7, "a text is expected here"),
    ],
)
def test_a_bad_file_is_one_error_with_its_line(tmp_path, text, line, problem):
    with pytest.raises(FileError) as error:
        load_text(tmp_path, text)
    assert str(error.value).startswith(f"{tmp_path / 'call.yaml'}:{line}: {problem}")
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_or_no_text(tmp_path):
    with pytest.raises(FileError, match="cannot be read: No such file"):
        load(tmp_path / "none.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"title: \xff")
    with pytest.raises(FileError, match="cannot be read: not UTF-8"):
        load(tmp_path / "bytes.yaml")
