"""The robots, and the registry that says what each of them does.

A robot is a room of its own with one pattern: `model/` what it is, `simulate`, `plan`,
`track` what it does, `plots` and `view` what its results look like. Robots never import
each other. docs/fifth_robot.md says how to write another one.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.registry import (
        Kind,
        Robot,
        Task,
        find_kind,
        find_task,
        kinds,
        names_stored_plan,
        plan,
        plot,
        record,
        register,
        robots,
        simulate,
        stored_plan,
        track,
        warn_if_failed,
    )
    from drakebots.robots.scenario import (
        Scenario,
        is_scenario,
        read_scenario,
        scenario_schema,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
