"""Counts the timelines of each guarantee that pass, on a safe session and on a plain one.

A pytest plugin: ``-p tests.matrix.count --count-into=FILE``. A timeline that a plain session is claimed to
fail, and fails, does not pass on it, though the suite does.
"""

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest


class Counts:
    """For each guarantee and class: how many timelines passed, and how many there are."""

    def __init__(self) -> None:
        self.of: defaultdict[str, dict[str, list[int]]]
        self.of = defaultdict(lambda: {"safe": [0, 0], "plain": [0, 0]})

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if guarantee := re.match(r"test_g(\d\d)_", item.path.name):
                parameters: dict[str, Any] = item.callspec.params if hasattr(item, "callspec") else {}
                session = parameters.get("session_class", "safe")
                item.user_properties.append(("counts_for", (f"G{int(guarantee[1])}", session)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        counts_for = dict(report.user_properties).get("counts_for")
        skipped = report.skipped and not hasattr(report, "wasxfail")
        if report.when != "call" or skipped or counts_for is None:
            return
        guarantee, session = counts_for
        self.of[guarantee][session][0] += report.passed
        self.of[guarantee][session][1] += 1

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.OK:
            file: Path = session.config.getoption("--count-into")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(self.of))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--count-into", type=Path, required=True, metavar="FILE")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Counts())
