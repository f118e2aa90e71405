"""Live: sliders, buttons and keys in the browser act on what runs.

    live(diagram, [Slider("torque", -1, 1, unit="N m", keys="SW", to=port)])

:func:`live` runs a Diagram, or poses a model. Whatever runs is a :class:`Part`, with
controls of its own, for the one loop that there is: a :class:`Panel` holds the
controls, their events and a script of them, a :class:`Pace` keeps simulated time beside
the wall clock. The room knows no robot: robots name their live parts in the registry.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.live.diagram import SliderSource, live
    from drakebots.live.loop import (
        Loop,
        Pace,
        Part,
        RobotPage,
        RunPage,
        SimulatedPart,
        run_live,
    )
    from drakebots.live.panel import Button, Panel, Slider
    from drakebots.live.pose import Hand, Posed, joint_slider, pose_by_hand
    from drakebots.live.script import Event, Live, events_of, read_script, with_events

__all__, __getattr__, __dir__ = lazy_face(__name__)
