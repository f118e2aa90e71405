"""Parameters of any model from measurements, by multiple shooting.

    problem = Identification("my_robot.urdf", "run.csv", ("friction", "mass:trunk"))
    found = identify(problem)
    print(found.message)
    write_parameters(found, "found.yaml")      # drakebots simulate found.yaml
    plot_identified(found, "found.png")
    compare("plan.nc", "log.mcap")             # signal by signal

:class:`FittedStepper` is the step of :class:`drakebots.multibody.TimeStepper` with
parameters as symbols, and its exact derivatives.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.identify.compare import Compared, compare, plot_compared
    from drakebots.identify.fit import Identification, identify
    from drakebots.identify.measured import Measured, read_measured
    from drakebots.identify.outcome import plot_identified, write_parameters
    from drakebots.identify.stepper import FittedStepper

__all__, __getattr__, __dir__ = lazy_face(__name__)
