"""The restaurant's command line, as a newcomer runs it."""

import logging
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from examples.restaurant.__main__ import main
from examples.restaurant.replay.callfile import CALLS

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _hundred_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def main_returns(*arguments: str) -> int:
    """Call `main` in a thread of its own, since the thread of the tests has an event loop already."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(main, arguments).result()


COMMAND = [sys.executable, "-m", "examples.restaurant"]
ENVIRONMENT = {"PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": "1"}


def test_the_demo(capsys):
    """The two reports drawn, and all calls in a table."""
    assert main_returns() == 0
    out, err = capsys.readouterr()
    assert err.count("playing") == 2 * len(list(CALLS.glob("*.yaml")))
    assert "The difference: 2 orders (047, 048) on AgentSession, 1 order (047) on SafeAgentSession." in out
    assert out.count("SafeAgentSession: all as expected, every tool call kept.") == 2
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= 100
    rows = dict(re.findall(r"^  (\S+) +(✗ .*?|✓ .*?)  ", out, re.MULTILINE))
    assert set(rows) == {path.stem for path in CALLS.glob("*.yaml")}
    assert all(re.search(rf"^  {name} +✗ [\d.]+ s +✓ [\d.]+ s ", out, re.MULTILINE) for name in rows)
    assert re.search(r"^  silence +✗ 5.20 s +✓ 0.45 s ", out, re.MULTILINE)


def test_the_demo_tells_of_a_call_that_did_not_go_as_expected(tmp_path, capsys, monkeypatch):
    """Also if it is one of those that are not drawn."""
    for name, orders in (("report-3702", 0), ("report-7632", 0), ("worse", 3)):
        text = f"timeline: [{{at: 1, says: hello}}]\nexpect: {{orders: {orders}}}"
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    monkeypatch.setattr("examples.restaurant.__main__.CALLS", tmp_path)
    assert main_returns() == 1
    assert re.search(r"^  worse +✗ \S+ s +✗ ", capsys.readouterr().out, re.MULTILINE)


def call(tmp_path, text):
    path = tmp_path / "call.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("columns", ["40", "80"])
def test_a_narrow_terminal(tmp_path, capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    file = call(tmp_path, "timeline: [{when: agent stops, says: A table for four on Friday at seven}]")
    assert main_returns("replay", file) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= int(columns)


def test_a_timeline_of_other_agents(tmp_path, capsys):
    """The one of calls/README.md."""
    example = (CALLS / "README.md").read_text(encoding="utf-8").rpartition("```yaml")[2].partition("```")[0]
    assert main_returns("replay", call(tmp_path, example)) == 0
    plain, _, safe = capsys.readouterr().out.partition("SafeAgentSession")
    assert "G4 the turn of desk0_0(1)" in plain
    assert safe.endswith("nothing is wrong\n\n")


def test_a_timeline_that_is_none(tmp_path, capsys):
    file = call(tmp_path, "desks: [{tools: [{seconds: long}]}]")
    assert main_returns("replay", file) == 2
    assert capsys.readouterr().err.startswith(f"{file}: desks.0.tools.0.seconds: ")


def test_a_call_that_does_not_come_out_as_expected(tmp_path, capsys):
    file = call(tmp_path, "timeline: [{at: 1, says: hello}]\nexpect: {orders: 2}")
    assert main_returns("replay", file) == 1
    assert "SafeAgentSession: 0 orders in the book instead of 2" in capsys.readouterr().out


def test_a_bad_file(tmp_path, capsys):
    file = call(tmp_path, "timeline:\n  - when: lunch\n    says: hello\n")
    assert main_returns("replay", file) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"{file}:2: unknown moment 'lunch'; it can be: agent speaks, agent stops")
    assert err.count("\n") == 1


def test_a_file_that_is_not_there(capsys):
    assert main_returns("replay", "none.yaml") == 2
    assert capsys.readouterr().err == "none.yaml:1: cannot be read: No such file or directory\n"


def test_an_error_of_ours_is_not_hidden(tmp_path, monkeypatch):
    monkeypatch.setattr("examples.restaurant.__main__.play", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main_returns("replay", call(tmp_path, "timeline: [{at: 1, says: hello}]"))


def test_help(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("replay", "chat", "--verbose", "Exit code"))


def test_logs_are_shown_on_request_and_on_stderr(tmp_path, capsys, monkeypatch):
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    assert main_returns("--verbose", "replay", call(tmp_path, "timeline: [{at: 0.1, hangs up: true}]")) == 0
    out, err = capsys.readouterr()
    assert "DEBUG" in err
    assert "DEBUG" not in out


def test_chat():
    """The caller types while the host greets, is answered, and leaves with Ctrl-C."""
    with subprocess.Popen(
        [*COMMAND, "chat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=os.environ | ENVIRONMENT,
    ) as chat:
        assert chat.stdin is not None
        said = _read_until(chat, "host: Bamboo")
        assert said.startswith("You talk to the offline model (no OPENAI_API_KEY is set).")
        chat.stdin.write("六位\n".encode())
        chat.stdin.flush()
        assert "╳" in _read_until(chat, "host: 请问是哪一天")
        chat.send_signal(signal.SIGINT)
        assert chat.wait(10) == 0
        assert chat.stderr is not None
        assert chat.stderr.read() == b""


def _read_until(chat: subprocess.Popen[bytes], words: str) -> str:
    assert chat.stdout is not None
    read = b""
    while words.encode() not in read:
        more = chat.stdout.read(1)
        assert more, f"the chat ended: {read.decode()}"
        read += more
    return read.decode()
