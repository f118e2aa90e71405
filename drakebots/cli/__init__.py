"""The command `drakebots`: models, show, simulate, plan, track, export, limbs,
attach, design, view, report.

    drakebots simulate hamr --gait trot --frequency 10 --surface card -o run.nc
    drakebots simulate gecko --targets "65,0 65,65" --epsilon 10 -o run.nc
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
import re
import sys
from collections.abc import Sequence

from drakebots import __version__
from drakebots.cli.commands import LOOK_COMMANDS
from drakebots.cli.design_commands import DESIGN
from drakebots.cli.limbs_command import LIMBS
from drakebots.cli.plan_commands import PLAN_COMMANDS
from drakebots.cli.simulate_commands import SIMULATE
from drakebots.cli.skin_commands import ATTACH
from drakebots.errors import DrakebotsError, InvalidInput

COMMANDS = (*LOOK_COMMANDS, SIMULATE, *PLAN_COMMANDS, LIMBS, ATTACH, DESIGN)


def make_parser(words: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The parser of all commands.

    Args:
        words: the command line; a robot named in it gives its command options
            of its own.
    """
    parser = argparse.ArgumentParser(
        prog="drakebots",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--version", action="version", version=f"drakebots {__version__}"
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in COMMANDS:
        variant = command.variant(words)
        epilog = f"example:\n  {variant.example}"
        if command.robots and variant is command:
            known = ", ".join(command.robots)
            epilog += (
                f"\n\nThese robots have options of their own: {known};\n"
                f"see `drakebots {command.name} {next(iter(command.robots))} --help`."
            )
        if command.skin is not None and variant is command:
            epilog += (
                "\n\nWhat has a skin has options of its own; see "
                f"`{' '.join(command.skin.example.split()[:3])} --help`."
            )
        if command.lattice is not None and variant is command:
            epilog += (
                f"\n\nA lattice's file has options of its own; see "
                f"`drakebots {command.name} lattice.json --help`."
            )
        sub = commands.add_parser(
            command.name,
            help=command.help,
            description=variant.help,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        variant.arguments(sub)
        sub.add_argument(
            "--json", action="store_true", help="print one JSON object last"
        )
        sub.set_defaults(run=variant.run)
    return parser


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments of a command line.

    Raises:
        InvalidInput: for an option that the command does not have for its model.
    """
    argv = _joined(argv)
    args, unknown = make_parser(argv).parse_known_args(argv)
    if unknown:
        model = getattr(args, "model", "")
        raise InvalidInput(
            f"{unknown[0]} does not apply to `drakebots {args.command} {model}`; see "
            f"`drakebots {args.command} {model} --help`"
        )
    return args


_NEGATIVE_POINT = re.compile(r"-[0-9.].*")


def _joined(argv: Sequence[str]) -> list[str]:
    """`--targets -35,-20` as `--targets=-35,-20`: argparse sees an option there."""
    words: list[str] = []
    for word in argv:
        if words and words[-1].startswith("--") and _NEGATIVE_POINT.fullmatch(word):
            words[-1] += "=" + word
        else:
            words.append(word)
    return words


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command line and returns its exit code; errors are one line."""
    # Drake's own chatter (a port it listens on, ...) is not for this user.
    logging.getLogger("drake").setLevel(logging.ERROR)
    try:
        args = parse(sys.argv[1:] if argv is None else argv)
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
