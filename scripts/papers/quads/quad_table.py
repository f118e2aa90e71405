"""What scripts/quad_*.py share: options, the table beside the paper, one JSON line."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.figure import Figure
from quad_setting import Outcome, Setting, row
from rich.console import Console
from rich.table import Table

from drakebots.cli.output import plain
from drakebots.cli.progress import stages
from drakebots.core.errors import DrakebotsError
from drakebots.plots import save
from drakebots.robots.quads.robot import variant

Compute = Callable[[Setting], Outcome]
Draw = Callable[[Outcome], Figure]


def main(
    text: str,
    model: str,
    compute: Compute,
    draw: Draw,
    argv: Sequence[str] | None = None,
) -> dict:
    """Runs an experiment; writes NAME.png and results, prints table and JSON.

    Args:
        text: of the script; its first line is shown by --help.
        model: by default.
        compute, draw: the experiment and its figure.
        argv: of the command line.

    Returns:
        The facts that are printed.
    """
    parser = argparse.ArgumentParser(description=text.strip().splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=Path("."))
    parser.add_argument("--model", default=model, help=f"robot (default {model})")
    parser.add_argument("--quick", action="store_true", help="shorter, faster motions")
    parser.add_argument(
        "--reuse", action="store_true", help="results that are in the folder already"
    )
    parser.add_argument("--time-limit", type=float, help="of each plan and replay [s]")
    parser.add_argument(
        "--modulus",
        type=float,
        default=1.0,
        help="of the skin, share of the model's (default 1)",
    )
    parser.add_argument("--effort", type=float, help="of all motors [N m]")
    args = parser.parse_args(argv)
    args.output.mkdir(parents=True, exist_ok=True)
    name = compute.__name__
    try:
        model = args.model
        if args.modulus != 1.0 or args.effort is not None:
            changed = args.output / f"{Path(model).stem}_{args.modulus:g}_{args.effort}"
            model = str(
                variant(model, changed, modulus=args.modulus, effort=args.effort)
            )
        with stages(name) as progress:
            outcome = compute(
                Setting(
                    model,
                    args.output,
                    quick=args.quick,
                    reuse=args.reuse,
                    time_limit=args.time_limit,
                    progress=progress,
                )
            )
    except DrakebotsError as error:
        print(f"{name}: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    asked = [
        ("modulus of the skin, share of the model's", "1", args.modulus, 1.0),
        ("limit of all motors [N m]", "not given (1.96 the usual)", args.effort, None),
    ]
    for what, paper, value, own in asked:
        if value != own:
            why = "as asked for on the command line"
            outcome.rows.insert(0, row(what, paper, f"{value:g}", why))
    picture = save(draw(outcome), args.output / f"quad_{name}.png")
    show_table(outcome)
    print(picture)
    facts = {"experiment": name, "model": args.model, "quick": args.quick}
    facts |= {"modulus_share": args.modulus, "effort_N_m": args.effort}
    facts |= outcome.facts
    print(json.dumps(plain(facts)))
    return facts


def show_table(outcome: Outcome) -> None:
    """What, the paper's word, ours, and why they differ."""
    table = Table(title=outcome.title)
    for column in ("", "paper", "here", "why different"):
        table.add_column(column, overflow="fold")
    for line in outcome.rows:
        table.add_row(line["what"], line["paper"], line["here"], line["why"])
    Console().print(table)
