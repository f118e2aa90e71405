"""The four ways of docs/house.md: what a reader enters, from a command to its result.

A way is read, not traced: it holds what decides what comes next or does the work of a
stage, and not what these call inside. A class counts once, with its bases in the same
file; a method counts where the way goes through it. `main`, which every command passes,
counts in the first way.
"""

from __future__ import annotations

import ast
import re
import sys
from functools import cache

import pytest

from drakebots import cli
from tests.helpers.scripts import ROOT

WAYS = {
    "simulate hamr": """
        cli/__init__: main
        cli/task: task_variant
        cli/options: field_values
        robots/hamr/simulate: Simulation
        formats/load: load
        robots/hamr/simulate: simulate build
        multibody/plant: build_robot
        robots/hamr/simulate: GaitSource
        robots/hamr/simulate: add_drive
        robots/hamr/model/piezo: PiezoDrive Encoder
        robots/hamr/simulate: _Run
        multibody/simulate: DiagramRun.simulate advance
        multibody/judging: SimulatedRun.result
        robots/hamr/simulate: run_dataset
        robots/hamr/metrics: gait_metrics
        multibody/judging: judged
        cli/options: finish
    """,
    "plan my_robot.urdf --forward 0.3": """
        cli/plan: plan_motion locomotion_problem
        trajopt/locomotion/problem: LocomotionProblem Walk
        formats/load: load
        trajopt/locomotion/plan: plan_locomotion _standing
        trajopt/locomotion/standing: stand Standing
        trajopt/contact_implicit/system: ContactSystem
        trajopt/locomotion/gait: plan_gait Gait
        trajopt/locomotion/problem: targets
        trajopt/contact_implicit/schedule: Schedule
        trajopt/solvers/solve: planning
        trajopt/locomotion/attempts: by_gait
        trajopt/locomotion/gait: gait_program
        trajopt/locomotion/program: mechanics
        trajopt/contact_implicit/schedule: ScheduledBuilder
        trajopt/locomotion/program: add_aims add_costs
        trajopt/locomotion/gait: kinematic_guess
        trajopt/solvers/solve: solve
        trajopt/solvers/ipopt_exact: solve_exact
        trajopt/locomotion/attempts: gait_attempt
        trajopt/locomotion/program: locomotion_program
        trajopt/contact_implicit/schedule: with_free_contacts
        trajopt/locomotion/attempts: attempt_of judged
        trajopt/contact_implicit/result: audit
        trajopt/locomotion/attempts: faults
        trajopt/locomotion/plan: _result
        trajopt/contact_implicit/result: plan_dataset plan_result
        cli/options: finish
    """,
    "track plan.nc": """
        cli/plan: _of_plans
        cli/task: kind_forms
        robots/registry: kinds
        cli/task: task_variant
        robots/legged/track: Tracking track _executed _Run
        robots/legged/reference: reference Reference
        control/rigid: SapPlant
        robots/legged/whole_body: WholeBody
        control/loop: ControlRun.simulate ControlRun.step
        robots/legged/whole_body: WholeBodyControl.inputs
        robots/legged/reference: Sample
        robots/legged/whole_body: WholeBodyControl.dynamics WholeBodyControl._down
        robots/legged/whole_body: WholeBodyControl._tasks WholeBodyControl._body_tasks
        robots/legged/whole_body: WholeBodyControl.displacement
        robots/legged/whole_body: WholeBodyControl._foot_task WholeBodyControl._solve
        multibody/judging: SimulatedRun.result
        robots/legged/track: track_metrics
        multibody/judging: judged
        cli/options: finish
    """,
    "design beetle": """
        cli/design: design_skinned problem_of
        design/table1: table1_problem table1_template
        design/problem: DesignProblem
        design/pipeline: design_robot _designed
        design/geometry/distance: DistanceGrid.from_implicit
        design/skin/fold: joint_folds
        design/skin/hollow: fold_and_hollow
        design/skin/shell: shell_mesh
        design/skin/hollow: with_regions
        design/bracing/plates: with_plates
        design/bracing/glue: glue_by_link
        design/skin/hollow: region_materials fold_moduli
        design/bracing/trim: trim_to_skin through_skin
        design/problem: Design write_design
    """,
}


NAMED_IN = {
    "task_variant": "cli/task",
    "SapPlant": "control/rigid",
    "Simulation": "robots/hamr/register",
    "simulate": "robots/hamr/register",
    "Tracking": "robots/legged/register",
    "track": "robots/legged/register",
}
"""Files by whose tables and defaults a way comes to a name."""


def steps(way: str) -> list[tuple[str, str]]:
    """Files and names of a way, in their order."""
    rows = [row.split(":") for row in WAYS[way].strip().splitlines()]
    return [(file.strip(), name) for file, names in rows for name in names.split()]


@cache
def read(file: str, but: str = "") -> str:
    """A file's text without imports, and without one of its functions or classes.

    Raises:
        StopIteration: where the file does not have it.
    """
    text = (ROOT / "drakebots" / f"{file}.py").read_text()
    body = tree = ast.parse(text)
    out = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    for part in filter(None, but.split(".")):
        body = next(n for n in body.body if getattr(n, "name", "") == part)
    out += [body] * (body is not tree)
    gone = {k for node in out for k in range(node.lineno, node.end_lineno + 1)}
    lines = enumerate(text.splitlines(), 1)
    return "\n".join(line for k, line in lines if k not in gone)


@pytest.mark.parametrize("way", WAYS)
def test_every_step_of_a_way_is_there_and_named_on_it(way):
    """By a function that the reader has entered, or one beside it that passes on."""
    entered: list[str] = []
    for file, name in steps(way):
        short = name.rpartition(".")[2]
        own = read(file, but=name)
        places = [own if f == file else read(f) for f in entered]
        if table := NAMED_IN.get(name):
            places.append(own if table == file else read(table))
        found = any(re.search(rf"\b{short}\b", place) for place in places)
        assert found or not entered, f"{file}:{name} comes from nowhere"
        entered += [file] * (file not in entered)


@pytest.mark.parametrize("way", WAYS)
def test_the_page_counts_the_ways_as_they_are(way):
    page = (ROOT / "docs" / "house.md").read_text()
    (row,) = [line for line in page.splitlines() if line.startswith(f"| `{way}` |")]
    found = steps(way)
    assert len(set(found)) == len(found)
    said = f"{len(found)} / {len({file for file, _ in found})}"
    counted = row.split("|")[2].split(",")[0].strip()
    assert counted == said


@pytest.mark.long
@pytest.mark.parametrize("way", ["simulate hamr", "plan my_robot.urdf --forward 0.3"])
def test_a_run_enters_every_step(way, tmp_path, monkeypatch):
    """Of a class any method."""
    entered: set[tuple[str, str]] = set()
    package = f"{ROOT / 'drakebots'}/"

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(package):
            file = frame.f_code.co_filename.removeprefix(package)
            name = frame.f_code.co_qualname
            entered.update((file[:-3], part) for part in (name, name.split(".")[0]))

    monkeypatch.chdir(ROOT / "examples")
    options = ["--cycles", "1"] if way == "simulate hamr" else []
    sys.setprofile(note)
    try:
        code = cli.main([*way.split(), *options, "-o", str(tmp_path / "out.nc")])
    finally:
        sys.setprofile(None)
    missed = set(steps(way)) - entered
    assert code == 0 and not missed
