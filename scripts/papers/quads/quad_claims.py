"""Three claims of the paper over variants of a robot, by experiment design.

python scripts/papers/quads/quad_claims.py -o out/claims
python scripts/papers/quads/quad_claims.py -o out/claims --rows today --cycles 3
python scripts/papers/quads/quad_claims.py --quick
python scripts/papers/quads/quad_claims.py -o out/beetle --model beetle --motion walk \
    --claims c

(a) a motion planned without the skin, or without its deformation, fails on the robot;
(b) the COP leaves its polygon before the plan knows the deformation, and not after it;
(c) a plan from kinematics alone is shaky and steps back.

Six things that might bring them about are varied (FACTORS) in eight runs of a 2^(6-3)
design, of which one is today's robot, and in the corner where all are on. Rows that are
in the folder are taken from it. Prints a table in Markdown, the main effects and one
JSON object; writes quad_claims.png.

JSON: model, motion, cycles, rows, effects.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from quad_kinematic import kinematic_result, plan_kinematic, step_back
from quad_setting import STEPS, around_lift_off
from quad_trot import KNOT, TROT, margin_facts, needed_cops
from quad_variant import unbraced_share, variant
from scipy.ndimage import minimum_filter1d

from drakebots.cli.output import one_line_errors
from drakebots.core.convert import plain
from drakebots.core.errors import DrakebotsError
from drakebots.core.files import replacing
from drakebots.plots import save
from drakebots.results import Result, load_result
from drakebots.robots import quads
from drakebots.robots.quads.motion import MotionInput
from drakebots.robots.quads.robot import PlannedRobot, load_planned
from drakebots.robots.quads.space_time import plan_space_time

sys.path.append(str(Path(__file__).parents[2] / "bench"))
from measurement import Measurement

FACTORS = {
    "flesh": "the trunk's skin is glued below UNBRACED only, and 0.1 MPa far from glue",
    "soles": "soles of half the length and width",
    "flight": "a trot with a duty factor of 0.46, not 0.54; nothing in a walk",
    "straight": "the requested COM goes straight on, not by its ZMP",
    "servo": "servos of 13 N m/rad, not 40",
    "plain": "servos get the planned angles as they are, not moved by their sag",
}

UNBRACED = {"monster": 0.34, "beetle": 0.24}
"""Height above which the trunk's skin is not glued [m]; so 35 and 31 % of the skin's
mass are further than 50 mm from glue (13 and 15 % before)."""

PLAYS = {
    "ours": "planned with the skin",
    "mass": "with its mass only",
    "bare": "without skin",
    "kinematic": "from kinematics alone",
}
"""Plans by name; all are played with the skin."""

MOTIONS = {"trot": TROT, "walk": {"motion": "walk"}}


def design() -> dict[str, tuple[str, ...]]:
    """Names of the rows, and which factors are on: D = -AB, E = -AC, F = -BC."""
    rows = {}
    for a, b, c in itertools.product((-1, 1), repeat=3):
        levels = (a, b, c, -a * b, -a * c, -b * c)
        on = tuple(name for name, level in zip(FACTORS, levels) if level > 0)
        rows["+".join(on) or "today"] = on
    return rows | {"all": tuple(FACTORS)}


class Row:
    """One robot and motion of the design.

    Args:
        model: name of the robot.
        motion: one of MOTIONS.
        on: the factors that are on.
        folder: folder of its robot, plans and runs.
        cycles: number of cycles to play.
        steps: how many steps around a lift-off are the whole motion; all if None.
    """

    def __init__(
        self,
        model: str,
        motion: str,
        on: Sequence[str],
        folder: Path,
        cycles: int = 1,
        steps: int | None = None,
    ):
        self.model, self.motion, self.on, self.folder = model, motion, on, folder
        self.cycles, self.steps = cycles, steps

    @cached_property
    def robot(self) -> PlannedRobot:
        path = variant(
            self.model,
            self.folder / "robot",
            soles=0.5 if "soles" in self.on else 1.0,
            servo=13.0 if "servo" in self.on else None,
            unbraced=UNBRACED[self.model] if "flesh" in self.on else None,
        )
        return load_planned(path)

    @cached_property
    def problem(self) -> quads.Problem:
        """The problem of the plan that knows the skin."""
        options = dict(MOTIONS[self.motion])
        if "flight" in self.on and self.motion == "trot":
            options["more"] = {"duty": 0.46}
        found = quads.Problem(**options | {"model": self.robot})
        if "straight" in self.on:
            found = found.following(straight_com(found.requested))
        if self.steps is not None:
            found = found.following(around_lift_off(found.requested, self.steps))
        return found

    def plan(self, name: str) -> Result:
        """A plan of PLAYS, taken from the folder if it is there."""
        path = self.folder / f"{name}.nc"
        if path.is_file():
            return load_result(path)
        if name == "ours":
            plan = quads.plan(self.problem)
        elif name == "kinematic":
            solved = plan_kinematic(self.problem.program())
            plan = kinematic_result(self.robot, solved)
        else:
            options = replace(self.problem.alternation, ignore_skin=name == "bare")
            bare = replace(self.problem, alternation=options)
            plan = plan_space_time(bare.program(stiff=False)).result()
        plan.save(path)
        return plan

    def play(self, name: str) -> dict[str, object]:
        """Replay of a plan on the robot with its skin."""
        try:
            plan = self.plan(name)
        except DrakebotsError as error:
            return {"refused": str(error)}
        out = {"plan": str(plan.verdict), "message": plan.message}
        whole = len(plan.data.time) == len(self.problem.requested)
        if name == "ours":
            out |= {k: plan.metrics[k] for k in ("iterations", "difference")}
            out["cop_dropped"] = plan.metrics["stages"][-1]["frames_cop_dropped"]
        if not whole:
            return out
        path = self.folder / f"{name}_played{_times(self.cycles)}.nc"
        if path.is_file():
            run = load_result(path)
        else:
            if self.cycles > 1 and "period" not in plan.metrics:
                period = {"period": self.problem.requested.period or "none"}
                plan = replace(plan, metrics={**plan.metrics, **period})
            problem = quads.Tracking(
                plan,
                model=str(self.robot.skinned.model.path),
                plain_angles="plain" in self.on,
                cycles=self.cycles,
            )
            try:
                run = quads.track(problem)
            except DrakebotsError as error:
                return out | {"refused": str(error)}
            run.save(path)
        m = run.metrics
        return out | {
            "fell": run.message if "fell" in run.message else "",
            "share": m["distance_m"] / m["planned_distance_m"],
            "roll_deg": m["roll_range_deg"],
            "planned_roll_deg": m["planned_roll_range_deg"],
            "step_back_mm": 1e3 * step_back(run),
            "least_cop_margin_mm": 1e3 * m["least_cop_margin_m"],
        }

    def cop(self) -> dict[str, object]:
        """Margins of the COP that the first and the last motion need, away from steps
        in flight, and how far the deformation moves the first one's COP."""
        plan = self.plan("ours")
        if "stage_contact" not in plan.data:
            return {}
        _, cops, margins = needed_cops(self.robot, plan)
        # Forces are averaged over a knot; by flight they are of flight in part.
        down = plan.data.stage_contact.values.any(axis=1)
        near = minimum_filter1d(down, KNOT, mode="nearest")
        out: dict[str, object] = {
            label: margin_facts(np.where(near, m, np.nan))
            for label, m in margins.items()
        }
        moved = 1e3 * np.linalg.norm(cops["before"] - cops["rigid"], axis=1)[near]
        out |= {"moved_mm": np.median(moved), "moved_most_mm": moved.max()}
        if not near.all():
            by = {k: 1e3 * np.nanmin(m[~near]) for k, m in margins.items()}
            out["by_flight_mm"] = by
        return out

    def facts(self, claims: str) -> dict[str, object]:
        """All numbers of the row."""
        names = ["ours", *(["mass", "bare"] if "a" in claims else [])]
        names += ["kinematic"] if "c" in claims else []
        skinned = self.robot.skinned
        out: dict[str, object] = {
            "on": list(self.on),
            "mass_kg": self.robot.mass,
            "unbraced_share": unbraced_share(skinned),
        }
        out |= {name: self.play(name) for name in names}
        if "b" in claims and "refused" not in out["ours"]:
            out["cop"] = self.cop()
        return out


def _times(cycles: int) -> str:
    """Ending of the names of files of more than one cycle."""
    return "" if cycles == 1 else f"_{cycles}"


def straight_com(motion: MotionInput) -> MotionInput:
    """The motion with a COM that goes from its start to its end at constant speed."""
    share = np.linspace(0, 1, len(motion))[:, None]
    com = motion.com[0] + share * (motion.com[-1] - motion.com[0])
    return replace(motion, com=com)


# --- what came of it ---------------------------------------------------------

HEAD = {
    "row": "on",
    "far": "skin far from glue",
    "ours": "planned with the skin",
    "mass": "with its mass only",
    "bare": "without skin",
    "kinematic": "kinematic",
    "cop": "COP rigid, before, after; moved [mm]",
    "roll": "roll, ours, kinematic [degrees]",
    "back": "step back, ours, kinematic [mm]",
}


def table(rows: Mapping[str, Mapping]) -> list[str]:
    """The rows in Markdown; shares are distances over the planned ones."""
    lines = [f"| {' | '.join(HEAD.values())} |", "| --- " * len(HEAD) + "|"]
    for name, row in rows.items():
        plays = [_word(row.get(play, {})) for play in PLAYS]
        cop = row.get("cop", {})
        margins = [
            cop.get(k, {}).get("least_margin_mm") for k in ("rigid", "before", "after")
        ] + [cop.get("moved_mm")]
        words = [_number(m, 1) for m in margins]
        pairs = [
            f"{', '.join(words[:3])}; {words[3]}",
            *(
                ", ".join(
                    _number(row.get(play, {}).get(key), digits)
                    for play in ("ours", "kinematic")
                )
                for key, digits in (("roll_deg", 1), ("step_back_mm", 1))
            ),
        ]
        cells = [name, f"{100 * row['unbraced_share']:.0f} %", *plays, *pairs]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _word(play: Mapping) -> str:
    """The share of a play, or why there is none."""
    if not play:
        return "-"
    if "share" not in play:
        return "refused" if "refused" in play else "no plan"
    late = " (failed)" if play["plan"] != "success" else ""
    if play["fell"]:
        return f"**falls**{play['fell'].rpartition(' at')[2]}{late}"
    return f"{play['share']:.3f}{late}"


RESPONSES = {
    "share, ours": lambda r: _stood(r["ours"]),
    "share, mass only": lambda r: _stood(r["mass"]),
    "share, without skin": lambda r: _stood(r["bare"]),
    "share, kinematic": lambda r: _stood(r["kinematic"]),
    "COP before [mm]": lambda r: r["cop"]["before"]["least_margin_mm"],
    "COP moved by the skin [mm]": lambda r: r["cop"]["moved_mm"],
    "COP after [mm]": lambda r: r["cop"]["after"]["least_margin_mm"],
}


def _stood(play: Mapping) -> float:
    """Share of the distance; none for a fall."""
    return 0.0 if play["fell"] else play["share"]


def effects(rows: Mapping[str, Mapping]) -> dict[str, dict[str, float]]:
    """Means with a factor on less those with it off, over rows of the design that have
    the number; no effect where a level has none."""
    found: dict[str, dict[str, float]] = {}
    for response, of in RESPONSES.items():
        values = {}
        for name, row in rows.items():
            try:
                values[name] = of(row) if name != "all" else None
            except KeyError:
                continue
        for factor in FACTORS:
            parts = [
                [v for n, v in values.items() if v is not None and (factor in n) == on]
                for on in (True, False)
            ]
            if all(parts):
                effect = float(np.mean(parts[0]) - np.mean(parts[1]))
                found.setdefault(response, {})[factor] = effect
    return found


def draw(rows: Mapping[str, Mapping]) -> Figure:
    """Shares, COP margins and ranges of roll: a line a row."""
    figure = Figure(figsize=(11, 1.6 + 0.5 * len(rows)), layout="constrained")
    share, cop, roll = figure.subplots(1, 3, sharey=True)
    at = np.arange(len(rows))
    colours = dict(zip(PLAYS, ("#2a9d3f", "#2b6cb0", "#d97706", "#c1121f")))
    for k, (play, text) in enumerate(PLAYS.items()):
        y = at + 0.16 * (k - 1.5)
        plays = [row.get(play, {}) for row in rows.values()]
        for axes, key in ((share, "share"), (roll, "roll_deg")):
            x = np.array([one.get(key, np.nan) for one in plays], float)
            fell = np.array([bool(one.get("fell")) for one in plays])
            style = {"color": colours[play], "linestyle": "none", "markersize": 6}
            axes.plot(x[~fell], y[~fell], marker="o", label=text, **style)
            axes.plot(x[fell], y[fell], marker="x", markeredgewidth=2, **style)
    for label, marker, text in (
        ("rigid", "|", "first motion, rigid skin"),
        ("before", "x", "first motion"),
        ("after", "o", "last motion"),
    ):
        x = [
            row.get("cop", {}).get(label, {}).get("least_margin_mm", np.nan)
            for row in rows.values()
        ]
        cop.plot(x, at, marker, color="#444444", fillstyle="none", label=text)
    cop.axvline(0, color="#c1121f", linewidth=1)
    share.axvline(1, color="#bbbbbb", linewidth=1, zorder=0)
    share.set_yticks(at, [name.replace("+", ", ") for name in rows])
    share.invert_yaxis()
    for axes, text in (
        (share, "distance over the planned one\n(x: falls)"),
        (cop, "least COP margin [mm]"),
        (roll, "range of roll [degrees]"),
    ):
        axes.set_xlabel(text)
        axes.grid(axis="y", color="#eeeeee")
    lines = [*share.get_legend_handles_labels()[0], *cop.get_legend_handles_labels()[0]]
    figure.legend(handles=lines, loc="outside lower center", ncols=4, frameon=False)
    return figure


def main(argv: Sequence[str] | None = None) -> dict:
    """Runs the rows; prints the table and one JSON object, and returns it."""
    listed = "\n".join(f"    {name:10} {text}" for name, text in FACTORS.items())
    parser = Measurement(
        f"{__doc__}\n{listed}", quick="claim b of the beetle as it is, in a few steps"
    )
    rows = design()
    parser.add_argument("-o", "--output", type=Path, default=Path("out/claims"))
    parser.add_argument("--model", choices=UNBRACED, default="monster")
    parser.add_argument("--motion", choices=MOTIONS, default="trot")
    parser.add_argument("--rows", nargs="+", choices=rows, default=list(rows))
    parser.add_argument("--claims", default="abc", help="letters of a, b, c")
    parser.add_argument("--cycles", type=int, default=1, help="cycles to play")
    args = parser.parse_args(argv)
    steps = None
    if args.quick:
        args.model, args.motion, args.rows, args.claims = (
            "beetle",
            "walk",
            ["today"],
            "b",
        )
        args.output, steps = args.output / "quick", STEPS
    found: dict[str, dict] = {}
    for name in args.rows:
        folder = args.output / name
        which = "" if args.claims == "abc" else f"_{args.claims}"
        kept = folder / f"row{which}{_times(args.cycles)}.json"
        if not kept.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            row = Row(args.model, args.motion, rows[name], folder, args.cycles, steps)
            facts = row.facts(args.claims)
            with replacing(kept) as part:
                part.write_text(json.dumps(plain(facts)))
        found[name] = json.loads(kept.read_text())
        print(table({name: found[name]})[-1], flush=True)
    print("", *table(found), "", sep="\n")
    moved = effects(found)
    for response, by_factor in moved.items():
        words = ", ".join(f"{k} {v:+.3g}" for k, v in by_factor.items())
        print(f"effects on {response}: {words}")
    picture = args.output / f"quad_claims{_times(args.cycles)}.png"
    print(save(draw(found), picture))
    result = {"model": args.model, "motion": args.motion, "cycles": args.cycles}
    result["rows"] = found
    result["effects"] = moved
    return parser.report(result)


if __name__ == "__main__":
    with one_line_errors("quad_claims"):
        main()
