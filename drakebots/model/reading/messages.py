"""What Drake says while it parses a model, told once each.

Drake warns once per element, with the path of the file in every line. Here the lines of
one kind become one, with what they are about.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from drakebots.core.errors import one_line
from drakebots.model.reading.findings import Findings

LENGTH = 160
"""A longer message is cut."""

_PLACE = re.compile(r"^.*?:(\d+:)? (?=(warning|error): )")
"""The path and the line number at the start of a message."""

_KINDS = [
    (
        r"The attribute '(.*?)' found in a '(.*?)' tag .*unsupported",
        "Drake ignores",
        "{1} {0}",
    ),
    (
        r"The tag '(.*?)' found as a child of '.*?' .*unsupported",
        "Drake ignores",
        "<{0}>",
    ),
    (
        r"Ignoring unsupported SDFormat element in (\w+): ?(\w+)",
        "Drake ignores",
        "<{1}>",
    ),
    (r"XML Element\[(.*?)\],.*not defined in SDF", "Drake ignores", "<{0}>"),
    (
        r'Skipping transmission .* joint "(.*?)" which has a zero effort limit',
        "a motor whose effort limit is 0 is left out (raise the limit in the file, or "
        "--actuate all --effort 10)",
        "{0}",
    ),
    (r".*non-zero value for the 'friction'", "Drake ignores joint friction", ""),
    (r".*mechanicalReduction", "Drake ignores <mechanicalReduction>", ""),
    (r"A link named (\S+) has invalid inertia", "an inertia is invalid", "{0}"),
    (r"While (parsing|re-expressing)", "Drake replaces an invalid inertia", ""),
    (r".* name '(.*?)' has already been used, renaming", "Drake renames", "{0}"),
    (
        r"Joint '(.*?)' specified as type floating",
        "a floating joint leaves its link free",
        "{0}",
    ),
]
"""A message of Drake, the line that it becomes, and the item that the line names."""


@contextmanager
def heard() -> Iterator[list[str]]:
    """Collects what Drake logs in a block, in place of printing it."""
    messages = _Messages()
    logger = logging.getLogger("drake")
    logger.addHandler(messages)
    propagate, logger.propagate = logger.propagate, False
    # Filters keep Drake's chatter off the command line; here it is wanted.
    filters, logger.filters = logger.filters, []
    try:
        yield messages.lines
    finally:
        logger.removeHandler(messages)
        logger.propagate, logger.filters = propagate, filters


class _Messages(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(one_line(record.getMessage()))


def note_messages(messages: Iterable[str], findings: Findings) -> None:
    """Notes what Drake said, one line for each kind of message.

    Args:
        messages: one line each, from :func:`heard`.
        findings: to add to.
    """
    for message in messages:
        text = _PLACE.sub("", message).removeprefix("warning: ")
        for pattern, line, item in _KINDS:
            if match := re.match(pattern, text):
                findings.note(line, item.format(*match.groups()))
                break
        else:
            sentence = re.split(r"(?<=[.;]) ", text)[0].rstrip(".;")
            findings.note(f"Drake says: {sentence[:LENGTH]}")


def shortened(error: BaseException) -> str:
    """What Drake refuses a file for, without the path of the file."""
    return _PLACE.sub("", one_line(error)).removeprefix("error: ")[:300]
