"""Model files written for a test, and how they are refused."""


def assert_problem(caught, path, *words):
    message = str(caught.value)
    assert "\n" not in message and caught.value.path == path
    assert message.startswith(f"{path}: ")
    for word in words:
        assert word in message.removeprefix(str(path)), message


def write(folder, text, name="robot.drakebots.yaml"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path
