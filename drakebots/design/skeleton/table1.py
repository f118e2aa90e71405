"""The skeletons of the paper's four robots (Table 1, sections 6 and 7).

The paper's sizes are those of the skinned robots; the skeletons are drawn inside them
with room for the skin. Its sizes are read as length x height x width for the monster
("48.5 cm x 64.6 cm x 27 cm": it walks on four legs and is taller than long in Fig. 12)
and as length x width x height for the others. Bracing plates are equally thick in all
robots, `Build.rib`; the masses are what comes of it.
"""

from __future__ import annotations

import numpy as np

from drakebots.core.checks import check_value, one_of
from drakebots.design.skeleton.parameters import (
    DS3218,
    Build,
    FootShape,
    Limb,
    Tail,
    Torso,
)
from drakebots.design.skeleton.template import (
    Crouched,
    Long,
    Template,
    Upright,
)

SIZES = {
    "beetle": (0.476, 0.337, 0.373),
    "monster": (0.485, 0.270, 0.646),
    "lizard": (1.25, 0.47, 0.46),
    "cow": (0.557, 0.2286, 0.4772),
}
"""Length, width, height of the skinned robot [m]."""

MASSES = {
    "beetle": (2.8, 1.1),
    "cow": (4.3, 1.65),
}
"""The paper's masses of skeleton and skin of the robots that it built [kg]; of the
others it has the sum only."""

GLUE = {"beetle": 140, "monster": 301, "lizard": 176, "cow": 217}
"""Numbers of glue vertices in Table 1."""


def _deg(value: float) -> float:
    return float(np.radians(value))


def _beetle() -> Crouched:
    """12 joints, 2.8 kg; knees and elbows bent outward, wide stance."""
    foot = FootShape(length=0.085, width=0.056, ankle_height=0.046)
    limb = {"y": 0.128, "upper": 0.098, "lower": 0.098, "foot": foot}
    return Crouched(
        "beetle",
        Torso(
            size=(0.25, 0.16, 0.06),
            centre=(0.0, 0.012),
            brace=(0.19, 0.15),
            brace_centre=0.035,
            stations=(0.0, 0.25, 0.5, 0.75, 1.0),
        ),
        Limb(x=0.115, upper_pitch=_deg(40), lower_pitch=_deg(-30), **limb),
        Limb(x=-0.115, upper_pitch=_deg(-40), lower_pitch=_deg(30), **limb),
    )


def _monster() -> Upright:
    """16 joints; upright legs under a tall body with a head."""
    foot = FootShape(length=0.10, width=0.060, ankle_height=0.055)
    limb = {"y": 0.088, "upper": 0.112, "lower": 0.104, "hip": 0.024, "foot": foot}
    return Upright(
        "monster",
        Torso(
            size=(0.21, 0.126, 0.15),
            centre=(0.0, 0.061),
            brace=(0.236, 0.215),
            brace_centre=0.115,
            stations=(0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0),
            struts=(("neck", (0.08, 0.0, 0.07), (0.12, 0.0, 0.23)),),
            strut_width=0.024,
            strut_brace=(0.17, 0.15),
            battery=((0.138, 0.047, 0.049), 0.52),
        ),
        Limb(x=0.125, upper_pitch=_deg(18), lower_pitch=_deg(-18), **limb),
        Limb(x=-0.125, upper_pitch=_deg(18), lower_pitch=_deg(-18), **limb),
        Build(wall=0.006, rib_reach=0.012),
    )


def _lizard() -> Long:
    """17 joints; long torso, short splayed limbs, a tail on a yaw joint."""
    foot = FootShape(length=0.11, width=0.064, ankle_height=0.050, forward=0.008)
    limb = {"y": 0.125, "upper": 0.095, "lower": 0.085, "hip": 0.022, "foot": foot}
    splay = _deg(22)
    return Long(
        "lizard",
        Torso(
            size=(0.46, 0.15, 0.085),
            centre=(0.02, 0.02),
            brace=(0.26, 0.15),
            brace_centre=0.105,
            stations=(0.0, 0.17, 0.33, 0.5, 0.67, 0.83, 1.0),
            struts=(("neck", (0.22, 0.0, 0.02), (0.47, 0.0, 0.09)),),
            strut_width=0.026,
            strut_brace=(0.15, 0.12),
            battery=((0.138, 0.047, 0.025), 0.30),
        ),
        Limb(x=0.21, upper_pitch=_deg(25), lower_pitch=_deg(-25), splay=splay, **limb),
        Limb(x=-0.17, upper_pitch=_deg(-25), lower_pitch=_deg(25), splay=splay, **limb),
        Build(wall=0.0045),
        tail=Tail(length=0.33, drop=0.04, width=0.03, brace=(0.088, 0.06)),
    )


def _cow() -> Upright:
    """16 joints, 4.3 kg, DS3218 servos; tall and narrow, straight legs."""
    foot = FootShape(length=0.075, width=0.074, ankle_height=0.048)
    limb = {"y": 0.063, "upper": 0.102, "lower": 0.098, "hip": 0.022, "foot": foot}
    return Upright(
        "cow",
        Torso(
            size=(0.232, 0.088, 0.085),
            centre=(0.0, 0.03),
            brace=(0.17, 0.13),
            brace_centre=0.085,
            stations=(0.0, 0.25, 0.5, 0.75, 1.0),
            struts=(("neck", (0.11, 0.0, 0.03), (0.20, 0.0, 0.13)),),
            strut_brace=(0.08, 0.08),
        ),
        Limb(x=0.14, upper_pitch=_deg(12), lower_pitch=_deg(-14), **limb),
        Limb(x=-0.14, upper_pitch=_deg(12), lower_pitch=_deg(-14), **limb),
        Build(servo=DS3218, wall=0.0035),
    )


_MAKERS = {"beetle": _beetle, "monster": _monster, "lizard": _lizard, "cow": _cow}


def table1_template(name: str) -> Template:
    """The template of a robot of Table 1.

    Raises:
        UnknownName: for another name.
    """
    check_value("robot", name, one_of("robot", _MAKERS))
    return _MAKERS[name]()
