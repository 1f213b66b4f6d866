"""The public names, and that imports point down only."""

import ast
import inspect
from pathlib import Path

import pytest

import safe_session
from safe_session import SafeEvent, events, testing

PACKAGE = Path(safe_session.__file__).parent
GROUND_FLOOR = ("context", "events", "ledger", "policy", "routing")


def public_in(module):
    return {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and not inspect.ismodule(value) and name != "annotations"
    }


@pytest.mark.parametrize("module", [safe_session, testing])
def test_all_is_sorted_and_what_the_package_exports(module):
    assert module.__all__ == sorted(module.__all__)
    assert set(module.__all__) == public_in(module)


def test_every_event_is_public():
    kinds = [kind for kind in vars(events).values() if inspect.isclass(kind) and issubclass(kind, SafeEvent)]
    assert [kind.__name__ for kind in kinds if kind.__name__ not in safe_session.__all__] == []


def test_it_is_typed():
    assert (PACKAGE / "py.typed").exists()


def imports_of(path):
    """What a module imports when it runs: absolute names, and relative ones with a leading dot."""
    found = set()
    for node in statements_that_run(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            found |= {f"{base}.{alias.name}" if node.module else base + alias.name for alias in node.names}
    return found


def statements_that_run(node):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        yield child
        yield from statements_that_run(child)


@pytest.mark.parametrize("name", GROUND_FLOOR)
def test_the_ground_floor_knows_no_loop_and_no_private_name_of_livekits(name):
    imported = imports_of(PACKAGE / f"{name}.py")
    assert imported
    for each in imported:
        assert each.partition(".")[0] != "asyncio"
        if each.startswith("livekit"):
            assert each.rpartition(".")[0] == "livekit.agents.llm", f"{each} is not of livekit's public items"
            assert not each.rpartition(".")[2].startswith("_")
        if each.startswith("."):
            assert each.split(".")[1] in GROUND_FLOOR, f"{each} is of a higher floor"


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")), ids=lambda path: path.stem)
def test_private_names_of_livekits_are_imported_in_one_place(path):
    private = [
        each
        for each in imports_of(path)
        if each.startswith("livekit") and any(part.startswith("_") for part in each.split("."))
    ]
    assert not private or path.stem == "_livekit"


@pytest.mark.parametrize("path", sorted((PACKAGE / "testing").glob("*.py")), ids=lambda path: path.stem)
def test_what_tests_are_driven_with_needs_nothing_of_the_package(path):
    """It works with livekit's own sessions, and so must not lean on ours."""
    assert not [each for each in imports_of(path) if each.startswith(("..", "safe_session"))]
