"""A Drake Diagram of one's own, driven by sliders and buttons while it runs.

sliders = builder.AddSystem(SliderSource([Slider("torque", -1, 1, unit="N m")]))
builder.Connect(sliders.get_output_port(), plant.get_actuation_input_port())
live(builder.Build(), [Button("kick", "K", act=kick)])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from pydrake.common.value import AbstractValue
from pydrake.geometry import Meshcat, MeshcatVisualizer, SceneGraph
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import (
    BasicVector,
    Context,
    Diagram,
    InputPort,
    LeafSystem,
    System,
)

from drakebots.core.errors import InvalidInput, one_line
from drakebots.core.run import Progress, Stop, failed
from drakebots.core.stages import timed
from drakebots.formats import loaded
from drakebots.live.loop import Part, restarted, run_live
from drakebots.live.panel import Button, Slider
from drakebots.live.pose import Posed
from drakebots.live.script import Live
from drakebots.model import Model
from drakebots.results import Result
from drakebots.view import stage_of

PERIOD = 1 / 200
"""Simulated time between two looks at the controls [s]."""


class SliderSource(LeafSystem):
    """Sliders as a source of a diagram; :func:`live` finds it there.

        ┌──────────────┐
        │ SliderSource │──▶ values (n)
        └──────────────┘

    Args:
        sliders: one for each value.
    """

    def __init__(self, sliders: Sequence[Slider]):
        super().__init__()
        self.set_name("sliders")
        self.sliders = tuple(sliders)
        values = [slider.value for slider in sliders]
        self._index = self.DeclareNumericParameter(BasicVector(values))
        needs = {self.all_parameters_ticket()}
        self.DeclareVectorOutputPort("values", len(values), self._calc, needs)

    def _calc(self, context: Context, output: BasicVector) -> None:
        output.SetFrom(context.get_numeric_parameter(self._index))

    def set(self, root: Context, values: Sequence[float]) -> None:
        """Sets all values in the context of a diagram."""
        mine = self.GetMyMutableContextFromRoot(root)
        mine.get_mutable_numeric_parameter(self._index).SetFromVector(values)


class Running(Part):
    """A diagram, as a live part.

    Args:
        simulator: of the diagram.
        controls: beside those of its :class:`SliderSource` systems.
        live: how it runs.
        meshcat: server on which the diagram draws itself; by default its SceneGraph is
            drawn on a new one.
    """

    kind, name, period, done = "live.diagram", "diagram", PERIOD, "ran"

    def __init__(
        self,
        simulator: Simulator,
        controls: Sequence[Slider | Button],
        live: Live,
        meshcat: Meshcat | None = None,
    ):
        self.simulator, self.root = simulator, simulator.get_mutable_context()
        systems = _systems(simulator.get_system())
        self._sources = [s for s in systems if isinstance(s, SliderSource)]
        pairs = zip(systems, map(_plant_of, systems))
        self._plants = [pair for pair in pairs if isinstance(pair[1], MultibodyPlant)]
        own = [slider for source in self._sources for slider in source.sliders]
        self.controls = [*own, *controls]
        self._bound = [c for c in controls if getattr(c, "to", None) is not None]
        self._ports: dict[InputPort, np.ndarray] = {}
        for slider in self._bound:
            self._bind(slider, slider.value)
        simulator.Initialize()
        self.first, self._began = self.root.Clone(), self.root.get_time()
        self._kept = [self._sample()]
        self._draws: MeshcatVisualizer | None = None
        if not live.headless:
            graphs = [s for s in systems if isinstance(s, SceneGraph)]
            self.meshcat = meshcat or self._open(graphs, live.port)

    def _open(self, graphs: list[SceneGraph], port: int | None) -> Meshcat:
        """A page that draws the SceneGraph, from a copy of its answers."""
        if not graphs:
            raise InvalidInput("the diagram has no SceneGraph to draw; give meshcat")
        (self._graph, *_), root = graphs, self.root
        inner = self._graph.GetMyContextFromRoot(root)
        meshcat = stage_of(self._graph, inner, port=port).meshcat
        self._draws = MeshcatVisualizer(meshcat)
        self._shown = self._draws.CreateDefaultContext()
        self.draw()
        return meshcat

    def draw(self) -> None:
        if self._draws is None:
            return
        inner = self._graph.GetMyContextFromRoot(self.root)
        query = AbstractValue.Make(self._graph.get_query_output_port().Eval(inner))
        self._draws.query_object_input_port().FixValue(self._shown, query)
        self._draws.ForcedPublish(self._shown)

    def _bind(self, slider: Slider, value: float) -> None:
        """Gives a value to the port that a slider is bound to."""
        target, at = slider.to if isinstance(slider.to, tuple) else (slider.to, 0)
        if not isinstance(target, InputPort):
            return  # a field, which the panel sets
        size = target.size()
        if not -size <= at < size:
            raise InvalidInput(
                f"slider {slider.name}: port {target.get_name()} has {size} values, "
                f"and so no index {at}"
            )
        context = target.get_system().GetMyMutableContextFromRoot(self.root)
        if target not in self._ports:  # the others keep their values
            given = target.HasValue(context)
            self._ports[target] = target.Eval(context) if given else np.zeros(size)
        self._ports[target][at] = value
        target.FixValue(context, self._ports[target])

    def told(self) -> None:
        values = self.panel.values
        for source in self._sources:
            source.set(self.root, [values[s.name] for s in source.sliders])
        for slider in self._bound:
            self._bind(slider, values[slider.name])

    restart = restarted

    def _sample(self) -> tuple[float, np.ndarray]:
        root = self.root
        rows = [(s.GetMyContextFromRoot(root), s, p) for s, p in self._plants]
        q = [s.GetOutputPort("state").Eval(c)[: p.num_positions()] for c, s, p in rows]
        return root.get_time(), np.concatenate([*q, []])

    def advance(self, time: float) -> Stop | None:
        try:
            self.simulator.AdvanceTo(self._began + time)
        except RuntimeError as error:
            return failed(f"the simulation failed: {one_line(error)[:160]}")
        self._kept.append(self._sample())
        return None

    def dataset(self) -> xr.Dataset:
        """The positions of all plants over time; names that several share have that of
        their system before them."""
        times, positions = map(np.array, zip(*self._kept))
        own = [(s, n) for s, plant in self._plants for n in plant.GetPositionNames()]
        count = Counter(n for _, n in own)
        names = [n if count[n] == 1 else f"{s.get_name()}.{n}" for s, n in own]
        rows = ("time", "coordinate"), positions, {"units": "m or rad"}
        axes = {"time": ("time", times, {"units": "s"})}
        axes["coordinate"] = np.array(names, dtype=str)  # where there is none, too
        return xr.Dataset({"position": rows}, axes)


def _plant_of(system: System) -> System:
    """Itself, or the plant whose place it takes with its ports, as with a skin."""
    return getattr(getattr(system, "stepper", None), "plant", system)


def _systems(system: System) -> list[System]:
    """A system and all within it, in diagrams of diagrams too."""
    inner = system.GetSystems() if isinstance(system, Diagram) else ()
    return [system, *(part for each in inner for part in _systems(each))]


@timed("load")
def live(
    what: Diagram | Simulator | Model | str | Path,
    controls: Sequence[Slider | Button] = (),
    *,
    meshcat: Meshcat | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Result:
    """Runs a diagram with controls in the browser, or poses a model, until Ctrl-C.

    Args:
        what: a diagram; the simulator of one, for a context and an integrator of one's
            own; or a model, its name or its file, whose joints get sliders.
        controls: sliders and buttons beside those of the diagram's
            :class:`SliderSource` systems.
        meshcat: server on which the diagram draws itself; by default a new one shows
            its SceneGraph.
        progress: called as progress("live", time, end) [s].
        options: fields of :class:`~drakebots.live.Live`: duration, headless, script.

    Returns:
        The positions of the plants, and the commands, kind "live.diagram".

    Raises:
        InvalidInput: for a diagram without anything to draw, and bad options.
    """
    how = Live(**options)
    if isinstance(what, Diagram):
        what = Simulator(what)
    if isinstance(what, Simulator):
        return run_live(how, Running(what, controls, how, meshcat), progress)
    part = Posed(how, loaded(what))
    part.controls = [*part.controls, *controls]
    return run_live(how, part, progress)
