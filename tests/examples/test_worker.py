"""The restaurant as a LiveKit worker, as far as no LiveKit server is needed."""

import asyncio
import json
import os
import runpy
import sys
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from aiohttp import web
from livekit.agents import AgentServer, JobExecutorType, JobProcess
from livekit.agents.__main__ import main as livekit_main
from livekit.agents.cli.discover import get_import_data
from livekit.agents.ipc.mock_room import create_mock_room
from livekit.agents.testing import fake_job_context
from livekit.plugins import openai
from livekit.protocol import agent as protocol
from plugins._chat_server import ChatServer, Reply, Request

from examples.restaurant import worker
from examples.restaurant.book import Book
from safe_session import SafeAgentSession
from safe_session.testing import Call, check_guarantees

ROOT = Path(__file__).parents[2]
FILE = "examples/restaurant/worker.py"
EVERYTHING = ("OPENAI_API_KEY", *worker.LIVEKIT)
OPTIONS = ("OPENAI_BASE_URL", "RESTAURANT_REALTIME", "RESTAURANT_BOOK", "RESTAURANT_REPORTS")


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch):
    for name in (*EVERYTHING, *OPTIONS):
        monkeypatch.delenv(name, raising=False)


# -- what it needs


@pytest.mark.parametrize(
    ("arguments", "environment", "missing"),
    [
        (["start"], (), ["OPENAI_API_KEY", "LIVEKIT_URL", "LIVEKIT_API_KEY", "LIVEKIT_API_SECRET"]),
        (["dev"], ("OPENAI_API_KEY", "LIVEKIT_URL"), ["LIVEKIT_API_KEY", "LIVEKIT_API_SECRET"]),
        (["start", FILE, "--url=wss://x", "--api-key", "x"], (), ["OPENAI_API_KEY", "LIVEKIT_API_SECRET"]),
        (["connect", "--room", "x"], ("OPENAI_API_KEY",), list(worker.LIVEKIT)),
        (["console"], (), ["OPENAI_API_KEY"]),
        (["console"], ("OPENAI_API_KEY",), []),
        (["start"], EVERYTHING, []),
        (["download-files"], (), []),
        (["--help"], (), []),
        ([], (), []),
    ],
)
def test_what_a_command_needs(monkeypatch, arguments, environment, missing):
    for name in environment:
        monkeypatch.setenv(name, "x")
    assert worker.missing(arguments) == missing


COMMANDS = {
    "its own": lambda: runpy.run_module("examples.restaurant.worker", run_name="__main__"),
    "livekit's": lambda: livekit_main(["start", FILE]),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_each_command_ends_with_one_line_that_says_what_is_missing(monkeypatch, command):
    monkeypatch.delitem(sys.modules, "examples.restaurant.worker")
    monkeypatch.setattr(sys, "argv", ["", "start", FILE])
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit) as end:
        command()
    assert end.value.code == f"missing in the environment: {', '.join(EVERYTHING)}"


# -- the worker


def test_livekits_command_finds_it():
    found = get_import_data(path=ROOT / FILE)
    assert found.import_string == "examples.restaurant.worker:server"
    assert isinstance(worker.server, AgentServer)


@asynccontextmanager
async def livekit_server():
    """As much of a LiveKit server as a worker registers with: its address, and what the worker says first."""
    said = asyncio.get_running_loop().create_future()

    async def register(request):
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        said.set_result(protocol.WorkerMessage.FromString(await socket.receive_bytes()))
        answer = protocol.ServerMessage(register=protocol.RegisterWorkerResponse(worker_id="W_1"))
        await socket.send_bytes(answer.SerializeToString())
        async for _ in socket:  # until the worker goes
            pass
        return socket

    application = web.Application()
    application.router.add_get("/agent", register)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0]
    try:
        yield f"ws://{host}:{port}", said
    finally:
        await runner.cleanup()


@pytest.mark.looptime(False)
@pytest.mark.timeout(120)  # a process of its own takes its time to import all
async def test_it_starts_and_registers_with_livekit():
    async with livekit_server() as (url, said):
        options = ["--dev", "--url", url, "--api-key", "key", "--api-secret", "0123456789" * 4]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "livekit.agents", "start", FILE),
            *options,
            cwd=ROOT,
            env={**os.environ, "OPENAI_API_KEY": "x"},
            stderr=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
        )
        try:
            first = await asyncio.wait_for(said, 100)
        finally:
            process.kill()  # some releases get stuck when they are asked to end
            await process.wait()
    assert first.register.type == protocol.JobType.JT_ROOM
    assert first.register.allowed_permissions.can_publish


# -- a call


def test_the_models(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    process = JobProcess(executor_type=JobExecutorType.THREAD, user_arguments=None, http_proxy=None)
    worker.prewarm(process)
    models = worker.models(process)
    assert {name: type(model).__module__.split(".")[2] for name, model in models.items()} == {
        "vad": "silero",
        "stt": "openai",
        "llm": "openai",
        "tts": "openai",
    }
    monkeypatch.setenv("RESTAURANT_REALTIME", "1")
    assert isinstance(worker.models(process)["llm"], openai.realtime.RealtimeModel)


CREATE = Call("create_reservation", {"name": "Miller", "day": "Friday", "time": "19:00", "people": 6})


def book_it(request: Request) -> Reply:
    """Greet; then book, unless it is shown that it was done."""
    said = [message for message in request.messages if message["role"] == "user"]
    if not said:
        return Reply("Bamboo House, good evening.")
    if not request.calls:
        return Reply("One moment.", [CREATE, Call("send_text", {"about": "menu"})])
    return Reply("It is booked.")


@pytest.fixture
async def call(monkeypatch, tmp_path):
    """Answers a call as a job of the worker does; its models are behind HTTP, and the caller types."""
    async with ChatServer(book_it) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "x")
        monkeypatch.setenv("RESTAURANT_BOOK", str(tmp_path / "book.db"))
        model = openai.LLM(model="gpt-4.1")
        monkeypatch.setattr(worker, "models", lambda _: {"llm": model})  # whose words are not spoken
        with fake_job_context(room=create_mock_room()) as job:
            await worker.answer(job)
            yield job
            await job.primary_session.aclose()
            await worker.keep_report(job)
            for hook in job._shutdown_callbacks:
                await hook("the test is over")
            await model.aclose()


@pytest.mark.looptime(False)
async def test_a_call_is_answered(call, tmp_path):
    session = call.primary_session
    assert isinstance(session, SafeAgentSession)
    await session.generate_reply(user_input="Six on Friday at seven, Miller. And text me the menu.")
    with closing(Book(tmp_path / "book.db")) as book:
        assert [(made.order, made.name, made.people) for made in book.standing()] == [("047", "Miller", 6)]
    assert check_guarantees(session) == []


@pytest.mark.looptime(False)
async def test_a_report_is_kept_of_each_call(call, tmp_path, monkeypatch):
    monkeypatch.setenv("RESTAURANT_REPORTS", str(tmp_path / "reports"))
    await call.primary_session.generate_reply(user_input="Six on Friday at seven, Miller.")
    await call.primary_session.aclose()
    await worker.keep_report(call)
    report = json.loads((tmp_path / "reports" / "fake-job.json").read_text(encoding="utf-8"))
    outputs = [item for item in report["chat_history"]["items"] if item["type"] == "function_call_output"]
    assert any(item["output"].startswith("Reserved: order 047, Miller") for item in outputs)


async def test_a_job_that_ended_before_its_session_began_has_no_report(tmp_path, monkeypatch):
    monkeypatch.setenv("RESTAURANT_REPORTS", str(tmp_path / "reports"))
    with fake_job_context(room=create_mock_room()) as job:
        await worker.keep_report(job)
    assert not (tmp_path / "reports").exists()
