"""See a robot in Meshcat: a lit scene, recordings, one self-contained page.

    scene = record_motion(result)
    scene.save("run.html")

The room knows no robot: what is particular to one is drawn by its own `view` module
on a :class:`Stage` of this one. Skins and lattices have rooms below this one.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.view.marks import (
        ContactMarks,
        ForceArrows,
        Mark,
        draw_horizon,
    )
    from drakebots.view.mcap import write_mcap, write_ros
    from drakebots.view.motion import (
        announce,
        check_playback,
        draw_ground,
        draw_ground_lines,
        draw_squares,
        draw_terrain,
        draw_trail,
        look_at_motion,
        play,
        positions_in_order,
        record_motion,
        round_distance,
        serve,
    )
    from drakebots.view.scene import (
        ROOT,
        VIEW,
        Scene,
        Stage,
        axes_of_view,
        make_scene,
        make_stage,
        set_stage,
        stage_of,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
