"""The commands that plan, execute and export: parsing only."""

from __future__ import annotations

import argparse
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from drakebots.cli.commands import (
    Command,
    exit_code,
    load_model,
    model_argument,
    output_arguments,
    write_outputs,
)
from drakebots.cli.output import print_json, print_report, progress_bar, report_of
from drakebots.errors import InvalidInput
from drakebots.models import load
from drakebots.plots_plan import plot_convergence
from drakebots.results import Result, check_output, load_result
from drakebots.robots.hamr.gait_program import GaitPlan
from drakebots.robots.hamr.jump_program import JumpPlan
from drakebots.robots.hamr.plan import plan_gait, plan_jump, plan_reference
from drakebots.robots.hamr.tracking import Tracking, track
from drakebots.robots.hamr.voltages import export_voltages
from drakebots.trajopt.locomotion import LocomotionPlan, plan_locomotion


@contextmanager
def iterations(label: str):
    """Iteration, objective and violation on stderr; silent without a terminal."""
    console = Console(stderr=True)
    text = "{task.fields[state]}"
    columns = (SpinnerColumn(), TextColumn(label), TextColumn(text))
    with Progress(
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task(label, total=None, state="")

        def show(number: int, objective: float, violation: float) -> None:
            state = f"{number}: cost {objective:.4g}, violation {violation:.1e}"
            bar.update(task, state=state)

        yield show


# --- plan -------------------------------------------------------------------

_HAMR_ONLY = ("gait", "frequency", "surface", "jump", "stride", "rise", "symmetric")
_OTHER_ONLY = ("forward", "hop", "turn", "duration")


def _plan_arguments(parser: argparse.ArgumentParser) -> None:
    model_argument(parser)
    parser.add_argument("--feet", metavar="A,B", help="bodies to use as feet")
    hamr = parser.add_argument_group("HAMR")
    hamr.add_argument("--gait", help="whose waveform starts the search (default trot)")
    hamr.add_argument("--frequency", type=float, help="of the stride [Hz] (default 10)")
    hamr.add_argument("--surface", help="teflon, card or sandpaper (default card)")
    hamr.add_argument("--stride", type=float, help="goal of a cycle [m] (default 0.01)")
    hamr.add_argument(
        "--symmetric",
        action="store_const",
        const=True,
        help="right legs mirror the left ones",
    )
    hamr.add_argument(
        "--jump", action="store_const", const=True, help="plan a jump instead"
    )
    hamr.add_argument("--rise", type=float, help="of the jump [m] (default 0.012)")
    other = parser.add_argument_group("other models")
    other.add_argument("--forward", type=float, help="distance to walk [m]")
    other.add_argument("--hop", type=float, help="height to hop [m]")
    other.add_argument("--turn", type=float, help="angle to turn [rad]")
    other.add_argument("--duration", type=float, help="of the motion [s]")
    both = parser.add_argument_group("any model")
    both.add_argument("--friction", type=float, help="coefficient of the ground")
    both.add_argument("--knots", type=int, help="of the trajectory")
    both.add_argument("--time-limit", type=float, help="of wall time [s]")
    both.add_argument("--checkpoint", type=Path, help="keeps the best iterate (.npz)")
    both.add_argument("--resume", type=Path, help="checkpoint to go on from")
    output_arguments(parser)
    parser.add_argument(
        "--convergence", type=Path, help="also the solver's progress (.png)"
    )


def _given(args, names) -> dict:
    found = {name: getattr(args, name) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _refuse(args, names, why: str) -> None:
    for name in names:
        if getattr(args, name) is not None:
            raise InvalidInput(
                f"--{name.replace('_', '-')} does not apply to {why}; leave it out"
            )


def _plan(args: argparse.Namespace) -> int:
    for path in (args.output, args.csv, args.html, args.plot, args.convergence):
        if path is not None:
            check_output(path)
    if args.checkpoint is not None:
        check_output(args.checkpoint)
    to = _given(args, ("time_limit", "checkpoint", "resume"))
    common = _given(args, ("friction", "knots"))
    if args.model == "hamr":
        _refuse(args, _OTHER_ONLY, "hamr")
        result, model = _plan_hamr(args, common, to), load("hamr")
    else:
        _refuse(args, _HAMR_ONLY, args.model)
        model = load_model(args)
        problem = locomotion_plan(args, common)
        with iterations(model.name) as progress:
            result = plan_locomotion(model, problem, progress=progress, **to)
    written = write_outputs(args, result, model)
    if args.convergence is not None:
        written.append(plot_convergence(result, args.convergence))
    return _finish(args, result, written)


def _plan_hamr(args, common, to) -> Result:
    if args.jump:
        _refuse(args, ("gait", "frequency", "stride", "symmetric"), "a jump")
        problem = JumpPlan(**common, **_given(args, ("surface", "rise")))
        with iterations(f"hamr {problem.name}") as progress:
            return plan_jump(problem, progress=progress, **to)
    _refuse(args, ("rise",), "a gait")
    chosen = _given(args, ("gait", "frequency", "surface", "stride", "symmetric"))
    problem = GaitPlan(**common, **chosen)
    with iterations(f"hamr {problem.name}") as progress:
        return plan_gait(problem, progress=progress, **to)


def locomotion_plan(args, common) -> LocomotionPlan:
    """The plan that the options ask for.

    Raises:
        InvalidInput: when they ask for nothing, or for several things.
    """
    wishes = _given(args, ("forward", "hop", "turn"))
    if not wishes:
        raise InvalidInput("say what to plan: --forward, --hop or --turn")
    if len(wishes) > 1:
        raise InvalidInput(f"choose one of {', '.join('--' + w for w in wishes)}")
    kind = {"forward": "walk", "hop": "hop", "turn": "turn"}[next(iter(wishes))]
    plan = LocomotionPlan(kind=kind, **wishes)
    return replace(plan, **common, **_given(args, ("duration",)))


def _finish(args, result: Result, written: list[Path]) -> int:
    print_report(result)
    for path in written:
        print(path)
    if args.json:
        print_json(report_of(result) | {"files": [str(path) for path in written]})
    return exit_code(result)


# --- track ------------------------------------------------------------------


def _track_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", help="a plan of hamr (.nc)")
    defaults = Tracking.__dataclass_fields__
    for name, kind, text in (
        ("cycles", int, "to execute"),
        ("contact", str, "sap or stepping"),
        ("kp", float, "feedback of leg position [V/m]"),
        ("kd", float, "feedback of leg velocity [V s/m]"),
        ("kf", float, "share of the planned voltages"),
        ("friction_scale", float, "of the plan's coefficient"),
        ("stiffness_scale", float, "of the flexures"),
        ("serial_stiffness", float, "of a twist in series with the legs [N m/rad]"),
        ("mocap_noise", float, "standard deviation [m]"),
        ("encoder_noise", float, "standard deviation [A]"),
        ("seed", int, "of the noise"),
        ("time_step", float, "of the simulation [s]"),
        ("time_limit", float, "of wall time [s]"),
    ):
        default = defaults[name].default
        shown = "" if default is None else f" (default {default})"
        parser.add_argument(
            "--" + name.replace("_", "-"), type=kind, default=None, help=text + shown
        )
    output_arguments(parser)


def _track(args: argparse.Namespace) -> int:
    for path in (args.output, args.csv, args.html, args.plot):
        if path is not None:
            check_output(path)
    names = [n for n in Tracking.__dataclass_fields__ if hasattr(args, n)]
    reference = plan_reference(load_result(args.plan))
    problem = Tracking(reference, **_given(args, names))
    with progress_bar(f"track {reference.name}") as progress:
        result = track(problem, progress=progress)
    written = write_outputs(args, result, load("hamr"))
    return _finish(args, result, written)


# --- export -----------------------------------------------------------------


def _export_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("plan", help="a plan or run of hamr (.nc)")
    parser.add_argument(
        "--voltages", type=Path, required=True, help="waveforms as a table (.csv)"
    )
    parser.add_argument("--rate", type=float, default=2500.0, help="samples [Hz]")
    parser.add_argument("--cycles", type=int, default=1, help="of a gait")
    parser.add_argument("--ramp", type=float, default=0.0, help="first cycles fade in")


def _export(args: argparse.Namespace) -> int:
    check_output(args.voltages)
    reference = plan_reference(load_result(args.plan))
    path = export_voltages(
        reference, args.voltages, rate=args.rate, cycles=args.cycles, ramp=args.ramp
    )
    print(path)
    if args.json:
        print_json({"voltages": str(path), "rate_hz": args.rate})
    return 0


PLAN_COMMANDS = (
    Command(
        "plan",
        "plan a motion by contact-implicit optimization",
        "drakebots plan hamr --gait trot --frequency 10 --surface card -o plan.nc",
        _plan_arguments,
        _plan,
    ),
    Command(
        "track",
        "execute a plan of HAMR under its estimator and controller",
        "drakebots track plan.nc --cycles 15 -o run.nc",
        _track_arguments,
        _track,
    ),
    Command(
        "export",
        "write a plan's voltages for a real drive",
        "drakebots export plan.nc --voltages v.csv",
        _export_arguments,
        _export,
    ),
)
