"""TODO: what this room is."""

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
        LEGS,
        Parameters,
        load_parameters,
        mirror,
        parameters,
    )
    from drakebots.robots.hamr.model.piezo import (
        Bender,
        PiezoDrive,
        check_voltages,
        hamr_benders,
    )
    from drakebots.robots.hamr.model.sdf import (
        hamr_sdf,
        hamr_sidecar,
        joint_origin,
        link_name,
    )
    from drakebots.robots.hamr.model.variant import hamr_variant

__all__, __getattr__, __dir__ = lazy_face(__name__)
