"""The stores that the crash lab knows by name: one scenario each (docs/crash-lab.md says how to write one)."""

from __future__ import annotations

from pathlib import Path

STORES = (
    "naive",
    "starter",
    "lesson",
    "durable-os",
    "durable-fsync",
    "durable-group",
    "spine-starter",
    "spine",
    "spine-closed",
    "spine-resumed",
)
"""The names, in the order in which a learner meets them."""


def scenario_path(store: str) -> Path:
    """Return the file of a store's scenario. Raises: LookupError that lists the stores there are."""
    if store not in STORES:
        raise LookupError(
            f"{store}: no store is called so; choose one of {', '.join(STORES)}, or --scenario FILE.py"
        )
    return Path(__file__).with_name(f"{store.replace('-', '_')}.py")
