"""MJCF, the format of MuJoCo, turned into SDF for Drake's parser.

Drake's own reader of MJCF leaves out much that decides how a robot moves: joint
stiffness, motors other than `<motor>`, gears, several joints in their order, keyframes,
meshes other than .obj. :func:`read_mjcf` has MuJoCo compile a file (defaults, includes,
frames, inertias, meshes), and says what it compiles in SDF, loops, couplers and poses.
"""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from pydrake.math import RigidTransform, RollPitchYaw

from drakebots.core.errors import InvalidInput, ModelProblem, one_line
from drakebots.core.lazy import late
from drakebots.core.units import GRAVITY_W
from drakebots.formats.read.files import check_includes
from drakebots.formats.read.findings import Findings, words
from drakebots.formats.read.limits import check_model_file
from drakebots.formats.read.meshes import check_mesh_file
from drakebots.formats.read.mjcf_links import Joint, Tree, sdf_model, transform
from drakebots.formats.read.tree import HINGES_OF_BALL, read_tree, remove, write_tree
from drakebots.formats.write.sdf import model_sdf
from drakebots.model import Coupler, Loop, Reading

if TYPE_CHECKING:
    from mujoco import MjModel, MjSpec

mujoco = late("mujoco")

_ROWS = {"connect": "ball", "weld": "weld"}
"""The kind of loop that an equality closes."""


def read_mjcf(path: Path, *, free_base: bool = False) -> Reading:
    """Reads an MJCF file.

    Args:
        path: the file; included files and meshes are relative to it.
        free_base: whether bodies that are welded to the world, and carry others that
            move, are to move freely.

    Returns:
        SDF text, whose motors have the names of their joints; loops that it does not
        close; joints that follow others; the keyframes' poses.

    Raises:
        ModelProblem: for a file that cannot be read, or that MuJoCo refuses.
    """
    tree, name, warned = compile_mjcf(path)
    tree.freed.update(tree.welded_bases() if free_base else ())
    efforts = _efforts(tree)
    sdf = sdf_model(tree, name, efforts)
    loops, couplers = _equalities(tree)
    for coupler in couplers:
        follower = sdf.joints[coupler.follower]
        sdf.joints[coupler.follower] = replace(follower, coupler=coupler)
    notes = (*_notes(tree, efforts), *warned)
    said = {"loops": loops, "couplers": couplers, "poses": _poses(tree)}
    return Reading(model_sdf(sdf), notes=notes, **said)


# --- motors ---


def _efforts(tree: Tree) -> dict[str, float]:
    """The effort of every joint with a motor, by its name in the SDF [N m, N].

    What motors have of armature and damping goes to their joints, by their gears'
    squares.

    A motor of gear g on a joint, or of a tendon in which the joint has coefficient g,
    gives it at most |g| times its force range; without such a range at most what its
    law gives over its control range. Several motors of a joint add up. A joint's own
    `actuatorfrcrange` limits their sum. No limit is inf.
    """
    efforts: dict[str, float] = {}
    model = tree.model
    limited = model.jnt_actfrclimited
    for motor in range(len(model.actuator_trntype)):
        for joint, gear in _driven(tree, motor):
            if not joint.is_single:
                tree.left_out[f"motors of {joint.kind} joints"] += 1
                continue
            dof = model.jnt_dofadr[joint.index]
            model.dof_armature[dof] += gear**2 * model.actuator_armature[motor]
            model.dof_damping[dof] += gear**2 * model.actuator_damping[motor]
            effort = abs(gear) * _largest_force(model, motor, limited[joint.index])
            efforts[joint.name] = efforts.get(joint.name, 0.0) + effort
    most = {
        joint.name: np.abs(model.jnt_actfrcrange[index]).max()
        for index, joint in tree.joint_of.items()
        if limited[index]
    }
    found = {name: float(min(x, most.get(name, x))) for name, x in efforts.items()}
    return {name: effort for name, effort in found.items() if effort > 0}


def _driven(tree: Tree, motor: int) -> list[tuple[Joint, float]]:
    """The joints that an actuator moves, with the gear of each."""
    model, kinds = tree.model, mujoco.mjtTrn
    kind, target = kinds(model.actuator_trntype[motor]), model.actuator_trnid[motor, 0]
    gear = float(model.actuator_gear[motor, 0])
    if kind in (kinds.mjTRN_JOINT, kinds.mjTRN_JOINTINPARENT):
        return [(tree.joint_of[target], gear)] if target in tree.joint_of else []
    if kind == kinds.mjTRN_TENDON:
        first = model.tendon_adr[target]
        parts = range(first, first + model.tendon_num[target])
        if all(model.wrap_type[k] == int(mujoco.mjtWrap.mjWRAP_JOINT) for k in parts):
            tree.left_out["tendons with a motor (their joints get motors)"] += 1
            return [
                (tree.joint_of[model.wrap_objid[k]], gear * model.wrap_prm[k])
                for k in parts
            ]
    tree.left_out["motors of sites, bodies and spatial tendons"] += 1
    return []


def _largest_force(model, motor: int, held: bool) -> float:
    """The largest force of an actuator [N, N m], before its gear.

    It is the end of its force range, and no more than its gain times its largest
    control: the effort of a motor, and of a servo that is sent from the middle
    of its range to an end. The gain of a servo that has a force range, or whose joint
    has one (`held`), says how it is controlled, and not how strong it is. Without any
    of these it has no limit.
    """
    gains = mujoco.mjtGain
    limit = np.inf
    if model.actuator_forcelimited[motor]:
        limit = np.abs(model.actuator_forcerange[motor]).max()
    gain, kind = model.actuator_gainprm[motor], gains(model.actuator_gaintype[motor])
    if kind == gains.mjGAIN_MUSCLE:
        return min(limit, gain[2] if gain[2] > 0 else np.inf)
    served = model.actuator_biasprm[motor, 1] < 0
    if served and (held or np.isfinite(limit)):
        return limit
    if kind == gains.mjGAIN_FIXED and model.actuator_ctrllimited[motor]:
        control = np.abs(model.actuator_ctrlrange[motor]).max()
        return min(limit, abs(gain[0]) * control)
    return limit


# --- loops, and joints that follow others ---


def _equalities(tree: Tree) -> tuple[tuple[Loop, ...], tuple[Coupler, ...]]:
    """The loops that `connect` and `weld` close, and the joints that follow others.

    Others are counted as left out.
    """
    model, loops, couplers = tree.model, [], {}
    for index in range(model.neq):
        kind = mujoco.mjtEq(model.eq_type[index]).name.removeprefix("mjEQ_").lower()
        if not model.eq_active0[index]:
            tree.left_out["<equality> that is not active"] += 1
        elif kind == "joint":
            _add_coupler(tree, index, couplers)
        elif kind in _ROWS:
            loop = _loop(tree, index, kind, len(loops))
            loops += [] if loop is None else [loop]
        else:
            tree.left_out[f"<equality> of type {kind}"] += 1
    return tuple(loops), tuple(couplers.values())


def _loop(tree: Tree, index: int, kind: str, count: int) -> Loop | None:
    model = tree.model
    ends = int(model.eq_obj1id[index]), int(model.eq_obj2id[index])
    if mujoco.mjtObj(model.eq_objtype[index]) == mujoco.mjtObj.mjOBJ_SITE:
        A, B = (int(model.site_bodyid[site]) for site in ends)
        X_AP, X_BQ = (tree.pose("site", site) for site in ends)
    else:
        # MuJoCo keeps the point of a `connect` in body A, then in body B; that of a
        # `weld` in body B, then in A, with the orientation of B in A.
        A, B = ends
        first, second, quat, _ = np.split(model.eq_data[index], [3, 6, 10])
        X_AP, X_BQ = RigidTransform(first), RigidTransform(second)
        if kind == "weld":
            X_AP, X_BQ = transform(second, quat), X_AP
    if not {A, B} <= tree.links.keys():
        tree.left_out["<equality> with a mocap body"] += 1
        return None
    name = model.equality(index).name or f"{kind}{count + 1}"
    bodies = tree.links[A], tree.links[B]
    return Loop.of_frames(name, bodies, (X_AP, X_BQ), rows=_ROWS[kind])


def _add_coupler(tree: Tree, index: int, found: dict[str, Coupler]) -> None:
    """Adds the coupler of a joint that follows another by a straight line.

    With the positions y of joint 1 and x of joint 2, from the reference configuration,

        y = a_0 + a_1 x + a_2 x^2 + a_3 x^3 + a_4 x^4

    Source: MuJoCo's XML reference, equality/joint.
    """
    model = tree.model
    ends = int(model.eq_obj1id[index]), int(model.eq_obj2id[index])
    offset, gear, *curve = map(float, model.eq_data[index, :5])
    if ends[1] < 0:
        tree.left_out["<equality> that fixes a joint"] += 1
        return
    follower, leader = (tree.joint_of.get(end) for end in ends)
    if any(joint is None or not joint.is_single for joint in (follower, leader)):
        tree.left_out["<equality> of joints that are no hinges and slides"] += 1
    elif any(curve):
        tree.left_out["<equality> of joints by a curve"] += 1
    elif follower.name in found or follower is leader:
        tree.left_out["<equality> of a joint that follows another already"] += 1
    else:
        found[follower.name] = Coupler(follower.name, leader.name, gear, offset)


# --- poses and notes ---


def _poses(tree: Tree) -> dict[str, dict[str, float]]:
    """Joint positions by the name of a key, then of a joint [rad, m].

    Drake's positions are 0 at the reference configuration. Poses of free bodies are
    left out, and keys that name no positions.
    """
    poses: dict[str, dict[str, float]] = {}
    for number, key in enumerate(tree.spec.keys):
        if len(key.qpos):
            pose = poses[tree.model.key(number).name or f"key{number}"] = {}
            for joint in tree.joint_of.values():
                pose |= _positions(joint, tree.model.key_qpos[number])
    return poses


def _positions(joint: Joint, qpos: np.ndarray) -> dict[str, float]:
    """The positions of a joint's hinges or slide by name; none of a free one."""
    if joint.is_single:
        return {joint.name: float(qpos[joint.q]) - joint.ref}
    if joint.kind == "free":
        return {}
    R = transform(np.zeros(3), qpos[joint.q : joint.q + 4]).rotation()
    angles = RollPitchYaw(R).vector()[::-1].tolist()
    return {joint.name + end: a for end, a in zip(HINGES_OF_BALL, angles)}


def _notes(tree: Tree, efforts: Mapping[str, float]) -> list[str]:
    model, left_out, notes = tree.model, tree.left_out, []
    options, off, on = model.opt, mujoco.mjtDisableBit, mujoco.mjtEnableBit
    left_out["shapes of the world"] += len(tree.geoms(0))
    for item in words("mjcf_unread"):
        rows, default = getattr(model, item.get("rows", ""), ()), item.get("default", 0)
        changed = np.count_nonzero([np.any(row != default) for row in rows])
        left_out[item["what"]] += getattr(model, item.get("count", ""), changed)
    for ranges in (model.actuator_forcerange, model.jnt_actfrcrange):
        uneven = np.count_nonzero(ranges.sum(axis=1))
        left_out["limits of force to one side only, or unequal"] += uneven
    for name in ("density", "viscosity", "wind"):
        left_out[f"<option> {name}"] += np.any(getattr(options, name))
    for name in words("mjcf_flags"):
        bit = getattr(off, f"mjDSBL_{name.upper()}")
        left_out[f"<flag> {name}"] += options.disableflags & bit > 0
    left_out["<flag> override"] += options.enableflags & on.mjENBL_OVERRIDE
    weighs = not options.disableflags & off.mjDSBL_GRAVITY
    gravity = tuple((weighs * options.gravity + 0.0).tolist())
    if gravity != GRAVITY_W:
        notes.append(f"the file's gravity, {gravity}, becomes {GRAVITY_W} m/s^2")
    for index, joint in tree.joint_of.items():
        dof = model.jnt_dofadr[index]
        acts = model.jnt_limited[index] or model.jnt_stiffness[index]
        acts = acts or (joint.kind == "free" and model.dof_damping[dof])
        what = f"limits, springs, dampers of {joint.kind} joints"
        left_out[what] += not joint.is_single and acts > 0
        left_out["friction of joints"] += model.dof_frictionloss[dof] > 0
        left_out["armature of joints without a motor"] += (
            model.dof_armature[dof] > 0 and joint.name not in efforts
        )
    if counted := ", ".join(f"{n} x {what}" for what, n in left_out.items() if n):
        notes.append(f"left out of the MJCF: {counted}")
    lost = Findings()
    for mesh, why in tree.lost_meshes.items():
        lost.note(f"a mesh is left out, with its mass ({why})", mesh)
    notes += lost.notes
    if tree.renamed:
        renamed = ", ".join(f"{a!r} is {b!r}" for a, b in tree.renamed.items())
        notes.append(f"names that SDF takes once only: {renamed}"[:300])
    notes += [
        f"{tree.links[base]!r} is welded to the world; a <freejoint/> or --free-base "
        "frees it"
        for base in tree.welded_bases()
        if base not in tree.freed
    ]
    return notes


_LARGEST = 1e50
"""Inertias go with the fifth power of a size, and must be numbers too."""


def compile_mjcf(path: Path) -> tuple[Tree, str, list[str]]:
    """Compiles an MJCF file, without textures, skins, height fields and lost meshes.

    Returns:
        Its bodies, with those that are welded together kept apart; the name of the
        model; warnings of MuJoCo.

    Raises:
        ModelProblem: for a file that MuJoCo refuses, in its words, that includes
            itself, or that holds more than models have.
    """
    check_includes(path)
    text = check_model_file(path)
    left_out: Counter[str] = Counter()
    lost: dict[str, str] = {}
    root = read_tree(text)
    if fixed := [j for j in root.iter("joint") if j.get("type") == "fixed"]:
        remove(root, fixed)
        text = write_tree(root)
        left_out["joints of type fixed, which weld as none would"] += len(fixed)
    with _heard() as words:
        try:
            # In place of the file MuJoCo is given its checked text. It reads UTF-8 in
            # files that end in .xml; what is included it reads itself.
            given = str(path.absolute().with_name("model of drakebots.xml"))
            spec = mujoco.MjSpec.from_file(given, include={given: text.encode()})
        except ValueError as error:
            raise _refusal(path, "parser", error) from error
        _leave_out(spec, left_out)
        _leave_out_meshes(spec, lost, _unsafe)
        try:
            model = spec.compile()
        except (ValueError, mujoco.FatalError) as error:
            _leave_out_meshes(spec, lost, _refused)
            try:
                if not lost:
                    raise
                model = spec.compile()
            except (ValueError, mujoco.FatalError) as again:
                raise _refusal(path, "compiler", again, lost) from error
    _check_finite(path, model)
    name = root.get("model") or path.stem
    try:
        return Tree(spec, model, left_out, lost), name, list(dict.fromkeys(words))
    except InvalidInput as error:
        raise ModelProblem(path, str(error)) from error


@contextmanager
def _heard() -> Iterator[list[str]]:
    """Collects what MuJoCo warns of, which it would write to a file where it runs."""
    found: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: found.append(f"MuJoCo says: {text}"))
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield found
        found += [f"MuJoCo says: {one_line(warning.message)}" for warning in caught]
    finally:
        mujoco.set_mju_user_warning(before)


def _refusal(path: Path, stage: str, error: Exception, lost=()) -> ModelProblem:
    """Error for a file that MuJoCo refuses, with the element and line that it names."""
    words = one_line(error)
    place = re.search(r"Element (?:name )?('.*?')(?:, id \d+)?(, line \d+)?$", words)
    words = re.sub(r"^((XML )?Error: )+|\s*Element (name )?'.*?'.*$", "", words)
    if place and (where := f"{place[1]}{place[2] or ''}".removeprefix("''")):
        words += f" ({where.removeprefix(', ')})"
    words += "".join(f"; mesh {mesh} {why}" for mesh, why in dict(lost).items())
    return ModelProblem(path, f"MuJoCo's {stage} refuses it: {words}; correct it")


# --- what MuJoCo is not given ---


def _leave_out(spec: MjSpec, left_out: Counter[str]) -> None:
    """Takes out what is only looked at, and what Drake has no shape for."""
    spec.compiler.fusestatic = False
    spec.compiler.discardvisual = False
    for material in spec.materials:
        material.textures = [""] * len(material.textures)
    known = {material.name for material in spec.materials}
    for item in (*spec.geoms, *spec.sites):
        if item.material not in known:
            item.material = ""
    fields = [g for g in spec.geoms if g.type == mujoco.mjtGeom.mjGEOM_HFIELD]
    left_out["shapes of type hfield"] += len(fields)
    left_out["<skin>"] += len(spec.skins)
    for item in (*fields, *spec.hfields, *spec.skins, *spec.textures):
        spec.delete(item)


def _leave_out_meshes(spec: MjSpec, lost: dict[str, str], reason) -> None:
    """Takes out the meshes for which there is a reason, with their shapes."""
    for mesh in list(spec.meshes):
        file = os.path.basename(mesh.file) if spec.strippath else mesh.file
        path = Path(spec.modelfiledir, mesh.compiler.meshdir, file)
        if not mesh.file or not (why := reason(mesh, path)):
            continue
        lost[path.name] = why
        for geom in [g for g in spec.geoms if g.meshname == mesh.name]:
            spec.delete(geom)
        spec.delete(mesh)


def _unsafe(mesh, path: Path) -> str:
    """Why what exists is no mesh to read, such as a pipe; "" for all others."""
    try:
        if os.path.exists(path):
            check_mesh_file(path)
    except ModelProblem as problem:
        return str(problem).removeprefix(f"{path}: ")
    return ""


def _refused(mesh, path: Path) -> str:
    """Message of MuJoCo on a mesh alone; "" for one that it takes."""
    if not os.path.exists(path):
        return "is not found"
    alone = mujoco.MjSpec()
    same = alone.add_mesh(name="mesh", file=str(path), scale=mesh.scale)
    same.inertia = mesh.inertia
    alone.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="mesh")
    try:
        alone.compile()
    except (ValueError, mujoco.FatalError) as error:
        words = one_line(error).removeprefix("Error: ").split(" Element ")[0]
        return f"is no mesh for MuJoCo ({words[:100]})"
    return ""


def _check_finite(path: Path, model: MjModel) -> None:
    for kind, names in words("mjcf_read").items():
        for name in names.split():
            values = np.abs(getattr(model, f"{kind}_{name}"), dtype=float)
            for index, *_ in np.argwhere(~(values < _LARGEST)):
                item = _named(model, kind, index)
                raise ModelProblem(path, f"{item}: {name} is beyond all numbers")


def _named(model: MjModel, kind: str, index: int) -> str:
    if kind == "dof":
        kind, index = "jnt", model.dof_jntid[index]
    word = {"jnt": "joint", "eq": "equality"}.get(kind, kind)
    return f"{word} {getattr(model, word)(index).name or index}"
