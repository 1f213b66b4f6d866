"""Plays safe timelines with the eager task factory of Python 3.12: ``-p tests.matrix.eager``.

Those in voice and those of a plain session are left out. With eager tasks, livekit's own speech recognition
streams do not start and its AgentTasks are refused (1.8.9), and the claims of when a plain session fails are
about ordinary tasks.
"""

import asyncio
import inspect

import pytest


@pytest.fixture
async def eager_tasks() -> None:
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if _is_played(item)]
    for item in items:
        item.fixturenames.insert(0, "eager_tasks")


def _is_played(item: pytest.Item) -> bool:
    if not (isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj)):
        return False
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    in_voice = parameters.get("medium") == "voice" or "voice_stage" in item.fixturenames
    return not in_voice and parameters.get("session_class") != "plain"
