"""HAMR-VI's parts by name, its parameters in SI, and robots with other springs."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from copy import deepcopy
from dataclasses import replace
from functools import cache
from typing import Annotated

import numpy as np

from drakebots.core.checks import (
    Rule,
    check_value,
    non_negative,
    one_of,
    optional,
    positive,
)
from drakebots.core.fields import checked
from drakebots.core.units import si_factor
from drakebots.formats import load
from drakebots.model import Model, Parameters, parameters_of

MODEL = "hamr"
"""The name of the model in the models folder."""

LEGS = ("FL", "RL", "FR", "RR")
"""The legs in the authors' order: front-left, rear-left, front-right, rear-right."""

ACTUATORS = tuple(leg + kind for leg in LEGS for kind in "sl")
"""The actuators in the authors' order: swing and lift of each leg."""

FORWARD = np.array([-1.0, 1.0, 1.0, -1.0])
UP = np.array([1.0, 1.0, -1.0, -1.0])
"""Direction in which a positive actuator force moves the foot, by leg: forward (+1) for
a swing force, up (+1) for a lift force. A test compares them with the transmission."""


def mirror(leg: str) -> np.ndarray:
    """The signs (3,) that take a position of the front-left leg to `leg`."""
    fore, left = leg[0] == "F", leg[1] == "L"
    return np.array([1.0 if fore else -1.0, 1.0 if left else -1.0, 1.0])


def parameters() -> Parameters:
    """The parameters of `models/hamr`, read once."""
    return parameters_of(MODEL)


@cache
def surfaces() -> dict[str, float]:
    """Static friction coefficients of the grounds that were measured, by name."""
    return {name: row["mu"] for name, row in parameters().table("friction").items()}


# --- the ground of a problem ------------------------------------------------


def _surface(value: str | float) -> str | float:
    """The rule of a surface."""
    named = isinstance(value, str)
    return (one_of("surface", surfaces()) if named else non_negative())(value)


@checked(kw_only=True)
class OnSurface:
    """A problem on a ground of some friction.

    Raises:
        UnknownName: for an unknown surface.
        InvalidInput: for a friction that is not >= 0.
    """

    surface: Annotated[str | float, Rule(_surface, choices=tuple(surfaces()))] = "card"
    """The ground's surface: teflon, card or sandpaper, or a friction coefficient."""

    @property
    def mu(self) -> float:
        """The friction coefficient."""
        on = self.surface
        return surfaces()[on] if isinstance(on, str) else on

    @property
    def ground_metrics(self) -> dict[str, str | float]:
        """Metrics of the ground: the surface's name and its coefficient."""
        surface = self.surface if isinstance(self.surface, str) else "custom"
        return {"surface": surface, "friction": self.mu}


# --- robots with other springs ------------------------------------------------

TWIST_DAMPING = 0.0249e-6
"""Damping of the compliant joint [N m s/rad], from the authors' single-leg file with
twists; so are the mass [kg] and inertia [kg m^2] of the link before it."""

_TWIST_MASS = 1e-8
_TWIST_INERTIA = 1e-14


def hamr_variant(
    stiffness_scale: float = 1.0, serial_stiffness: float | None = None
) -> Model:
    """HAMR-VI with softer or stiffer flexures, or with compliant legs.

    For what the model leaves out: the authors find the robot unable to push as
    planned and suspect compliance in series with the transmission.

    Args:
        stiffness_scale: factor on the springs of all flexures (not the actuators').
        serial_stiffness: stiffness of a hinge along x between the lift chain and each
            leg [N m/rad], which adds a coordinate `<leg>qfb3_twist` for each leg;
            None for no hinge. The hinge is the one of the authors' single-leg file
            with twists, which gives no stiffness. Theirs is at the flexure; ours is
            on the line about which lift chain and leg both turn, since anywhere else
            the closed chains lock it.

    Raises:
        InvalidInput: for a factor or stiffness that is not > 0.
    """
    check_value("stiffness scale", stiffness_scale, positive())
    check_value("serial stiffness", serial_stiffness, optional(positive("N m/rad")))
    model = load(MODEL)
    if stiffness_scale == 1.0 and serial_stiffness is None:
        return model
    ET.register_namespace("drake", "http://drake.mit.edu")
    root = ET.fromstring(model.path.read_bytes())
    for joint in root.iter("joint"):
        if joint.get("type") == "revolute":
            spring = joint.find("axis/dynamics/spring_stiffness")
            spring.text = repr(stiffness_scale * float(spring.text))
    if serial_stiffness is not None:
        _add_twists(root.find("model"), serial_stiffness)
    return replace(model, text=ET.tostring(root, "unicode"))


def _add_twists(tree: ET.Element, stiffness: float) -> None:
    """Adds a twist joint about x to each leg, after a small link.

    Args:
        tree: the model.
        stiffness: stiffness of the twist [N m/rad].
    """
    joints, hinge = parameters().raw["joints"], parameters().table("loops")["ql3"]
    leg_joint = np.array(joints["value"]["qfb3"]["origin"], float)
    p_PJ = si_factor(joints["unit"]["origin"]) * leg_joint
    p_L3A = np.r_[p_PJ[0], hinge["p_B"][1:]]
    for leg in LEGS:
        joint = tree.find(f"joint[@name='{leg}qfb3']")
        before = tree.find(f"link[@name='{leg}L3']/pose").text.split()
        p = np.array(before[:3], float) + mirror(leg) * p_L3A
        place = " ".join(map(str, p))
        size = _TWIST_INERTIA
        tree.append(
            ET.fromstring(
                f"""<link name="{leg}L3A"><pose>{place} 0 0 0</pose><inertial>
                <mass>{_TWIST_MASS}</mass><inertia><ixx>{size}</ixx><iyy>{size}</iyy>
                <izz>{size}</izz><ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia>
                </inertial></link>"""
            )
        )
        twist = deepcopy(joint)
        twist.set("name", f"{leg}qfb3_twist")
        twist.find("child").text = joint.find("parent").text = f"{leg}L3A"
        axis = twist.find("axis")
        axis.find("xyz").text = "1 0 0"
        axis.find("dynamics/damping").text = str(TWIST_DAMPING)
        axis.find("dynamics/spring_stiffness").text = str(stiffness)
        tree.append(twist)
