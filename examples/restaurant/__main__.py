"""The restaurant on the terminal: `python -m examples.restaurant --help`."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from livekit.agents import AgentSession
from rich.console import Console

from examples.timelines.player import play as play_timeline
from examples.timelines.properties import violations
from examples.timelines.story import story
from examples.timelines.timeline import NoTimelineError
from examples.timelines.timeline import is_one as is_timeline
from examples.timelines.timeline import load as load_timeline
from safe_session import SafeAgentSession
from safe_session.testing import run

from .chat import chat_on_terminal
from .replay import draw
from .replay.callfile import CALLS, load
from .replay.happened import Happened
from .replay.nodes import FileError
from .replay.play import play
from .replay.summary import summary

REPORTS = ("report-3702", "report-7632")
KEPT, NOT_KEPT, BAD_FILE, STOPPED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    options = _arguments().parse_args(arguments)
    _set_up_logging(verbose=options.verbose)
    try:
        return options.run(options)
    except (FileError, NoTimelineError) as error:
        print(error, file=sys.stderr)
        return BAD_FILE
    except KeyboardInterrupt:
        return STOPPED


def demo(options: argparse.Namespace) -> int:
    """Play all calls: the two reports that the package comes from are drawn, and the rest summed up."""
    played = [_play(CALLS / f"{report}.yaml", options) for report in REPORTS]
    others = sorted(path for path in CALLS.glob("*.yaml") if path.stem not in REPORTS)
    played += [_play(path, options, drawn=False) for path in others]
    draw.console().print(summary(played))
    return max(_exit_code(safe) for _, safe in played)


def replay(options: argparse.Namespace) -> int:
    """Play one file: a call to the restaurant, or a timeline of any agents."""
    if is_timeline(options.file):
        return _play_timeline(options)
    _, safe = _play(options.file, options)
    return _exit_code(safe)


def chat(options: argparse.Namespace) -> int:
    """Talk to the host."""
    chat_on_terminal(options.book)
    return KEPT


def voice(options: argparse.Namespace) -> int:
    """Have a spoken call."""
    try:
        from .voice import drawing, have_call, save  # noqa: PLC0415 - needs an extra
    except ModuleNotFoundError as error:
        print(f"a spoken call needs {error.name}: pip install '.[voice]'", file=sys.stderr)
        return BAD_FILE
    session_class = AgentSession if options.plain else SafeAgentSession
    with _progress(draw.console(stderr=True), f"a call on {session_class.__name__}, in real time …"):
        call = run(have_call(session_class), virtual=False)
    out = draw.console()
    out.print(drawing(call, out.width))
    out.print(f"Listen to {options.recording}; {save(call, options.recording)} has the timeline.")
    return KEPT if options.plain else _exit_code(call.happened)


def _play(path: Path, options: argparse.Namespace, *, drawn: bool = True) -> tuple[Happened, Happened]:
    """Play a call on a plain session and on a safe one, and draw both."""
    call = load(path)
    progress = draw.console(stderr=True)
    played: list[Happened] = []
    for session_class in (AgentSession, SafeAgentSession):
        with _progress(progress, f"playing {path.name} on {session_class.__name__} …"):
            played.append(run(play(call, session_class), virtual=not options.real_time))
    plain, safe = played
    if drawn:
        _draw(plain, safe)
    return plain, safe


def _play_timeline(options: argparse.Namespace) -> int:
    """Play a timeline on a plain session and on a safe one; tell what happened, and what is wrong with it."""
    timeline, wrong = load_timeline(options.file), list[str]()
    for session_class in (AgentSession, SafeAgentSession):
        happened = play_timeline(timeline, session_class, virtual=not options.real_time)
        wrong = violations(happened)
        print(f"{session_class.__name__}\n\n{story(happened)}\n")
        print("\n".join(wrong or ["nothing is wrong"]), end="\n\n")
    return NOT_KEPT if wrong else KEPT


def _draw(plain: Happened, safe: Happened) -> None:
    out = draw.console()
    out.print(draw.title(plain.call))
    for happened in (plain, safe):
        out.print(draw.drawing(happened, out.width, seconds=max(plain.seconds, safe.seconds)))
    out.print(draw.difference(plain, safe))


def _exit_code(safe: Happened) -> int:
    return NOT_KEPT if safe.wrong else KEPT


def _progress(console: Console, what: str) -> AbstractContextManager[object]:
    if console.is_terminal:
        return console.status(what)
    console.print(what)
    return nullcontext()


def _set_up_logging(*, verbose: bool) -> None:
    if verbose:
        logging.basicConfig(level=logging.DEBUG, format="%(levelname)s %(name)s: %(message)s")
    else:
        logging.getLogger().addHandler(logging.NullHandler())  # or Python prints warnings to stderr


def _wav(name: str) -> Path:
    """A file that can be written: better known before the call than after it."""
    path = Path(name)
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {path.parent}")
    return path


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m examples.restaurant",
        description="A restaurant's telephone, on livekit-agents' AgentSession and on SafeAgentSession.",
        epilog="Without a command, plays all calls, and draws those of reports #3702 and #7632. "
        "Exit code: 0 if SafeAgentSession did as expected, 1 if not, 2 if a file is not as it should be.",
    )
    parser.set_defaults(run=demo, real_time=False)
    parser.add_argument("--verbose", action="store_true", help="show what livekit-agents logs, on stderr")
    commands = parser.add_subparsers(metavar="command")
    player = commands.add_parser("replay", help="play a call, or a timeline, that is written down")
    player.add_argument("file", type=Path, metavar="FILE", help=f"see {CALLS.name}/README.md for the format")
    player.add_argument("--real-time", action="store_true", help="take as long as the call takes")
    player.set_defaults(run=replay)
    talker = commands.add_parser("chat", help="talk to the host; type while it speaks to interrupt it")
    talker.add_argument("--book", type=Path, metavar="FILE", help="keep the reservations in this SQLite file")
    talker.set_defaults(run=chat)
    speaker = commands.add_parser("voice", help="have a spoken call, recorded, with no key and no network")
    speaker.add_argument("--plain", action="store_true", help="on livekit-agents' own AgentSession")
    speaker.add_argument(
        "--recording", type=_wav, default="call.wav", metavar="FILE", help="call.wav if not given"
    )
    speaker.set_defaults(run=voice)
    return parser


if __name__ == "__main__":
    sys.exit(main())
