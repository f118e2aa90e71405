"""Names of links, joints and frames that an SDF model may have."""

from __future__ import annotations


class Names:
    """Gives every link, joint and frame of a model a name of its own.

    MJCF lets a joint have the name of a body; SDF does not.

    Attributes:
        changed: new names by old ones, of those that could not stay.
    """

    def __init__(self):
        self._taken = {"world"}
        self.changed: dict[str, str] = {}

    def take(self, name: str, ending: str = "", *, is_ours: bool = False) -> str:
        """A name that is still free: as given, with the ending, or with a number.

        Args:
            name: to take.
            ending: to add where the name is taken.
            is_ours: whether the name is none of the file's.
        """
        clean = name.replace("::", "/")
        if clean.startswith("__") and clean.endswith("__"):
            clean = clean.strip("_") or "unnamed"
        found = clean
        if found in self._taken and ending:
            found = f"{clean}_{ending}"
        number = 2
        while found in self._taken:
            found, number = f"{clean}_{number}", number + 1
        self._taken.add(found)
        if found != name and not is_ours:
            self.changed[name] = found
        return found
