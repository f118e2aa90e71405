"""What Drake says while it parses, reported once each."""

import logging

import pytest

from drakebots.formats.read import Findings
from drakebots.formats.read.findings import note_messages
from drakebots.model import heard, shortened

PLACE = "/a/path with blanks/m.urdf:12: warning: "


@pytest.mark.parametrize(
    "messages, notes",
    [
        (
            ["A joint has specified a non-zero value for the 'friction' attribute"] * 2,
            ("Drake ignores joint friction (2 times)",),
        ),
        (
            ["A link named foot has invalid inertia."],
            ("an inertia is invalid: foot",),
        ),
        (
            [
                "XML Element[mu3], child of element[ode], not defined in SDF. Copying",
                "Ignoring unsupported SDFormat element in link: gravity. More.",
            ],
            ("Drake ignores: <mu3>, <gravity>",),
        ),
        (["Something new; and more"] * 3, ("Drake says: Something new (3 times)",)),
    ],
)
def test_messages_of_one_kind_are_one_note(messages, notes):
    findings = Findings()
    note_messages(messages, findings)
    assert findings.notes == notes


def test_warnings_are_heard_and_not_printed(caplog):
    logger = logging.getLogger("drake")
    with heard() as lines:
        logger.warning(PLACE + "first\n  line")
        logger.info("no warning")
    assert lines == ["first line"]
    assert not caplog.records


def test_warnings_are_heard_behind_a_filter():
    """The command line filters Drake's logger; notes are made of what it says."""
    logger = logging.getLogger("drake")

    def errors_only(record):
        return record.levelno >= logging.ERROR

    logger.addFilter(errors_only)
    try:
        with heard() as lines:
            logger.warning("a warning")
        assert lines == ["a warning"]
        assert errors_only in logger.filters
    finally:
        logger.removeFilter(errors_only)


def test_a_refusal_is_told_without_the_path():
    error = RuntimeError("/a/m.urdf:3: error: no\nlink")
    assert shortened(error) == "no link"
