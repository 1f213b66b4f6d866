"""A spoken call, as a newcomer has it. It takes as long as it sounds."""

import json
import os
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
import pytest

from examples.restaurant.__main__ import main

ROOT = Path(__file__).parents[2]
LOUD = 500  # of 32767
FIVE_SECONDS = 5.0  # as long as a plain session waits for the tools of an interrupted turn


@pytest.mark.timeout(200)
def test_a_caller_cuts_in_by_speaking_while_a_tool_runs(tmp_path):
    pytest.importorskip("piper", reason="needs the extra `voice`")
    recording = tmp_path / "call.wav"
    command = subprocess.run(
        [sys.executable, "-m", "examples.restaurant", "voice", "--recording", recording],
        cwd=ROOT,
        env=os.environ | {"COLUMNS": "100", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=190,
        check=False,
    )
    assert command.returncode == 0, command.stdout + command.stderr
    told = json.loads(recording.with_suffix(".json").read_text(encoding="utf-8"))
    moments = told["timeline"]
    [cut_in] = [moment for moment in moments if moment.get("says") == "That is for six, right?"]
    [slow] = [moment for moment in moments if moment.get("tool") == "send_confirmation"]
    thoughts = [moment for moment in moments if "model_knows" in moment and moment["at"] > cut_in["at"]]
    answers = [moment for moment in moments if moment.get("who") == "agent" and moment["at"] > cut_in["at"]]

    assert cut_in["heard"] == "that is for six right"
    assert thoughts[0]["sees_running"] == ["send_confirmation"]
    assert "create_reservation" in thoughts[0]["model_knows"]
    assert slow["at"] < cut_in["at"] < answers[0]["at"] < slow["until"]
    assert answers[0]["heard"].startswith("It is booked: order 047")
    assert len(told["reservations"]) == 1

    caller, agent = _sides(recording)
    assert _who_is_heard(moments, caller, agent) == {("caller", "left"), ("agent", "right")}
    silence = _silence(caller, agent, cut_in["until"])
    assert 0.2 < silence < FIVE_SECONDS
    assert told["silence_after_the_cut_in"] == pytest.approx(silence, abs=0.1)


def _sides(recording):
    """When each side was to be heard: hundredths of a second, true or false."""
    with wave.open(str(recording)) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (2, 2)
        hundredth = file.getframerate() // 100
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(int)
    whole = samples[: len(samples) // (2 * hundredth) * 2 * hundredth].reshape(-1, hundredth, 2)
    return (np.abs(whole).max(axis=1) > LOUD).T


def _who_is_heard(moments, caller, agent):
    """Who speaks, by the timeline, and on which sides there is sound then."""
    spoken = [moment for moment in moments if "says" in moment]
    sides = {"left": caller, "right": agent}
    return {
        (moment["who"], name)
        for moment in spoken
        for name, side in sides.items()
        if side[round(moment["at"] * 100) + 10 : round(moment["until"] * 100) - 10].any()
    }


def _silence(caller, agent, until):
    """Seconds from the last sound of what the caller has said by then to the agent's next."""
    ended = np.flatnonzero(caller[: round(until * 100) + 10])[-1]
    return np.flatnonzero(agent[ended:])[0] / 100


def test_without_the_packages_it_needs(capsys, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("examples.restaurant.voice")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pocketsphinx", None)
    assert main(["voice"]) == 2
    assert capsys.readouterr().err == "a spoken call needs pocketsphinx: pip install '.[voice]'\n"


def test_a_recording_that_cannot_be_written(capsys):
    with pytest.raises(SystemExit) as end:
        main(["voice", "--recording", "none/call.wav"])
    assert end.value.code == 2
    assert "argument --recording: there is no folder none" in capsys.readouterr().err
