"""The suite in environments of its own, resolved anew, against the built wheel.

``uv run nox`` runs what CI runs, and ``uv run nox -s compatibility`` runs every supported release of
livekit-agents and writes ``docs/compatibility.md``. What stands after ``--`` is for pytest:
``uv run nox -s "releases(1.7.1)" -- -k voice``.
"""

import shutil
from pathlib import Path

import nox
from packaging.specifiers import SpecifierSet

nox.needs_version = ">=2026.10.20"
nox.options.tags = ["ci"]
nox.options.default_venv_backend = "uv"
nox.options.allow_parallel = True
nox.options.parallel = "auto"
nox.options.error_on_missing_interpreters = False  # not every machine has every Python

MATRIX = nox.project.load_toml("tests/matrix/releases.toml")
DIST, RESULTS = Path(".nox/dist").resolve(), Path(".nox/results").resolve()
EAGER = ("-p", "tests.matrix.eager", "tests/guarantees", "-k", "g01 or g02 or g03 or g12")
OF_ONE_RELEASE = ("livekit-agents", "livekit-plugins-openai", "livekit-plugins-silero")


@nox.session(venv_backend="none", tags=["ci"])
def build(session: nox.Session) -> None:
    """Build the source distribution, and from it the wheel."""
    session.run_install("uv", "build", "--quiet", "--clear", f"--out-dir={DIST}", external=True)


@nox.session(python="3.11", requires=["build"])
@nox.parametrize(
    "release",
    [nox.param(each, id=each, tags=["ci"] if each in MATRIX["ci"] else []) for each in MATRIX["releases"]],
)
def releases(session: nox.Session, release: str) -> None:
    """On one release of livekit-agents, with the plugins of the same release."""
    install(session, *requirements_of(release))
    results = RESULTS / f"{release}.json"
    results.unlink(missing_ok=True)
    run_suite(session, "-p", "tests.matrix.count", f"--count-into={results}")


@nox.session(venv_backend="none", requires=[f"releases({release})" for release in MATRIX["releases"]])
def compatibility(session: nox.Session) -> None:
    """On every release; writes the tables of docs/compatibility.md."""
    session.run("python", "tests/matrix/page.py", str(RESULTS), external=True)


@nox.session(requires=["build"])
@nox.parametrize(
    ("python", "tasks"),
    [
        nox.param("3.10", "lazy", id="3.10"),
        nox.param("3.12", "lazy", id="3.12"),
        nox.param("3.12", "eager", id="3.12 eager"),
        nox.param("3.13", "lazy", id="3.13"),
        nox.param("3.13", "eager", id="3.13 eager", tags=["ci"]),
        nox.param("3.14", "lazy", id="3.14"),
        nox.param("3.14", "eager", id="3.14 eager"),
    ],
)
def pythons(session: nox.Session, tasks: str) -> None:
    """On another Python, also with the event loop's eager task factory."""
    install(session)
    run_suite(session, *(EAGER if tasks == "eager" else []))


@nox.session(python="3.10", requires=["build"], tags=["ci"])
def lowest(session: nox.Session) -> None:
    """On the lowest dependencies that the package allows, and on the lowest Python."""
    install(session, *requirements_of(MATRIX["releases"][0]), resolution="lowest-direct")
    run_suite(session)


def requirements_of(release: str) -> list[str]:
    """livekit's packages of that release, and what they need beside what they ask for."""
    pins = [pin["requirement"] for pin in MATRIX["pins"] if release in SpecifierSet(pin["releases"])]
    return [*(f"{package}=={release}" for package in OF_ONE_RELEASE), *pins]


def install(session: nox.Session, *requirements: str, resolution: str = "highest") -> None:
    """Install the wheel and what the examples need, then what tests need beside it."""
    (wheel,) = DIST.glob("*.whl")
    ours = f"safe-session[testing] @ {wheel.as_uri()}"
    session.install(f"--resolution={resolution}", ours, "--group=example", *requirements)
    session.install("--group=dev", *requirements)


def run_suite(session: nox.Session, *options: str) -> None:
    """Run the tests of the source distribution in a folder that does not hold the package itself.

    The example, the load and the random timelines are left to the environment that is locked.
    """
    (source,) = DIST.glob("*.tar.gz")
    folder = Path(session.create_tmp()) / "suite"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.unpack_archive(source, folder)
    (suite,) = folder.iterdir()
    shutil.rmtree(suite / "safe_session")
    session.chdir(suite)
    suites = [f"tests/{each}" for each in ("unit", "testing", "guarantees", "plugins")]
    session.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, *suites, *session.posargs)
