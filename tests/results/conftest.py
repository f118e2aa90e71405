"""Shared by the tests of results."""

import pytest

from tests.helpers.result_samples import make


@pytest.fixture
def saved(tmp_path):
    return make().save(tmp_path / "run.nc")
