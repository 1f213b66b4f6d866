"""Who said what when in a spoken call: on the terminal, and as a file beside the recording."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from ..replay import draw
from ..replay.happened import Happened
from .call import SpokenCall


def save(call: SpokenCall, recording: Path) -> Path:
    """Write the recording, and the timeline beside it; returns where that is."""
    call.line.recording.save(recording)
    timeline = recording.with_suffix(".json")
    facts = {"recording": recording.name, **_facts(call)}
    timeline.write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return timeline


def drawing(call: SpokenCall, width: int) -> RenderableType:
    """The call as the recorded ones are drawn, and the silence that a listener measures."""
    happened = call.happened
    parts = [draw.title(happened.call), draw.drawing(happened, width, happened.seconds)]
    if call.silence is not None:
        silence = f"In the recording, the cut-in is followed by {call.silence:.2f} s of silence."
        parts.append(Text(silence, style="bold"))
    return Group(*parts)


def _facts(call: SpokenCall) -> dict[str, Any]:
    happened = call.happened
    return {
        "session": happened.session_class,
        "livekit-agents": version("livekit-agents"),
        "seconds": round(happened.seconds, 2),
        "silence_after_the_cut_in": call.silence,
        "reservations": [str(reservation) for reservation in happened.reservations],
        "not_as_expected": happened.wrong,
        "timeline": sorted(_timeline(happened), key=lambda moment: moment["at"]),
    }


def _timeline(happened: Happened) -> list[dict[str, Any]]:
    """All that happened, with the seconds since the call began."""
    moments: list[dict[str, Any]] = [
        {"at": said.began, "until": said.ended, "who": said.who, "says": said.text, "heard": said.heard}
        | ({"cut_off": True} if said.cut_off else {})
        for said in happened.said
    ]
    moments += [
        {"at": work.started, "until": work.ended, "tool": work.tool, "outcome": work.outcome}
        for work in happened.work
    ]
    moments += [
        {
            "at": thought.at,
            "model_knows": thought.tools("done", "failed"),
            "sees_running": thought.tools("running"),
            "is_not_shown": thought.tools("not shown"),
            "calls": thought.called,
        }
        for thought in happened.thoughts
    ]
    moments += [{"at": note.at, "safe_session": note.text} for note in happened.decisions]
    moments += [{"at": note.at, "error": note.text} for note in happened.errors]
    return [
        {name: round(value, 2) if isinstance(value, float) else value for name, value in moment.items()}
        for moment in moments
    ]
