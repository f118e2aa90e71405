"""The command `drakebots`: models, show, simulate, plan, track, export,
view, report.

    drakebots simulate hamr --gait trot --frequency 10 --surface card -o run.nc
    drakebots plan hamr --frequency 10 --surface card -o plan.nc
    drakebots track plan.nc -o run.nc
    drakebots view run.nc --html run.html
    drakebots report run.nc --plot run.png

Exit codes: 0 done, 1 no solution (or a run that failed), 2 bad input, 130
interrupted. With --json the last line printed is one JSON object.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence

from drakebots import __version__
from drakebots.cli.commands import COMMANDS
from drakebots.cli.plan_commands import PLAN_COMMANDS
from drakebots.errors import DrakebotsError


def make_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="drakebots",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version", action="version", version=f"drakebots {__version__}"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in (*COMMANDS, *PLAN_COMMANDS):
        sub = commands.add_parser(
            command.name,
            help=command.help,
            description=command.help,
            epilog=f"example:\n  {command.example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.arguments(sub)
        sub.add_argument(
            "--json", action="store_true", help="print one JSON object last"
        )
        sub.set_defaults(run=command.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command line and returns its exit code; errors are one line."""
    args = make_parser().parse_args(argv)
    # Drake's own chatter (a port it listens on, ...) is not for this user.
    logging.getLogger("drake").setLevel(logging.ERROR)
    try:
        return args.run(args)
    except DrakebotsError as error:
        print(f"drakebots: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("drakebots: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of a pipe went away; that is not an error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def entry_point() -> None:
    """For the installed script."""
    sys.exit(main())
