"""Fixtures of the lesson 04 tests, a pytest plugin: `pytest_plugins = ["tests.spine_fixtures"]`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from labkit.faults.round_sweep import fresh_copy
from tests.spine_lab import Lab, template


@pytest.fixture
def memory_path() -> Iterator[Path]:
    """A folder in memory where the system has such a place: a kill does not care, and a sync costs nothing there."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """A lab whose verification is one quick command."""
    return Lab(fresh_copy(template(quick=True), tmp_path / "issue-garden-lab"))


@pytest.fixture
def claimed(lab: Lab) -> Lab:
    """A lab interrupted after its claim."""
    lab.interrupt()
    return lab


@pytest.fixture
def real_lab(tmp_path: Path) -> Lab:
    """A lab with the lesson's own three commands."""
    return Lab(fresh_copy(template(quick=False), tmp_path / "issue-garden-lab"))
