"""Diagrams of one's own under sliders, and what all live runs share."""

from __future__ import annotations

import numpy as np
import pytest
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder
from pydrake.systems.primitives import Adder

from drakebots import InvalidInput, load
from drakebots.live import Button, Live, Part, Slider, SliderSource, live, run_live
from tests.helpers.live_runs import PENDULUM, scripted

FIRST = ("first", -5, 5, 0.0, None, "N m", "SW")


def pendulum(source=None):
    """A diagram of a pendulum whose torque is the sum of a port and of a source."""
    builder = DiagramBuilder()
    plant, _ = AddMultibodyPlantSceneGraph(builder, 1e-3)
    Parser(plant).AddModelsFromString(PENDULUM, "urdf")
    plant.Finalize()
    total = builder.AddSystem(Adder(1 if source is None else 2, 1))
    if source is not None:
        builder.AddSystem(source)
        builder.Connect(source.get_output_port(), total.get_input_port(1))
    builder.Connect(total.get_output_port(), plant.get_actuation_input_port())
    builder.ExportInput(total.get_input_port(0), "torque")
    return builder.Build()


def test_sliders_of_a_source_of_a_port_and_of_a_field(tmp_path):
    """Torques act from when they are set on, a button's function is called, and after a
    restart all is as at first."""
    diagram, presses = pendulum(SliderSource([Slider(*FIRST)])), []
    held = type("Held", (), {"gain": 1.0})()
    controls = [
        Slider("second", -5, 5, to=diagram.GetInputPort("torque")),
        Slider("gain", 0, 2, 0.5, to=(held, "gain")),
        Button("kick", act=presses.append),
    ]
    text = "0.5 first 2; 1 first 0; 1 second -2; 1 kick 1; 1.5 gain 2; 2 restart 1"
    given = {"headless": True, "duration": 2.5, "script": scripted(tmp_path, text)}
    run = live(diagram, controls, **given)
    q = run.data.position.values[:, 0]
    at = {t: q[np.argmin(np.abs(run.data.time.values - t))] for t in (0.5, 1, 1.5, 2.1)}
    assert run.ok and abs(at[0.5]) < 1e-9 < 0.1 < at[1]
    assert at[1.5] < at[1] and presses == [1.0] and held.gain == 2.0
    assert abs(at[2.1]) < 0.1  # it began again


def test_what_is_not_connected_is_said():
    """The exported port of the pendulum has no value."""
    run = live(pendulum(SliderSource([Slider(*FIRST)])), headless=True, duration=0.1)
    assert not run.ok and "input" in run.message.lower()


def test_a_simulator_of_ones_own_goes_on_from_where_it_is(tmp_path):
    diagram = pendulum()
    simulator = Simulator(diagram)
    simulator.get_mutable_context().SetTime(3.0)
    port = diagram.GetInputPort("torque")
    slider = Slider("second", -5, 5, 1.0, to=(port, 0))
    run = live(simulator, [slider], headless=True, duration=0.2)
    assert run.data.time.values[[0, -1]] == pytest.approx([3.0, 3.2])
    assert run.data.position.values[-1, 0] > 0


def test_parts_of_a_diagram_in_a_diagram_are_found():
    builder = DiagramBuilder()
    inner = builder.AddSystem(pendulum(SliderSource([Slider("first", -5, 5, 2.0)])))
    builder.ExportInput(inner.get_input_port(), "torque")
    diagram = builder.Build()
    slider = Slider("second", -5, 5, to=diagram.get_input_port())
    run = live(diagram, [slider], headless=True, duration=0.2)
    assert run.data.position.values[-1, 0] > 0


def test_two_plants_of_one_model_are_told_apart():
    builder = DiagramBuilder()
    inner = [builder.AddSystem(pendulum()) for _ in range(2)]
    for number, diagram in enumerate(inner):
        diagram.GetSubsystemByName("plant").set_name(f"plant{number}")
        builder.ExportInput(diagram.get_input_port(), f"torque{number}")
    diagram = builder.Build()
    slider = Slider("second", -5, 5, 2.0, to=diagram.GetInputPort("torque1"))
    still = Slider("first", -5, 5, 0.0, to=diagram.GetInputPort("torque0"))
    run = live(diagram, [still, slider], headless=True, duration=0.2)
    names = [str(name) for name in run.data.coordinate.values]
    assert [name.split(".")[0] for name in names] == ["plant0", "plant1"]
    ends = run.data.position.values[-1]
    assert abs(ends[0]) < 1e-9 < ends[1]


def test_a_slider_of_one_index_leaves_the_others():
    """In a diagram without a plant, of which no positions are kept."""
    builder = DiagramBuilder()
    port = builder.AddSystem(Adder(1, 3)).get_input_port(0)
    diagram = builder.Build()
    simulator = Simulator(diagram)
    context = port.get_system().GetMyContextFromRoot(simulator.get_mutable_context())
    port.FixValue(context, [1.0, 2.0, 3.0])
    slider = Slider("middle", -5, 5, 0.5, to=(port, 1))
    run = live(simulator, [slider], headless=True, duration=0.1)
    np.testing.assert_array_equal(port.Eval(context), [1.0, 0.5, 3.0])
    assert run.ok and run.data.position.shape[1] == 0
    with pytest.raises(InvalidInput, match="has 3 values, and so no index 3"):
        live(simulator, [Slider("end", -5, 5, to=(port, 3))], headless=True, duration=1)


def test_a_model_gets_sliders_of_its_joints(tmp_path):
    script = scripted(tmp_path, "0.1 FL_back -0.7; 0.2 volume 1")
    said = []
    button = Slider("volume", 0, 1, act=said.append)
    run = live(load("minitaur"), [button], headless=True, script=script)
    assert run.kind == "live.pose" and said == [1.0]
    q = run.data.position.sel(coordinate="minitaur_FL_back").values
    assert q[-1] == pytest.approx(-0.7)


class Clock(Part):
    kind, name, period, pace = "live.pose", "clock", 0.01, 0.5

    def __init__(self):
        self.times, self.starts = [], 0

    def advance(self, time):
        self.times.append(time)

    def restart(self):
        self.starts += 1


def test_time_goes_on_without_a_page_whatever_is_pressed(tmp_path):
    """Nobody could end a pause there; steps come in their order."""
    part = Clock()
    script = scripted(tmp_path, "0.1 pause 1; 0.1 step 1; 0.2 pace 0.1; 0.3 restart 1")
    run = run_live(Live(headless=True, duration=0.5, script=script), part)
    assert part.times == pytest.approx(np.arange(1, 51) * 0.01) and part.starts == 1
    assert run.metrics["commands"] == 4 and "0.5 s" in run.message


def test_two_controls_of_one_name():
    part = Clock()
    part.controls = [Button("pause")]
    with pytest.raises(InvalidInput, match="same name"):
        run_live(Live(headless=True, duration=0.1), part)
