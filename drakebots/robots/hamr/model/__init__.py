"""HAMR-VI's model: its parameters, SDF, piezoelectric actuators and encoders.

`parameters` reads `models/hamr/params.yaml` and makes robots with other springs, and
`piezo` has the actuators and the encoders that sense their velocity.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.hamr.model.parameters import (
        ACTUATORS,
        FORWARD,
        LEGS,
        MODEL,
        UP,
        OnSurface,
        hamr_variant,
        mirror,
        parameters,
        surfaces,
    )
    from drakebots.robots.hamr.model.piezo import (
        BIAS,
        DriveLaw,
        Encoder,
        PiezoDrive,
        Plates,
        check_voltages,
        hamr_benders,
        hamr_encoder,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
