"""Inputs that are files: each family damages one format and gives it to commands.

Sound files are the repository's models and examples, and results that
:func:`make_results` computes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import yaml

from drakebots import sweeps
from drakebots.results import Result
from drakebots.robots import legged, stored_plan, voxels
from fuzz.children import Case, Family
from fuzz.mutate import (
    edited_bytes,
    edited_json,
    edited_lines,
    edited_number,
    edited_stl,
    edited_table,
    edited_tree,
    edited_vtk,
    edited_vtu,
    edited_xml,
    odd_value,
)

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"

MJCF = """<mujoco model="hopper"><compiler angle="degree"/>
<asset><mesh name="m" file="m.obj" scale="0.1 0.1 0.1"/></asset>
<default><geom friction="0.7 0.1 0.1"/><joint damping="0.1"/></default>
<worldbody><geom type="plane" size="1 1 0.1"/>
<body name="trunk" pos="0 0 1"><freejoint/>
<geom type="box" size="0.2 0.1 0.1" mass="2"/>
<body name="leg" pos="0 0 -0.1"><joint name="hip" axis="0 1 0" range="-90 90"/>
<geom type="capsule" fromto="0 0 0 0 0 -0.3" size="0.02" mass="0.2"/>
<geom type="mesh" mesh="m"/>
<body name="foot" pos="0 0 -0.3"><joint name="knee" axis="0 1 0"/>
<geom type="sphere" size="0.03" mass="0.1"/></body></body></body></worldbody>
<equality><connect body1="foot" body2="trunk" anchor="0 0 0" active="false"/>
</equality><actuator><motor joint="hip" ctrlrange="-5 5"/>
<position joint="knee" kp="10"/></actuator>
<keyframe><key qpos="0 0 1 1 0 0 0 0.1 -0.2"/></keyframe></mujoco>"""

VXA = """<VXA Version="1.0"><VXC><Lattice><Lattice_Dim>0.0762</Lattice_Dim>
<X_Dim_Adj>1</X_Dim_Adj><Y_Dim_Adj>1</Y_Dim_Adj><Z_Dim_Adj>1</Z_Dim_Adj></Lattice>
<Structure Compression="ASCII_READABLE"><X_Voxels>2</X_Voxels><Y_Voxels>2</Y_Voxels>
<Z_Voxels>2</Z_Voxels><Data><Layer>1111</Layer><Layer>1111</Layer></Data>
</Structure></VXC></VXA>"""

OBJ = """mtllib m.mtl
o box
v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0 0 1\nv 1 0 1\nv 1 1 1\nv 0 1 1
vt 0 0\nvn 0 0 1
usemtl red
f 1//1 4//1 3//1\nf 1 3 2\nf 5 6 7 8\nf 1 2 6 5\nf 2 3 7 6\nf 3 4 8 7\nf 4 1 5 8
"""
MTL = "newmtl red\nKd 1 0 0\nmap_Kd m.png\n"

WITH_MESH = """<robot name="r"><link name="base"><inertial><mass value="1"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><geometry><mesh filename="{0}"/></geometry></visual>
<collision><geometry><mesh filename="{0}" scale="0.1 0.1 0.1"/></geometry></collision>
</link></robot>"""


@cache
def _text(*parts: str) -> str:
    return ROOT.joinpath(*parts).read_text()


@cache
def _bytes(*parts: str) -> bytes:
    return ROOT.joinpath(*parts).read_bytes()


class _Tagged(dict):
    """A mapping with a tag of Drake's: !Rpy {deg: [90, 0, 90]}."""

    tag = "!Rpy"


class _Loader(yaml.SafeLoader):
    pass


class _Dumper(yaml.SafeDumper):
    pass


_Loader.add_constructor(
    _Tagged.tag, lambda loader, node: _Tagged(loader.construct_mapping(node, True))
)
_Dumper.add_representer(
    _Tagged, lambda dumper, value: dumper.represent_mapping(_Tagged.tag, value)
)
# Two places that hold one list are written twice: readers refuse aliases.
_Dumper.ignore_aliases = lambda self, data: True  # type: ignore[method-assign]


def _edited_yaml(random: Random, text: str) -> bytes:
    if random.random() < 0.1:
        return edited_bytes(random, text.encode())
    if random.random() < 0.1:
        return edited_number(random, text).encode("utf-8", "replace")
    tree = edited_tree(random, yaml.load(text, Loader=_Loader))
    return yaml.dump(tree, Dumper=_Dumper).encode()


def _show(random: Random, name: str) -> tuple[str, ...]:
    return random.choice(
        (
            ("show", name),
            ("show", name, "--json"),
            ("show", name, "--strict"),
            ("view", name, "--html", "page.html"),
            ("export", name, "--mjcf", "out.xml", "--urdf", "out.urdf"),
            ("simulate", name, "--duration", "0.002", "-o", "run.nc"),
        )
    )


def _urdf(random: Random) -> Case:
    source = random.choice(("my_robot.urdf", "four_bar.urdf", "skeleton.urdf"))
    text = edited_xml(random, _text("examples", source), ("m.obj", "r.urdf"))
    return Case(_show(random, "r.urdf"), {"r.urdf": text, "m.obj": OBJ.encode()})


def _sdf(random: Random) -> Case:
    source = random.choice(("skinned_leg", "monopod", "brick", "minitaur"))
    text = _text("models", source, f"{source}.sdf")
    files = {"r.sdf": edited_xml(random, text, ("m.obj", "r.sdf"))}
    return Case(_show(random, "r.sdf"), files | {"m.obj": OBJ.encode()})


def _mjcf(random: Random) -> Case:
    text = edited_xml(random, MJCF, ("r.xml", "m.obj"))
    return Case(_show(random, "r.xml"), {"r.xml": text, "m.obj": OBJ.encode()})


def _directives(random: Random) -> Case:
    source = random.choice(("brick", "gecko", "monopod", "mini_cheetah", "hamr"))
    text = _text("models", source, "scene.dmd.yaml")
    return Case(_show(random, "r.dmd.yaml"), {"r.dmd.yaml": _edited_yaml(random, text)})


def _sidecar(random: Random) -> Case:
    source = random.choice(("monopod", "minitaur", "brick", "skinned_leg", "hamr"))
    files = {"r.sdf": _bytes("models", source, f"{source}.sdf")}
    side = _text("models", source, f"{source}.drakebots.yaml")
    files["r.drakebots.yaml"] = _edited_yaml(random, side)
    return Case(_show(random, "r.sdf"), files)


@cache
def _problem_fields(command: str, word: str) -> tuple[str, ...]:
    """The fields of the problem that a scenario of this command and robot has."""
    from drakebots.core.lazy import resolve
    from drakebots.robots import robots

    able = [r for r in robots().values() if getattr(r, command) is not None]
    named = [r for r in able if r.name != "any" and r.is_named(word)]
    robot = (named or [r for r in able if r.name == "any"])[0]
    problem = resolve(getattr(robot, command).problem)
    return tuple(field.name for field in fields(problem) if field.init)


def _scenario(random: Random) -> Case:
    command = random.choice(("simulate", "simulate", "plan"))
    name = {"simulate": "trot.yaml", "plan": "walk.yaml"}[command]
    tree = yaml.safe_load(_text("examples", name))
    robot = random.choice(("hamr", "gecko", "voxel", "skinned_leg", "my_robot.urdf"))
    if random.random() < 0.3:
        tree = {command: robot}
    names = _problem_fields(command, str(tree[command]))
    if random.random() < 0.6:
        likely = random.choice((0, 1, 2, -1, 0.5, 1e-9, 1e9, 3e-3, True, None, "x"))
        tree[random.choice(names)] = random.choice((odd_value(random), likely))
    tree = edited_tree(random, tree)
    # What is sound does not run for minutes.
    if isinstance(tree, dict) and random.random() < 0.9:
        tree |= {"time_limit": 0.3} if "time_limit" in names else {}
        tree |= {"knots": 5} if "knots" in names else {}
    files = {"s.yaml": yaml.dump(tree, Dumper=_Dumper).encode()}
    files["my_robot.urdf"] = _bytes("examples", "my_robot.urdf")
    return Case((command, "s.yaml", "-o", "run.nc"), files)


def _limbs(random: Random) -> Case:
    files = {"r.urdf": _bytes("examples", "my_robot.urdf")}
    files["limbs.yaml"] = _edited_yaml(random, _text("examples", "limbs.yaml"))
    return Case(("limbs", "r.urdf", "limbs.yaml", "-o", "soft.dmd.yaml"), files)


def _design(random: Random) -> Case:
    # A sound design takes half a minute, and is ended after its first stages.
    text = _text("examples", "design.yaml")
    command = ("design", "design.yaml", "-o", "out", "--no-pictures")
    if random.random() < 0.4:
        files = {"design.yaml": _edited_yaml(random, text)}
        files["dog.stl"] = _bytes("examples", "dog.stl")
        return Case((*command, "--time-limit", "2"), files, seconds=60)
    tree = yaml.safe_load(text) | {"surface": {"file": "m.obj", "unit": "m"}}
    if random.random() < 0.3:
        del tree["template"], tree["limits"]
    files = {"design.yaml": _edited_yaml(random, yaml.safe_dump(tree))}
    files["m.obj"] = (
        edited_lines(random, OBJ) if random.random() < 0.5 else OBJ.encode()
    )
    return Case((*command, "--time-limit", "10"), files, seconds=60)


def _skin(random: Random) -> Case:
    files = {"r.sdf": _bytes("models", "skinned_leg", "skinned_leg.sdf")}
    files["skinned_leg.vtu"] = _bytes("models", "skinned_leg", "skinned_leg.vtu")
    text = _text("models", "skinned_leg", "skinned_leg.skin.yaml")
    if random.random() < 0.3:
        text = text.replace("{}", "{kind: neo_hookean, youngs_modulus: 1.e+5}")
    files["r.skin.yaml"] = _edited_yaml(random, text)
    short = ("--duration", "0.002", "--time-limit", "2", "-o", "run.nc")
    command = random.choice((("show", "r.sdf"), ("simulate", "r.sdf", *short)))
    return Case(command, files, seconds=30)


def _mesh(random: Random) -> Case:
    """Tetrahedra of a skin."""
    ending = random.choice(("vtk", "vtk", "vtu"))
    if ending == "vtk":
        content = edited_vtk(random, _bytes("examples", "skin.vtk"))
    else:
        text = _text("models", "skinned_leg", "skinned_leg.vtu")
        content = edited_vtu(random, text)
    files = {"r.urdf": _bytes("examples", "skeleton.urdf"), f"s.{ending}": content}
    command = ("attach", "r.urdf", f"s.{ending}", "--glue", "radius=12mm")
    return Case(command, files, seconds=30)


def _surface(random: Random) -> Case:
    """Triangles of a visual or a collision geometry, and of a design."""
    if random.random() < 0.6:
        others = ("m.obj", "../secret", "/dev/zero", "m.mtl", "r.urdf")
        files = {"m.obj": edited_lines(random, OBJ, others)}
        files["m.mtl"] = edited_lines(random, MTL, others)
    else:
        files = {"m.stl": edited_stl(random, _bytes("examples", "dog.stl")[:50084])}
    mesh = next(iter(files))
    files["r.urdf"] = WITH_MESH.format(mesh).encode()
    command = random.choice(
        (("show", "r.urdf"), ("view", "r.urdf", "--html", "page.html"))
    )
    if random.random() < 0.2:

        def read() -> object:
            from drakebots.design.geometry import read_surface

            return read_surface(mesh)

        return Case((), files, read, seconds=30, label=f"read_surface {mesh}")
    return Case(command, files, seconds=30)


def _lattice(random: Random) -> Case:
    if random.random() < 0.6:
        name, content = "l.json", edited_json(random, _text("examples", "lattice.json"))
    else:
        name, content = "l.vxa", edited_xml(random, VXA)
    plan = ("plan", name, "--target", "1,3,4:x=5mm", "-o", "plan.nc")
    calibrate = ("calibrate", name, "walk.csv", "-o", "gains.json")
    command = random.choice((("show", name), plan, calibrate))
    files = {name: content, "walk.csv": _bytes("examples", "walk.csv")}
    return Case(command, files, seconds=30)


def _table(random: Random) -> Case:
    if random.random() < 0.6:
        files = {"l.json": _bytes("examples", "lattice.json")}
        files["t.csv"] = edited_table(random, _text("examples", "walk.csv"))
        return Case(("calibrate", "l.json", "t.csv", "-o", "gains.json"), files)
    files = {"t.csv": edited_table(random, _text("examples", "table.csv"))}
    short = ("--cycles", "1", "--time-limit", "0.5", "-o", "run.nc")
    return Case(("simulate", "voxel", "--gait", "t.csv", *short), files, seconds=30)


# --- results ------------------------------------------------------------------------

QUICK: Mapping[str, str] = {
    "hamr_simulation": "simulate hamr --gait trot --frequency 40 --cycles 1",
    "gecko_simulation": "simulate gecko --targets 5cm,0 --half-cycles 2",
    "voxel_simulation": "simulate voxel --cycles 1 --time-limit 60",
    "skin_simulation": "simulate skinned-leg --duration 0.02",
    "legged_simulation": "simulate {examples}/my_robot.urdf --duration 0.1",
    "legged_mpc": "mpc {examples}/my_robot.urdf --duration 0.2",
    "locomotion_plan": "plan {examples}/my_robot.urdf --forward 0.1 --time-limit 20",
    "gecko_plan": "plan gecko",
    "voxel_plan": "plan voxel --target foot:x=5mm",
    "lattice_plan": "plan {examples}/lattice.json --target 1,3,4:x=5mm",
    "legged_track": "track {folder}/locomotion_plan.nc --time-limit 10",
    "hamr_track": "track hamr:30hz_card --cycles 1",
}
"""Commands whose results are damaged."""


def _stored_plan() -> Result:
    return stored_plan("hamr:30hz_card")


def _gait_search() -> Result:
    return voxels.search_gait(voxels.SearchProblem(walks=2))


def _sweep() -> Result:
    over = {"duration": (0.01, 0.02), "time_step": (1e-3, 2e-3)}
    model = str(EXAMPLES / "my_robot.urdf")
    return sweeps.sweep(legged.Simulation(model), over, workers=1)


MADE: Mapping[str, Callable[[], Result]] = {
    "hamr_plan": _stored_plan,
    "gait_search": _gait_search,
    "sweep": _sweep,
}
"""Results that no command of QUICK makes."""


def make_results(folder: Path) -> list[Path]:
    """Sound results of most kinds, in a folder that keeps them for the next run."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, command in QUICK.items():
        path = folder / f"{name}.nc"
        if not path.exists():
            words = command.format(examples=EXAMPLES, folder=folder).split()
            run = [sys.executable, "-m", "drakebots", *words, "-o", str(path)]
            subprocess.run(
                run,
                capture_output=True,
                timeout=600,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
            )
    for name, make in MADE.items():
        if not (folder / f"{name}.nc").exists():
            make().save(folder / f"{name}.nc")
    return sorted(folder.glob("*.nc"))


def results_family(paths: list[Path]) -> Callable[[Random], Case]:
    """Damages results; their checksums are those of what is in them."""

    def family(random: Random) -> Case:
        path = random.choice(paths)
        content = edited_result(random, path)
        kind = path.stem
        commands = [
            ("report", "r.nc"),
            ("report", "r.nc", "--json"),
            ("report", "r.nc", "--plot", "p.png"),
            ("report", "r.nc", "--csv", "p.csv"),
            ("view", "r.nc", "--html", "page.html"),
            ("export", "r.nc", "--csv", "x.csv", "--mcap", "x.mcap"),
        ]
        if "plan" in kind and "gecko" not in kind:
            short = ("--time-limit", "0.5", "-o", "run.nc")
            commands += [("track", "r.nc", *short)] * 3
        if kind == "hamr_plan":
            commands += [("export", "r.nc", "--voltages", "v.csv")] * 2
        return Case(random.choice(commands), {"r.nc": content}, seconds=40)

    return family


@cache
def _loaded(path: Path) -> tuple[Any, dict[str, str]]:
    from drakebots.results.container import read_netcdf

    return read_netcdf(path)


def edited_result(random: Random, path: Path) -> bytes:
    from drakebots.results.container import seal, write_netcdf

    here = Path.cwd() / f".made-{os.getpid()}.nc"
    try:
        if random.random() < 0.1:
            content = path.read_bytes()[:-128]
            here.write_bytes(edited_bytes(random, content))
            seal(here)
            return here.read_bytes()
        for _ in range(20):
            data, header = _loaded(path)
            data, header = data.copy(deep=True), dict(header)
            try:
                for _ in range(random.choice((1, 1, 2))):
                    if random.random() < 0.3:
                        _edit_header(random, header)
                    else:
                        data = _edit_variable(random, data)
                write_netcdf(here, data, header)
                return here.read_bytes()
            except Exception:
                continue  # what cannot be stored
        return path.read_bytes()
    finally:
        here.unlink(missing_ok=True)


def _edit_header(random: Random, header: dict[str, str]) -> None:
    name = random.choice(list(header))
    if random.random() < 0.15:
        del header[name]
        return
    try:
        tree = json.loads(header[name])
    except ValueError:
        header[name] = edited_number(random, header[name])
        return
    header[name] = json.dumps(edited_tree(random, tree), default=str, skipkeys=True)


def _edit_variable(random: Random, data: Any) -> Any:
    import numpy as np

    name = random.choice(list(data.variables))
    variable = data[name]
    match random.randrange(12):
        case 0 | 1:
            return data.drop_vars(name)
        case 2:
            return data.rename({name: random.choice(("x", *map(str, data.variables)))})
        case 3 if data.dims:
            dim = random.choice(list(data.dims))
            return data.isel({dim: slice(0, random.choice((0, 1, 2, -1)))})
        case 4 if data.dims:
            dim = random.choice(list(data.dims))
            return data.rename({dim: f"{dim}2"})
        case 5 if variable.ndim > 1:
            dims = list(variable.dims)
            random.shuffle(dims)
            return data.assign({name: variable.transpose(*dims)})
        case 6 if variable.ndim:
            return data.assign({name: variable.isel({variable.dims[-1]: 0})})
        case 7:
            units = random.choice(("mm", "1", "kg", "", "rad", "s"))
            variable.attrs["units"] = units
            return data
        case 8 if variable.dtype.kind == "f":
            return data.assign(
                {name: variable.astype(random.choice(("f4", "i8", "?")))}
            )
        case 9 if variable.dtype.kind in "fi":
            return data.assign({name: variable * random.choice((0, -1, 1e6, 1e300))})
        case _:
            values = np.array(variable.values)
            if values.dtype.kind == "U":
                odd = random.choice(("<script>alert(1)</script>", "", "x", "../../x"))
                values = values.astype(f"U{max(30, values.dtype.itemsize // 4)}")
            elif values.dtype.kind == "f":
                odd = random.choice((np.nan, np.inf, -np.inf, 1e300, 0.0, -1.0))
            else:
                odd = random.choice((0, 1, -1, 100))
            if values.size:
                count = random.choice((1, values.size))
                values.flat[random.sample(range(values.size), count)] = odd
            made = variable.copy(data=values)
            return (
                data.assign_coords({name: made})
                if name in data.coords
                else (data.assign({name: made}))
            )


FORMATS: Mapping[str, Callable[[Random], Case]] = {
    "urdf": _urdf,
    "sdf": _sdf,
    "mjcf": _mjcf,
    "dmd.yaml": _directives,
    "drakebots.yaml": _sidecar,
    "scenario": _scenario,
    "limbs": _limbs,
    "design": _design,
    "skin.yaml": _skin,
    "vtk, vtu": _mesh,
    "obj, stl": _surface,
    "json, vxa": _lattice,
    "csv": _table,
}


def seeded(name: str, make: Callable[[Random], Case]) -> Family:
    """A family of inputs by their seeds."""

    def family(seed: int) -> Case:
        case = make(Random(f"{name} {seed}"))
        label = " ".join(word if len(word) < 60 else "..." for word in case.argv)
        return replace(case, label=case.label or " ".join(label.split()))

    return family
