"""Each event once as a log line and once in a counter.

The line is made by structlog and rendered through the standard library's logging, so that LiveKit's
formatters, context fields and redaction apply to it. The counter ``safe_session.decisions`` is an
OpenTelemetry one, with the event's name and the tool's as attributes.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

import structlog
from opentelemetry import metrics

if TYPE_CHECKING:
    from .events import SafeEvent

logger: structlog.stdlib.BoundLogger = cast(
    "structlog.stdlib.BoundLogger",
    structlog.wrap_logger(
        logging.getLogger("safe_session"),
        wrapper_class=structlog.stdlib.BoundLogger,
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.render_to_log_kwargs,
        ],
    ),
)

_decisions = metrics.get_meter("safe_session").create_counter(
    "safe_session.decisions", description="what safe_session decided about tool calls"
)


def report(event: SafeEvent) -> None:
    """Log and count `event`."""
    fields: dict[str, Any] = event.model_dump(exclude={"type", "created_at"})
    logger.info(event.type, **fields)
    _decisions.add(1, {"decision": event.type, "tool": event.tool})


class guarded:  # noqa: N801 - used like `contextlib.suppress`, and a generator's context costs ten times as much
    """Log an exception as a failure in our own layer, and go on without what was to be done."""

    def __init__(self, failed_to: str, **fields: Any) -> None:
        self._failed_to = failed_to
        self._fields = fields

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if not isinstance(error, Exception):
            return False
        report_failure(self._failed_to, **self._fields)
        return True


def report_failure(failed_to: str, **fields: Any) -> None:
    """Log the exception being handled as a failure in our own layer."""
    fields["failed_to"] = failed_to
    logger.error("safe_session failed; livekit's own behaviour goes on", exc_info=True, **fields)  # noqa: LOG014
