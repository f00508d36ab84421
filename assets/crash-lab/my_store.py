"""Your own code under the crash lab / 让崩溃实验室看你自己的代码

PROMISES, work and recover are all that it needs. / 只需要 PROMISES、work、recover 三样。
"""

import json
from pathlib import Path

PROMISES = ("recovery-ends", "readable", "saved-survives")


def save(path: Path, value: int) -> None:
    """Replace the file as a whole / 整份替换"""
    temporary = path.with_suffix(".tmp")
    with temporary.open("w") as file:
        json.dump({"n": value}, file)
        # What is missing here? / 这里少了什么？
    temporary.replace(path)
    # And here? / 这里呢？


def work(folder, events, acknowledge):
    """Save again and again; say so each time / 一次次保存，每次都说“存好了”"""
    for n in range(1, events + 1):
        save(folder / "state.json", n)
        acknowledge(n)


def recover(folder):
    """Read what a crash left; no file yet is fine / 读崩溃留下的文件；还没有文件也可以"""
    path = folder / "state.json"
    if not path.exists():
        return {"read": [], "error": None, "after": None}
    return {"read": [json.loads(path.read_text())["n"]], "error": None, "after": None}
