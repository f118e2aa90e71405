"""The experiments of the paper's section 7: one command, one table, one figure each.

python scripts/papers/quads/quad_experiments.py walks -o out
python scripts/papers/quads/quad_experiments.py --quick               # of qpcc
python scripts/papers/quads/quad_experiments.py walks --quick --model beetle

NAME is one of the table EXPERIMENTS. Each writes its plans and runs and quad_NAME.png
to the output folder, and prints a table of the paper's statements and ours and, as the
last line, one JSON object.

JSON: experiment, model, quick, modulus_share.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import quad_figures as figures
from matplotlib.figure import Figure
from quad_failure import failure
from quad_kinematic import kinematic
from quad_setting import Outcome, Setting, row
from quad_trot import cop, trot
from quad_variant import variant
from quad_walks import cow, foot_lift, lizard, qpcc_frames, torque_limits, walks
from rich.console import Console
from rich.table import Table

from drakebots.cli.output import one_line_errors
from drakebots.cli.progress import progress_bar
from drakebots.plots import save

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from measurement import Measurement


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper.

    Attributes:
        figure: number of the paper's figure.
        question: what the experiment answers.
        model: robot by default.
        compute: runs it.
        draw: draws its figure.
    """

    figure: str
    question: str
    model: str
    compute: Callable[[Setting], Outcome]
    draw: Callable[[Outcome], Figure]


EXPERIMENTS = {
    "qpcc": Experiment(
        "Fig. 4",
        "does the QPCC of a step converge in ten iterations?",
        "beetle",
        qpcc_frames,
        figures.qpcc_figure,
    ),
    "foot_lift": Experiment(
        "Fig. 10",
        "is the COP in the polygon while one foot, then two are lifted?",
        "beetle",
        foot_lift,
        figures.lift_figure,
    ),
    "cop": Experiment(
        "Figs. 11, 20",
        "where is the COP of the trot before and after the skin is planned for?",
        "monster",
        cop,
        figures.cop_figure,
    ),
    "walks": Experiment(
        "Fig. 12",
        "does the monster walk at 0.11 and at 0.06 m/s?",
        "monster",
        walks,
        figures.walk_figure,
    ),
    "trot": Experiment(
        "Fig. 13",
        "does the monster trot at 0.45 m/s, with the skin planned for and without?",
        "monster",
        trot,
        figures.trot_figure,
    ),
    "lizard": Experiment(
        "Fig. 14",
        "does the lizard walk and bend?",
        "lizard",
        lizard,
        figures.walk_figure,
    ),
    "cow": Experiment(
        "Fig. 15",
        "does the cow walk within 3.13 N m?",
        "cow",
        cow,
        figures.walk_figure,
    ),
    "torque_limits": Experiment(
        "Fig. 16",
        "do the beetle's motors keep their limit while it walks?",
        "beetle",
        torque_limits,
        figures.torque_figure,
    ),
    "kinematic": Experiment(
        "Fig. 18",
        "is a plan from kinematics alone as steady as ours?",
        "beetle",
        kinematic,
        figures.kinematic_figure,
    ),
    "failure": Experiment(
        "failure case",
        "does another footfall repair the trot of the monster of twice the mass?",
        "monster",
        failure,
        figures.failure_figure,
    ),
}


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs an experiment; prints its table and one JSON object, and returns it."""
    parser = _parser()
    args = parser.parse_args(argv)
    with one_line_errors(args.name):
        facts = _run(args)
    return parser.report(facts)


def _parser() -> Measurement:
    listed = "\n".join(
        f"    {name:14} {one.figure}: {one.question}"
        for name, one in EXPERIMENTS.items()
    )
    parser = Measurement(f"{__doc__}\n{listed}", quick="all motions cut to a few steps")
    parser.add_argument(
        "name",
        nargs="?",
        default="qpcc",
        choices=EXPERIMENTS,
        help="one of them (qpcc)",
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("."), help="folder of the results"
    )
    parser.add_argument("--model", help="robot, in place of the experiment's")
    parser.add_argument(
        "--reuse", action="store_true", help="take results that are in the folder"
    )
    parser.add_argument(
        "--time-limit", type=float, help="time limit of each plan and run [s]"
    )
    parser.add_argument(
        "--modulus",
        type=float,
        default=1.0,
        help="modulus of the skin as a share of the model's (default 1)",
    )
    parser.add_argument("--effort", type=float, help="torque limit of all motors [N m]")
    return parser


def _run(args: argparse.Namespace) -> dict:
    name, one = args.name, EXPERIMENTS[args.name]
    args.output.mkdir(parents=True, exist_ok=True)
    model = own = args.model or one.model
    if args.modulus != 1.0 or args.effort is not None:
        changed = args.output / f"{Path(model).stem}_{args.modulus:g}_{args.effort}"
        model = str(variant(model, changed, modulus=args.modulus, effort=args.effort))
    with progress_bar(name) as progress:
        outcome = one.compute(
            Setting(
                model,
                args.output,
                quick=args.quick,
                reuse=args.reuse,
                time_limit=args.time_limit,
                progress=progress,
            )
        )
    options = [
        ("modulus of the skin, share of the model's", "1", args.modulus, 1.0),
        ("limit of all motors [N m]", "not given (1.96 the usual)", args.effort, None),
    ]
    for what, paper, value, default in options:
        if value != default:
            why = "requested on the command line"
            outcome.rows.insert(0, row(what, paper, f"{value:g}", why))
    picture = save(one.draw(outcome), args.output / f"quad_{name}.png")
    show_table(outcome)
    print(picture)
    facts = {"experiment": name, "model": own, "quick": args.quick}
    facts |= {"modulus_share": args.modulus, "effort_N_m": args.effort}
    facts |= outcome.facts
    return facts


def show_table(outcome: Outcome) -> None:
    """Prints what the paper states, what came out here, and why they differ."""
    table = Table(title=outcome.title)
    for column in ("", "paper", "here", "why different"):
        table.add_column(column, overflow="fold")
    for line in outcome.rows:
        table.add_row(line["what"], line["paper"], line["here"], line["why"])
    Console().print(table)


if __name__ == "__main__":
    main()
