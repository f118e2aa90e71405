"""HAMR-VI's model: its parameters, SDF, piezoelectric actuators and encoders.

`parameters` reads `models/hamr/params.yaml`; `sdf` writes the model files from it, and
variants of the robot with other springs; `piezo` has the actuators' law and `encoder`
the measurement of their velocities.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.hamr.model.encoder import (
        Encoder,
        EncoderCircuit,
        hamr_encoder,
    )
    from drakebots.robots.hamr.model.parameters import (
        ACTUATORS,
        FORWARD,
        LEGS,
        MODEL,
        UP,
        HamrParameters,
        OnSurface,
        mirror,
        parameters,
    )
    from drakebots.robots.hamr.model.piezo import (
        BIAS,
        Bender,
        PiezoDrive,
        check_voltages,
        hamr_benders,
    )
    from drakebots.robots.hamr.model.sdf import (
        hamr_sdf,
        hamr_sidecar,
        hamr_variant,
        joint_origin,
        link_name,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
