"""Exercise 2: a session's id never leads out of its root, and nobody else can read what lies there. H6 and H7."""
# ruff: noqa: D400 - a docstring is the learner's title

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

from grader.suites.check import Text
from grader.suites.expect import Trial
from grader.suites.homework.drawn import word
from grader.suites.homework.scenarios import list_all, open_session, source_of
from grader.suites.homework.suite import check

if TYPE_CHECKING:
    from random import Random

    from grader.lab import Lab

ROOT, LOG, MAX_ID = "sessions", "events.jsonl", 80
SAFE = string.ascii_letters + string.digits + "_-"


@check(
    "22-homework-safe",
    rules=("H6",),
    dimension="containment",
    required=True,
    hint=Text(
        "允许的恰好是 1–80 个 ASCII 字母、数字、_ 和 -；ID 原样成为目录名。",
        "Allowed are exactly 1 to 80 ASCII letters, digits, _ and -; the id as it is becomes the folder's name.",
    ),
)
async def a_safe_id_has_a_file_below_the_root(lab: Lab) -> None:
    """安全的 ID 各有一个文件，就在根目录下以它命名的目录里

    Every safe id has a file of its own, in the folder of its name below the root
    """
    drawn = ["".join(lab.draw.choices(SAFE, k=size)) for size in (7, 33, MAX_ID)]
    for session_id in [*drawn, "7", "_", "-", f"A-{word(lab.draw)}", f"{lab.draw.randrange(10**9)}"]:
        trial = Trial(
            "H6",
            f"打开一个 {len(session_id)} 个字符的安全 ID",
            f"Open a safe id of length {len(session_id)}",
        )
        found = await trial.gives(_open(lab, session_id))
        place = f"{ROOT}/{session_id}/{LOG}"
        trial.require(
            found == place,
            Text("返回 ROOT/ID/events.jsonl", "it returns ROOT/ID/events.jsonl"),
            Text("另一个路径", "another path"),
        )
        trial.require(
            trial.bytes_on_disk(lab, place) == b"",
            Text("一个空文件", "an empty file"),
            Text("里面有内容", "it holds something"),
        )


@check(
    "22-homework-unsafe",
    rules=("H6",),
    dimension="containment",
    required=True,
    hint=Text(
        "白名单，整串匹配：re.fullmatch 加 [A-Za-z0-9_-]。`$` 放过末尾的换行，\\w 放过别国的字母；先检查，再碰磁盘，也不要替人改好。",
        "Match the whole string against a list of what is allowed: re.fullmatch with [A-Za-z0-9_-]. `$` lets a final "
        "newline pass and \\w letters of every script. Check before you touch the disk, and correct nothing.",
    ),
)
async def an_unsafe_id_is_refused(lab: Lab) -> None:
    """不安全的 ID 一律拒绝：不建任何文件或目录，错误里也不重复它

    An unsafe id is refused: nothing is made anywhere, and the error does not repeat it
    """
    lab.plant("before", b"")
    before = await lab.scenario(source_of(list_all))
    for zh, en, session_id in _unsafe(lab.draw, str(lab.folder)):
        trial = Trial("H6", f"打开这样的 ID：{zh}", f"Open an id that is {en}")
        error = await trial.refuses(_open(lab, session_id), ValueError, TypeError)
        if isinstance(session_id, str) and len(session_id) > 5:
            trial.echoes_nothing(error, (session_id, session_id.strip("./\\\n ")))
        left = await lab.scenario(source_of(list_all))
        trial.require(
            left == before and lab.names() == ["before"],
            Text("什么也没有建", "nothing was made"),
            Text("多出了文件或目录", "there are new files or folders"),
        )


def _unsafe(draw: Random, folder: str) -> list[tuple[str, str, Any]]:
    name = word(draw)
    return [
        ("空的", "empty", ""),
        ("`.`", "`.`", "."),
        ("`..`", "`..`", ".."),
        ("`../` 开头", "one with `../`", f"../{name}"),
        ("带 `/`", "one with a `/`", f"{name}/{name}"),
        ("带 `\\`", "one with a `\\`", f"..\\{name}"),
        ("绝对路径", "an absolute path", f"{folder}/{name}"),
        ("末尾有换行", "one with a newline at its end", f"{name}\n"),
        ("开头有空格", "one with a space before it", f" {name}"),
        ("带点号", "one with a dot", f"{name}.jsonl"),
        ("带 é", "one with é", f"{name}é"),
        ("汉字", "Chinese characters", "会话"),
        ("全角数字", "digits of another script", "１２３"),
        ("带零字节", "one with a zero byte", f"{name}\x00"),
        ("81 个字符", "81 characters long", "".join(draw.choices(SAFE, k=MAX_ID + 1))),
        ("空值", "None", None),
        ("数字", "a number", 7),
    ]


@check(
    "22-homework-devices",
    rules=("H6",),
    dimension="containment",
    core=True,
    hint=Text(
        "CON、NUL、COM1 这些名字在 Windows 上是设备，大小写不论；比较之前先统一大小写，比较整个名字。",
        "CON, NUL, COM1 and the like are devices on Windows, in any case: compare the whole name, with its case set aside.",
    ),
)
async def a_device_is_no_session(lab: Lab) -> None:
    """Windows 的设备名不能当 ID，大小写都不行；只是像它们的可以

    The name of a Windows device is no id, in any case; a name that only looks like one is
    """
    number = lab.draw.randrange(1, 10)
    for name in ("CON", "nul", "Aux", "prn", f"Com{number}", f"LPT{number}"):
        trial = Trial("H6", f"打开 ID {name}", f"Open the id {name}")
        await trial.refuses(_open(lab, name), ValueError)
    for name in ("CONSOLE", "null", f"COM{number}0", f"aux-{number}"):
        trial = Trial("H6", f"打开 ID {name}", f"Open the id {name}")
        await trial.gives(_open(lab, name))


@check(
    "22-homework-private",
    rules=("H7",),
    dimension="containment",
    required=True,
    hint=Text(
        "mkdir 和 os.open 建的时候就带上 0o700 和 0o600，根目录和会话目录各建一次：parents=True 建出的上级目录不看 mode。",
        "Give mkdir 0o700 and os.open 0o600 as they make things, and make root and session folder one by one: parents=True "
        "gives the folders above another mode.",
    ),
)
async def what_is_made_is_private(lab: Lab) -> None:
    """不论 umask，根目录和会话目录是 0700，文件是 0600

    Whatever the umask, the root and the session's folder are 0700 and the file is 0600
    """
    for umask in (0o000, 0o022):
        trial = Trial(
            "H7", f"umask {umask:03o} 时打开一个会话", f"Open a session while the umask is {umask:03o}"
        )
        root, session_id = word(lab.draw), word(lab.draw)
        await trial.gives(_open(lab, session_id, root=root, umask=umask))
        for place, due, zh, en in (
            (root, 0o700, "根目录", "the root folder"),
            (f"{root}/{session_id}", 0o700, "会话目录", "the session's folder"),
            (f"{root}/{session_id}/{LOG}", 0o600, "文件", "the file"),
        ):
            mode = lab.mode(place)
            trial.require(
                mode == due,
                Text(f"{zh}的权限是 {due:04o}", f"{en} has mode {due:04o}"),
                Text(f"{mode:04o}", f"{mode:04o}"),
            )


@check(
    "22-homework-kept",
    rules=("H7",),
    dimension="containment",
    core=True,
    hint=Text(
        'O_CREAT 遇到已有的文件什么也不做；O_TRUNC 和 open(…, "w") 会把它清空。',
        'O_CREAT leaves a file that is there alone; O_TRUNC, and open(…, "w"), would empty it.',
    ),
)
async def a_log_that_is_there_stays(lab: Lab) -> None:
    """会话已经有日志：再次打开，一个字节也不变

    A session that has a log keeps it: opening it again changes no byte
    """
    trial = Trial("H7", "再次打开已有日志的会话", "Open a session again that has a log")
    session_id = word(lab.draw)
    place, raw = f"{ROOT}/{session_id}/{LOG}", f"{word(lab.draw)}\n".encode()
    lab.plant(place, raw)
    for _ in range(2):
        found = await trial.gives(_open(lab, session_id))
        trial.require(
            found == place and trial.bytes_on_disk(lab, place) == raw,
            Text("同一个文件，内容不变", "the same file, unchanged"),
            Text("换了文件，或内容变了", "another file, or it changed"),
        )


def _open(lab: Lab, session_id: Any, root: str = ROOT, umask: int = 0o022) -> Any:
    return lab.scenario(source_of(open_session), {"root": root, "id": session_id, "umask": umask})
