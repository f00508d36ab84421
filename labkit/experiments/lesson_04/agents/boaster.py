"""An agent that is sure of itself: it leaves a remark in the source, and reports that everything works."""

import json
from pathlib import Path

with Path("src/search.mjs").open("a", encoding="utf-8") as source:
    source.write("// punctuation: done\n")
print(json.dumps({"status": "changed", "summary": "punctuation is ignored now, all tests pass"}))
