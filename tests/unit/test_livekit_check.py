"""A livekit-agents that safe_session doesn't work with is one clear error, at once."""

import ast
import importlib.util
import inspect
import textwrap
import time
from importlib.metadata import version
from pathlib import Path
from types import FunctionType

import pytest

import safe_session
from safe_session import SafeAgentSession, UnsupportedLivekitError, _livekit
from safe_session.activity import SafeAgentActivity
from safe_session.executor import SafeToolExecutor

FOUND = version("livekit-agents")
PACKAGE = Path(safe_session.__file__).parent
SEAMS = _livekit._SEAMS


def says_what_is_wrong(error, *names):
    told = str(error.value)
    assert f"found {FOUND}" in told
    assert "livekit-agents >=1.6.0,<1.9" in told
    assert "pip install 'livekit-agents>=1.6.0,<1.9'" in told
    assert [name for name in names if name not in told] == []


# -- the release


@pytest.mark.parametrize("found", ["0.12.3", "1.5.9", "1.9.0", "2.0.0", "unknown"])
def test_a_release_out_of_the_range(found):
    with pytest.raises(UnsupportedLivekitError) as error:
        _livekit.check(found, ())
    assert f"found {found}" in str(error.value)
    assert ">=1.6.0,<1.9" in str(error.value)
    assert "pip install 'livekit-agents>=1.6.0,<1.9'" in str(error.value)


@pytest.mark.parametrize("found", ["1.6.0", "1.6.6", "1.7.1", "1.8.0", "1.8.9", "1.8.10"])
def test_a_release_in_the_range(found):
    _livekit.check(found, ())


def test_it_is_an_import_error():
    assert issubclass(UnsupportedLivekitError, ImportError)


# -- each seam, taken away in turn


def test_the_installed_release_has_every_seam():
    _livekit.check(FOUND)


def test_the_check_takes_milliseconds():
    def seconds():
        began = time.perf_counter()
        _livekit.check(FOUND)
        return time.perf_counter() - began

    assert min(seconds() for _ in range(5)) < 0.02


def owner_of(seam):
    """What the last name of the seam stands in, and that name."""
    module, _, path = seam.where.partition(":")
    owner = importlib.import_module(module)
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    return owner, name


def each(seams, parts=lambda seam: [None]):
    """Each of the seams, or each part of each, as parameters."""
    return [
        pytest.param(seam, *filter(None, [part]), id="-".join(filter(None, [seam.where.split(":")[1], part])))
        for seam in seams
        for part in parts(seam)
    ]


@pytest.mark.parametrize(("seam", "name"), each(SEAMS, lambda seam: seam.where.split(":")[1].split(".")))
def test_a_name_that_is_gone(monkeypatch, seam, name):
    """A class, a function or a method has moved or was renamed."""
    module, _, path = seam.where.partition(":")
    owner, _ = owner_of(seam)
    if name == path.split(".")[0]:
        monkeypatch.delattr(importlib.import_module(module), name)
    elif name == "__init__":
        monkeypatch.setattr(owner, name, lambda self: None)  # every class has one
    elif inspect.isclass(owner):
        for kind in owner.__mro__:
            if name in vars(kind):
                monkeypatch.delattr(kind, name)
    else:
        monkeypatch.setattr(importlib.import_module(module), path.split(".")[0], object())
    with pytest.raises(UnsupportedLivekitError) as error:
        _livekit.check(FOUND)
    says_what_is_wrong(error, *(seam.sets if name == "__init__" else [name]))


def renamed(function, name):
    """The function with that parameter, or with that attribute in its code, under another name."""
    code = inspect.unwrap(function).__code__
    names = {
        field: tuple(f"{each}_renamed" if each == name else each for each in getattr(code, field))
        for field in ("co_varnames", "co_names")
    }
    return FunctionType(
        code.replace(**names), function.__globals__, closure=inspect.unwrap(function).__closure__
    )


@pytest.mark.parametrize(("seam", "name"), each(SEAMS, lambda seam: [*seam.parameters, *seam.sets]))
def test_a_parameter_or_an_attribute_that_is_gone(monkeypatch, seam, name):
    owner, function = owner_of(seam)
    monkeypatch.setattr(owner, function, renamed(getattr(owner, function), name))
    with pytest.raises(UnsupportedLivekitError) as error:
        _livekit.check(FOUND)
    says_what_is_wrong(error, f"{seam.where} lacks {name}.")


def test_it_is_checked_before_anything_private_is_imported(monkeypatch):
    """What a program sees that imports the package: one error of the package's own."""
    monkeypatch.delattr("livekit.agents.voice.tool_executor._ToolExecutor")
    livekit = importlib.util.find_spec("safe_session._livekit")
    with pytest.raises(ImportError) as error:
        livekit.loader.exec_module(importlib.util.module_from_spec(livekit))
    assert type(error.value).__name__ == "UnsupportedLivekitError"
    says_what_is_wrong(error, "livekit.agents.voice.tool_executor:_ToolExecutor.__init__ lacks")


# -- every private name that is used is a seam


def checked():
    """The last name of each seam, and what it sets."""
    return {name for seam in SEAMS for name in (seam.where.split(":")[1].split(".")[-1], *seam.sets)}


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def test_every_private_attribute_that_is_used_is_checked():
    tree = ast.parse((PACKAGE / "_livekit.py").read_text())
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert {name for name in used if is_private(name)} - checked() == set()


@pytest.mark.parametrize("ours", [SafeAgentSession, SafeAgentActivity, SafeToolExecutor])
def test_every_private_method_that_is_overridden_is_checked(ours):
    (livekits,) = ours.__bases__
    methods = {name for name, value in vars(ours).items() if inspect.isfunction(value) and is_private(name)}
    assert {name for name in methods if hasattr(livekits, name)} - checked() == set()


@pytest.mark.parametrize("ours", [SafeAgentSession, SafeAgentActivity, SafeToolExecutor])
def test_every_private_attribute_that_is_inherited_is_checked(ours):
    tree = ast.parse(textwrap.dedent(inspect.getsource(ours)))
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in {"self", "super()"}
    }
    assert {name for name in used - vars(ours).keys() if is_private(name)} - checked() == set()
