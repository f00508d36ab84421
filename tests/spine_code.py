"""Makes `issue_garden` importable here as the lab has it: the base's given modules, and the solution's spine."""

from __future__ import annotations

import sys
from pathlib import Path

KIT = Path(__file__).resolve().parents[1]
FOLDERS = (KIT / "solution" / "lesson_04", KIT / "assets" / "issue-garden-lab")
sys.path[:0] = [str(folder) for folder in FOLDERS if str(folder) not in sys.path]
