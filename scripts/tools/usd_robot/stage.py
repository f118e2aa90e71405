"""A stage of USD: what its prims say, and its shapes and masses as MuJoCo's."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Real
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from pydrake.common.eigen_geometry import Quaternion
from pydrake.math import RigidTransform, RollPitchYaw, RotationMatrix

from drakebots.core.errors import InvalidInput, ModelProblem, one_line
from drakebots.core.files import check_readable

MAX_BYTES, MAX_PARTS = 50_000_000, 2_000
"""A larger stage, or one with more bodies or shapes, is refused, as an MJCF is."""

_WATER = 1000.0
"""Density of shapes without any [kg/m^3]."""

_NO_SELF = "physxArticulation:enabledSelfCollisions", "newton:selfCollisionEnabled"
"""Attributes that are false where the links of an articulation do not touch."""


@contextmanager
def usd_of(path: Path) -> Iterator[Any]:
    """The package `pxr`, to read a file with; its warnings are not printed.

    Raises:
        InvalidInput: without the package `usd-core`.
        ModelProblem: for a file that cannot be read, and for what the package refuses,
            in its words.
    """
    try:
        check_readable(path, MAX_BYTES)
        import pxr
        from pxr import Usd, UsdGeom, UsdPhysics, UsdShade, UsdUtils  # noqa: F401
    except ImportError as error:
        message = "USD needs the package usd-core; pip install usd-core"
        raise InvalidInput(message) from error
    except (InvalidInput, OSError) as error:
        raise ModelProblem(path, f"cannot be read ({error})") from error
    heard = pxr.UsdUtils.CoalescingDiagnosticDelegate()
    try:
        yield pxr
    except pxr.Tf.ErrorException as error:
        words = re.split(r" : '|(?<=')\s*Error in ", one_line(error))[1]
        words = words.replace(f"{path}:", "line ").strip("' ")
        raise ModelProblem(path, f"USD refuses it: {words[:160]}") from error
    finally:
        heard.TakeUncoalescedDiagnostics()


class Stage:
    """A stage, and the bodies that are made of it.

    Attributes:
        stage: the stage.
        unit, mass_unit: its units of length [m] and mass [kg].
        rigid: its rigid bodies' prims by path.
        spec: the bodies for MuJoCo's compiler.
        placed: those that are in it, by path; the world's is None.
        left_out: counts of what has no counterpart, by what it is.
        meshes: vertices (n, 3) [m] and triangles (m, 3) by the names of meshes.
        lost: files that it refers to and that are not there.

    Raises:
        ModelProblem: for units that are none, places of bodies that are none, and more
            shapes than models have.
    """

    def __init__(self, path: Path, pxr: Any):
        self.path, self.left_out = path, Counter[str]()
        self.meshes: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self._pxr, self.stage = pxr, pxr.Usd.Stage.Open(str(path))
        self.lost = list(pxr.UsdUtils.ComputeAllDependencies(str(path))[2])
        geometry, physics = pxr.UsdGeom, pxr.UsdPhysics
        self.unit = geometry.GetStageMetersPerUnit(self.stage)
        self.mass_unit = physics.GetStageKilogramsPerUnit(self.stage)
        if not (0 < self.unit < np.inf and 0 < self.mass_unit < np.inf):
            raise ModelProblem(path, "has units that are no positive numbers")
        roll = np.pi / 2 if geometry.GetStageUpAxis(self.stage) == "Y" else 0.0
        self._A_WU = self.unit * RollPitchYaw(roll, 0, 0).ToRotationMatrix().matrix()
        self._cache = geometry.XformCache()
        proxies = self._pxr.Usd.TraverseInstanceProxies()
        prims = self._pxr.Usd.PrimRange(self.stage.GetPseudoRoot(), proxies)
        self._prims = list(prims)
        self.rigid = {
            str(prim.GetPath()): prim
            for prim in self._prims
            if prim.HasAPI(physics.RigidBodyAPI)
            and self.said(prim, "rigidBodyEnabled") is not False
        }
        self.spec = mujoco.MjSpec()
        self.spec.compiler.degree, self.spec.compiler.fusestatic = False, False
        self.placed: dict[str | None, Any] = {None: self.spec.worldbody}
        self._taken: dict[str, set[str]] = {}

    # --- what prims say ---

    def said(self, prim, key: str) -> Any:
        """An attribute of UsdPhysics; None where it is not there."""
        return prim.GetAttribute(f"physics:{key}").Get()

    def number(self, prim, key: str, default: float = 0.0) -> float:
        """A finite number that a prim says, or the default."""
        value = prim.GetAttribute(key).Get()
        # A damaged stage may say a path where its type says a number.
        is_one = isinstance(value, Real) and np.isfinite(value)
        return float(value) if is_one else default

    def vector(self, prim, key: str) -> np.ndarray | None:
        """Three finite numbers of UsdPhysics (3,); None where they are not there."""
        value = np.array(self.said(prim, key))
        is_one = value.shape == (3,) and value.dtype.kind in "fiu"
        return value.astype(float) if is_one and np.isfinite(value).all() else None

    def axis(self, prim, key: str) -> int:
        """Index of the axis that a prim names, X where it names none.

        Raises:
            ModelProblem: for another word.
        """
        letter = str(prim.GetAttribute(key).Get() or "X")
        if letter not in ("X", "Y", "Z"):
            raise self._problem(prim, f"has the axis {letter!r}, none of X, Y, Z")
        return "XYZ".index(letter)

    def _problem(self, prim, what: str) -> ModelProblem:
        return ModelProblem(self.path, f"{prim.GetPath()} {what}; correct it")

    def targets(self, prim, key: str) -> list:
        """The prims that a relationship names.

        Raises:
            ModelProblem: for one that is not there.
        """
        relationship = prim.GetRelationship(key)
        paths = relationship.GetTargets() if relationship else []
        found = [self.stage.GetPrimAtPath(path) for path in paths]
        for path, target in zip(paths, found):
            if not target:
                raise self._problem(prim, f"names {path}, which is not there")
        return found

    def is_root(self, body: str) -> bool:
        """Whether a body says that it is the root of an articulation."""
        return self.rigid[body].HasAPI(self._pxr.UsdPhysics.ArticulationRootAPI)

    def is_driven(self, joint, drive: str) -> bool:
        """Whether a joint has a drive of this name."""
        return joint.HasAPI(self._pxr.UsdPhysics.DriveAPI, drive)

    def joints(self) -> list:
        """The joints that are enabled."""
        joints = [x for x in self._prims if x.IsA(self._pxr.UsdPhysics.Joint)]
        return [x for x in joints if self.said(x, "jointEnabled") is not False]

    def name(self, kind: str, prim) -> str:
        """A name for a prim that no other of the kind has."""
        taken, given = self._taken.setdefault(kind, set()), prim.GetName()
        numbered = (f"{given}_{k}" for k in range(2, len(taken) + 3))
        name = next(x for x in (given, *numbered) if x not in taken)
        taken.add(name)
        return name

    # --- where they are ---

    def map(self, prim) -> tuple[np.ndarray, np.ndarray]:
        """Linear part (3, 3) and origin (3,) [m] of a prim's coordinates in the world;
        those of the stage for None.

        Raises:
            ModelProblem: for coordinates that are flat, or beyond all numbers.
        """
        if prim is None:
            return self._A_WU, np.zeros(3)
        rows = np.array(self._cache.GetLocalToWorldTransform(prim))
        if not np.isfinite(rows).all() or np.linalg.cond(rows[:3, :3]) > 1e9:
            raise self._problem(prim, "has a scale of 0, or no finite place")
        return self._A_WU @ rows[:3, :3].T, self._A_WU @ rows[3, :3]

    def body_of(self, prim) -> str | None:
        """Path of the rigid body that a prim is part of; None for the world."""
        while prim and str(prim.GetPath()) not in self.rigid:
            prim = prim.GetParent()
        return str(prim.GetPath()) if prim else None

    def X_WB(self, body: str | None) -> RigidTransform:
        """The pose in which a body lies on the stage."""
        if body is None:
            return RigidTransform()
        A, p = self.map(self.rigid[body])
        return RigidTransform(self.rotation(self.rigid[body], A), p)

    def rotation(self, prim, A: np.ndarray) -> RotationMatrix:
        """The rotation in a linear map of a prim's.

        Raises:
            ModelProblem: for one that mirrors.
        """
        if np.linalg.det(A) < 0:
            raise self._problem(prim, "is mirrored by a negative scale")
        return RotationMatrix.ProjectToRotationMatrix(A)

    def place(self, body: str, parent: str | None, X_PB: RigidTransform):
        """The body, added to the one that it hangs on."""
        name, at = self.name("body", self.rigid[body]), X_PB.translation()
        quat = X_PB.rotation().ToQuaternion().wxyz()
        self.placed[body] = self.placed[parent].add_body(name=name, pos=at, quat=quat)
        return self.placed[body]

    def exclude(self, *pair: str | None) -> None:
        """Keeps two bodies apart."""
        a, b = (self.placed[body].name for body in pair)
        if "world" not in (a, b) and a != b:
            self.spec.add_exclude(bodyname1=a, bodyname2=b)

    # --- shapes ---

    def add_shapes(self) -> None:
        """Adds all shapes to their bodies, and pairs of bodies that do not touch."""
        shapes = [x for x in self._prims if x.IsA(self._pxr.UsdGeom.Gprim)]
        if len(shapes) > MAX_PARTS:
            raise ModelProblem(self.path, f"has more than {MAX_PARTS} shapes")
        for prim in shapes:
            self._add_shape(prim)
        for path, prim in self.rigid.items():
            for other in self.targets(prim, "physics:filteredPairs"):
                self.exclude(path, self.body_of(other))

    def _add_shape(self, prim) -> None:
        """Adds a shape as drawn, touching, or both."""
        body, image = self.body_of(prim), self._pxr.UsdGeom.Imageable(prim)
        touches = prim.HasAPI(self._pxr.UsdPhysics.CollisionAPI)
        touches &= self.said(prim, "collisionEnabled") is not False
        drawn = image.ComputePurpose() not in ("guide", "proxy")
        drawn &= image.ComputeVisibility() != "invisible"
        if body is None or not (touches or drawn):
            self.left_out["shapes of the world"] += body is None
            return
        try:
            A, p = self.map(prim)
        except ModelProblem:
            self.left_out["shapes that are flat"] += 1
            return
        X_BW = self.X_WB(body).inverse()
        made = self._form(prim, X_BW.rotation().matrix() @ A, X_BW @ p, touches)
        if not made:
            self.left_out[f"shapes of type {prim.GetTypeName()}"] += 1
            return
        geom = self.placed[body].add_geom(name=self.name("geom", prim), **made)
        geom.group, geom.rgba = 2 if drawn else 3, (*self._color(prim), 1.0)
        if not touches:
            geom.contype, geom.conaffinity, geom.mass = 0, 0, 0.0
            return
        above, apart = prim, False
        while above and not apart:
            apart = any(above.GetAttribute(key).Get() is False for key in _NO_SELF)
            above = above.GetParent()
        geom.conaffinity = 0 if apart else 1
        material = self._material(prim, "physics")
        geom.friction[0] = self.number(material, "physics:dynamicFriction", 1.0)
        if mass := self.number(prim, "physics:mass"):
            geom.mass = self.mass_unit * mass
        says = (prim, self.rigid[body], material)
        dense = (self.number(x, "physics:density") for x in says)
        unit = self.mass_unit / self.unit**3
        geom.density = next((unit * x for x in dense if x), _WATER)

    def _form(self, prim, A: np.ndarray, p: np.ndarray, touches: bool) -> dict:
        """MuJoCo's shape and size of a prim; empty for one that has no counterpart.

        Args:
            prim: of the shape.
            A, p: from its coordinates to the body's, which may stretch it [m].
            touches: whether it is more than drawn.
        """
        kind = prim.GetTypeName()
        if kind == "Mesh":
            return self._mesh(prim, A, p, touches)
        if kind in ("Cylinder", "Capsule"):
            # MuJoCo has their axes along z.
            A = np.roll(A, 2 - self.axis(prim, "axis"), axis=1)
        x, y, z = stretch = np.linalg.norm(A, axis=0)
        radius = self.number(prim, "radius", 1.0)
        half = z * self.number(prim, "height", 2.0) / 2
        sizes = {
            "Cube": stretch * self.number(prim, "size", 2.0) / 2,
            "Sphere": stretch * radius,
            "Cylinder": (max(x, y) * radius, half, 0.0),
            "Capsule": (max(x, y) * radius, half, 0.0),
        }
        if kind not in sizes:
            return {}
        size = np.array(sizes[kind])
        as_said = {"Cube": "box"}
        if np.ptp(stretch) > 1e-6 * x:
            as_said["Sphere"] = "ellipsoid"
        shape = getattr(mujoco.mjtGeom, f"mjGEOM_{as_said.get(kind, kind).upper()}")
        R = RotationMatrix.ProjectToRotationMatrix(A * np.sign(np.linalg.det(A)))
        quat = R.ToQuaternion().wxyz()
        return {"type": shape, "size": size, "pos": p, "quat": quat}

    def _mesh(self, prim, A: np.ndarray, p: np.ndarray, touches: bool) -> dict:
        keys = ("points", "faceVertexCounts", "faceVertexIndices")
        said = (prim.GetAttribute(key).Get() for key in keys)
        points, counts, corners = (np.array(x if x else ()) for x in said)
        if len(points) < 4 or sum(counts) != len(corners) or not len(counts):
            return {}
        starts = np.cumsum([0, *counts])
        faces = np.array(
            [
                (corners[start], corners[start + k], corners[start + k + 1])
                for start, count in zip(starts, counts)
                for k in range(1, count - 1)
            ]
        )
        is_left = prim.GetAttribute("orientation").Get() == "leftHanded"
        if is_left != (np.linalg.det(A) < 0):
            faces = faces[:, ::-1]
        mesh = self.spec.add_mesh(name=self.name("mesh", prim), userface=faces.ravel())
        self.meshes[mesh.name] = points @ A.T + p, faces
        mesh.uservert = self.meshes[mesh.name][0].ravel()
        # One that is only drawn may be flat.
        kinds = mujoco.mjtMeshInertia
        mesh.inertia = (
            kinds.mjMESH_INERTIA_CONVEX if touches else kinds.mjMESH_INERTIA_SHELL
        )
        return {"type": mujoco.mjtGeom.mjGEOM_MESH, "meshname": mesh.name}

    def _material(self, prim, purpose: str):
        """The material that is bound to a prim, or the prim itself."""
        binding = self._pxr.UsdShade.MaterialBindingAPI(prim)
        material = binding.ComputeBoundMaterial(purpose)[0]
        return material.GetPrim() if material else prim

    def _color(self, prim) -> Sequence[float]:
        """The color of a shape, or of the material that it is drawn in."""
        if given := prim.GetAttribute("primvars:displayColor").Get():
            return tuple(given[0])
        for shader in self._material(prim, "").GetChildren():
            for name in ("diffuseColor", "diffuse_color_constant"):
                if (value := shader.GetAttribute(f"inputs:{name}").Get()) is not None:
                    return tuple(value)
        return 0.5, 0.5, 0.5

    def compiled(self) -> mujoco.MjModel:
        """The model as MuJoCo compiles it.

        Raises:
            ModelProblem: for one that MuJoCo refuses, in its words.
        """
        try:
            return self.spec.compile()
        except (ValueError, mujoco.FatalError) as error:
            raise ModelProblem(self.path, f"MuJoCo: {one_line(error)}") from error

    # --- masses ---

    def add_masses(self) -> None:
        """Gives the bodies the masses and inertias that the stage states.

        Where it states a mass alone, the inertia is that of the shapes that touch, at
        uniform density, or of a ball of water where there are none.
        """
        of_shapes, unit = {}, self.mass_unit * self.unit**2
        for body, prim in self.rigid.items():
            mass = self.mass_unit * self.number(prim, "physics:mass")
            if mass <= 0:
                continue
            made, com = self.placed[body], self.vector(prim, "centerOfMass")
            moments = self.vector(prim, "diagonalInertia")
            R = rotation_of(self.said(prim, "principalAxes"))
            if com is not None:
                A, _ = self.map(prim)
                com = self.X_WB(body).rotation().matrix().T @ A @ com
            if moments is not None and moments.any():
                _give(made, mass, com, R, unit * moments)
            elif any(geom.contype for geom in made.geoms):
                of_shapes[body] = mass, com
            else:
                radius = np.cbrt(3 * mass / (4 * np.pi * _WATER))
                _give(made, mass, com, R, np.full(3, 0.4 * mass * radius**2))
        if not of_shapes:
            return
        model = self.compiled()
        for body, (mass, com) in of_shapes.items():
            made = self.placed[body]
            moments = model.body_inertia[made.id] * mass / model.body_mass[made.id]
            R = RotationMatrix(Quaternion(model.body_iquat[made.id]))
            com = model.body_ipos[made.id] if com is None else com
            _give(made, mass, com, R, moments)


def rotation_of(quat) -> RotationMatrix:
    """The rotation of a quaternion of USD; none without one, or for one of length 0."""
    wxyz = np.zeros(4) if quat is None else [quat.GetReal(), *quat.GetImaginary()]
    length = np.linalg.norm(wxyz)
    return RotationMatrix(Quaternion(wxyz / length)) if length else RotationMatrix()


def _give(body, mass: float, com, R: RotationMatrix, moments: np.ndarray) -> None:
    """Gives a body of MuJoCo's a mass, its center, and principal moments along R."""
    body.explicitinertial, body.mass = True, mass
    body.ipos = np.zeros(3) if com is None else com
    body.iquat = R.ToQuaternion().wxyz()
    # Numbers of 32 bits may be a little beyond what a body can have: 0 <= I1 <= I2 <=
    # I3 <= I1 + I2.
    moments[abs(moments) < 1e-9 * moments.max()] = 0.0
    a, b, c = np.argsort(moments)
    moments[c] = min(moments[c], moments[a] + moments[b])
    body.inertia = moments
