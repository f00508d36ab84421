"""An agent that never ends, and that has started another process, which never ends either."""

import subprocess
import sys
import time
from pathlib import Path

helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=True)
Path("..", "helper.pid").write_text(str(helper.pid), encoding="utf-8")
time.sleep(3600)
