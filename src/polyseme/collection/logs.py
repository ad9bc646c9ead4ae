"""What a collector logs: one JSON object a line, about itself. No line tells that, when or from where a report came."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

__all__ = ["log_lines"]


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="seconds")
        line = {"time": moment, "level": record.levelname.lower(), "from": record.name, "event": record.getMessage()}
        if record.exc_info and record.exc_info[0] is not None:
            # Its text and its lines may quote what was sent.
            line["error"] = record.exc_info[0].__name__
        return json.dumps(line)


def log_lines(level: int = logging.INFO) -> logging.Handler:
    """Log to standard error from now on; who wants it to end removes what is returned."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    for name, least in (("polyseme", level), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.setLevel(least)
        logger.propagate = False
    return handler
