"""How timelines are drawn. What is simplest comes first, as Hypothesis shrinks towards it."""

from hypothesis import strategies as st

from examples.timelines.timeline import Decision, Desk, Event, Form, Medium, Server, Timeline, Tool

SHORT = st.sampled_from([0.0, 0.0, 0.1, 0.5, 1.0])
LONG = st.sampled_from([0.0, 0.01, 0.1, 0.25, 0.3, 0.5, 1.0, 2.0, 4.0, 8.0])
PAUSE = st.sampled_from([0.0, 0.05, 0.1, 0.2, 0.25, 0.26, 0.3, 0.5, 0.8, 1.0, 2.0, 3.0, 5.0])
DESKS = 3


def tools(*, handing_over: bool = True, asking: bool = True) -> st.SearchStrategy[Tool]:
    plain = ["result", "result", "result", "error", "nothing"]
    return st.builds(
        Tool,
        seconds=LONG,
        reports=st.lists(SHORT, max_size=2).map(tuple),
        ends=st.sampled_from([*plain, "agent", "agent and result"] if handing_over else plain),
        to=st.integers(0, DESKS - 1),
        asks=st.sampled_from([False] * 5 + [asking]),
        cancellable=st.sampled_from([False] * 5 + [True]),
        repeat=st.sampled_from(["knowingly", "knowingly", "knowingly", "once", "freely"]),
        on_handoff=st.sampled_from(["drop", "drop", "retarget"]),
    )


def some(kind: st.SearchStrategy[Tool], most: int) -> st.SearchStrategy[tuple[Tool, ...]]:
    return st.lists(kind, max_size=most).map(tuple)


desks = st.builds(
    Desk,
    tools=st.lists(tools(), min_size=1, max_size=3).map(tuple),
    toolset=st.just(()) | some(tools(), 2),
    enters=SHORT,
    greets=st.sampled_from(["", "", "says", "replies"]),
    leaves=SHORT,
    says_goodbye=st.sampled_from([False, False, False, True]),
    thinks=st.sampled_from([0.0, 0.0, 0.0, 0.3]),
    knows=st.booleans(),
    returns=st.booleans(),
)

forms = st.builds(
    Form,
    tools=some(tools(handing_over=False, asking=False), 1),
    enters=SHORT,
    asks=st.booleans(),
    completes=st.none() | LONG,
    leaves=SHORT,
)

calls = st.tuples(st.integers(0, 5), st.sampled_from([1, 1, 2]))

decisions = st.builds(
    Decision,
    words=st.sampled_from([0, 1, 4, 12]),
    calls=st.just(()) | st.lists(calls, min_size=1, max_size=4).map(tuple),
    delay=st.sampled_from([0.0, 0.0, 0.05, 0.3, 2.0]),
    pace=st.sampled_from([0.0, 0.0, 0.05, 0.25]),
    calls_first=st.booleans(),
    fails=st.sampled_from([False] * 15 + [True]),
)

events = st.builds(
    Event,
    after=PAUSE,
    act=st.sampled_from(
        ["types over"] * 3
        + ["says"] * 4
        + ["types"] * 2
        + ["hands over"] * 3
        + ["types twice", "interrupts", "announces", "asks for a reply", "completes"]
    ),
    words=st.integers(1, 4),
    to=st.integers(0, DESKS - 1),
)

servers = st.builds(
    Server,
    replies_by_itself=st.sampled_from([False, False, True]),
    mutable=st.sampled_from([True, True, False]),
    fails=st.just(()) | st.lists(st.integers(1, 12), max_size=3, unique=True).map(tuple),
)


def timelines(*media: Medium) -> st.SearchStrategy[Timeline]:
    """Timelines in one of those media."""
    return st.sampled_from(media or ("text", "voice", "realtime")).flatmap(_timelines)


def _timelines(medium: Medium) -> st.SearchStrategy[Timeline]:
    return st.builds(
        Timeline,
        medium=st.just(medium),
        desks=st.lists(desks, min_size=1, max_size=DESKS).map(tuple),
        form=forms,
        session_tools=st.just(()) | some(tools(asking=False), 2),
        decisions=st.lists(decisions, min_size=3, max_size=12).map(tuple),
        events=st.lists(events, min_size=2, max_size=10).map(tuple),
        rests=st.none() | PAUSE,
        drains=st.booleans(),
        server=servers if medium == "realtime" else st.just(Server()),
        preemptive=st.booleans() if medium == "voice" else st.just(False),
        grace=st.sampled_from([0.25, 0.25, 0.0, 0.5]),
        close_timeout=st.sampled_from([2.0, 1.0, 10.0]),
        interrupted_handoff=st.sampled_from(["cancel", "apply"]),
    )
