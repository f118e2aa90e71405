"""Skinned runs made by rule, for pages and pictures."""

from __future__ import annotations

import base64
import zlib

import numpy as np
import xarray as xr

from drakebots.fem.mesh import surface_triangles
from drakebots.results import Result, provenance
from tests.helpers.scripts import load_script

hollow_capsule = load_script("capsule_mesh").hollow_capsule

UP = np.array([0.0, 0.0, 0.3])

LINK = """
<link name="{name}"><pose>0 0 0.3 0 0 0</pose>
  <inertial><mass>0.3</mass><inertia>
    <ixx>1e-3</ixx><iyy>1e-3</iyy><izz>1e-3</izz></inertia></inertial>
  <visual name="rod"><pose>0 0 {z} 0 0 0</pose><geometry><cylinder>
    <radius>0.025</radius><length>0.18</length></cylinder></geometry>
    <material><diffuse>0.05 0.1 0.9 1</diffuse></material></visual></link>"""

LEG = f"""<sdf version="1.9"><model name="rods">
{LINK.format(name="thigh", z=0.1)}{LINK.format(name="shin", z=-0.1)}
<joint name="hip" type="fixed"><parent>world</parent><child>thigh</child></joint>
<joint name="knee" type="revolute"><parent>thigh</parent><child>shin</child>
<axis><xyz>0 1 0</xyz></axis></joint></model></sdf>"""


def bent(x, angle, width=0.12):
    """Positions whose part below z = 0 is turned about y, smoothly over a width."""
    share = np.clip((width / 2 - x[:, 2]) / width, 0, 1)
    turn = angle * share**2 * (3 - 2 * share)
    c, s = np.cos(turn), np.sin(turn)
    return np.stack(
        [c * x[:, 0] + s * x[:, 2], x[:, 1], c * x[:, 2] - s * x[:, 0]], axis=1
    )


def knee(time):
    return 0.9 * np.sin(np.pi * time)


def skinned(folder, vertices, frames, seconds):
    """A run made by rule: a bending capsule on two rods, stress in the fold."""
    sdf = folder / "rods.sdf"
    sdf.write_text(LEG)
    mesh = hollow_capsule(vertices)
    rest = mesh.vertices
    skin_time = np.linspace(0, seconds, frames)
    time = np.linspace(0, seconds, 4 * frames + 1)
    noise = np.random.default_rng(1).normal(0, 2e-5, (frames, *rest.shape))
    places = np.stack([bent(rest, knee(t)) for t in skin_time]) + UP + noise
    fold = np.exp(-((rest[:, 2] / 0.05) ** 2)) * (1 + rest[:, 0] / 0.1)
    m, one, pa = {"units": "m"}, {"units": "1"}, {"units": "Pa"}
    s = {"units": "s"}
    data = xr.Dataset(
        {
            "position": (
                ("time", "position_name"),
                knee(time)[:, None],
                {"units": "rad"},
            ),
            "ground_force": (
                ("time", "body", "axis"),
                np.outer(knee(time), [0.0, 1.0, 4.0])[:, None],
                {"units": "N"},
            ),
            "ground_point": (
                ("time", "body", "axis"),
                np.tile(UP, (len(time), 1, 1)),
                m,
            ),
            "skin_position": (
                ("skin_time", "vertex", "axis"),
                places.astype(np.float32),
                m,
            ),
            "skin_stress": (
                ("skin_time", "vertex"),
                4e4 * np.abs(np.outer(knee(skin_time), fold)),
                pa,
            ),
            "skin_triangle": (("triangle", "corner"), surface_triangles(mesh), one),
            "skin_rest": (("vertex", "axis"), rest + UP, m),
        },
        {
            "time": ("time", time, s),
            "skin_time": ("skin_time", skin_time, s),
            "position_name": ["rods_knee"],
            "body": ["shin"],
            "axis": list("xyz"),
        },
    )
    return made_result("rods", data, sdf)


def made_result(model, data, sdf):
    """A simulation's result without a simulation."""
    return Result(
        kind="skin.simulation",
        model=model,
        verdict="success",
        message="",
        data=data,
        residuals={},
        timings={},
        metrics={},
        provenance=provenance(sdf, {}),
    )


def decode(about: dict, stream: str) -> tuple[np.ndarray, np.ndarray]:
    """Positions (T, V, 3) [m] and fractions (T, V), as a page finds them."""
    raw = np.frombuffer(zlib.decompress(base64.b64decode(stream)), np.uint8)
    v = about["vertices"]
    t = len(raw) // (7 * v)
    low, high, tone = np.split(raw, [3 * t * v, 6 * t * v])
    zigzag = low.astype(np.uint16) | (high.astype(np.uint16) << 8)
    change = (zigzag >> 1) ^ (-(zigzag & 1).astype(np.int16)).view(np.uint16)
    whole = np.cumsum(change.reshape(t, 3, v), axis=0, dtype=np.uint16)
    places = np.array(about["origin"]) + about["step"] * whole.transpose(0, 2, 1)
    return places, np.cumsum(tone.reshape(t, v), axis=0, dtype=np.uint8) / 255
