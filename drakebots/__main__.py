"""`python -m drakebots`, and the installed script."""

from __future__ import annotations

import signal
import sys

from drakebots.core.lazy import hide_dask, late

cli = late("drakebots.cli")


def entry_point() -> None:
    """Runs the command line. While it is imported, Ctrl-C ends it without a word."""
    hide_dask()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(cli.main())


if __name__ == "__main__":
    entry_point()
