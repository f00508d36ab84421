"""The samples of the homework: classic mistakes, each a small edit of the solution, and right code in other styles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.suites.check import Text
from grader.suites.mutants import edited
from labkit.workspace import HOMEWORK, HOMEWORK_FILE, lesson_folder, lesson_source

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Sample:
    """One homework: an idea, and the edits of the solution that make it.

    `caught_by` is the id of the check meant to fail it; None for right code.
    """

    id: str
    idea: Text
    edits: Sequence[tuple[str, str]] = ()
    caught_by: str | None = None

    def source(self) -> str:
        """Give the text of its `homework.py`. Raises `ValueError` when an edit no longer fits."""
        right = (lesson_source(HOMEWORK, "solution") / HOMEWORK_FILE).read_text("utf-8")
        return edited(self.id, right, self.edits)

    def lay_down(self, folder: Path) -> Path:
        """Make a submission with this homework alone below `folder`; give the path of its `lesson_22`."""
        package = folder / lesson_folder(HOMEWORK)
        package.mkdir(parents=True)
        (package / HOMEWORK_FILE).write_text(self.source(), "utf-8")
        return package


_SYNC = "            os.fsync(descriptor)\n        except BaseException:\n            # Never again"
_SYNC_FOLDER = "            sync_folder(self.path.parent)\n"
_WRITE = "            _write_whole(descriptor, line)\n"
_NOT_CLOSED = (
    '            # Never again on this file: the system may have dropped the bytes, and then a second sync "succeeds".\n            self._end()\n            raise\n',
    "            raise\n",
)
_DUE = '        if self.level == "fsync" or self._written - self._acknowledged >= self.group:\n'
_ID = '    if not isinstance(session_id, str) or not re.fullmatch(rf"[A-Za-z0-9_-]{{1,{MAX_ID}}}", session_id):\n'
_VERIFIED = '    return payload if line + b"\\n" == seal(payload) else None\n'
_REFUSED = '        if payload is None:\n            raise CorruptLogError(number, "校验和不符 (the checksum does not match)")\n'


def _id(condition: str) -> tuple[tuple[str, str], ...]:
    return ((_ID, f"    if not isinstance(session_id, str) or not {condition}:\n"),)


MUTANTS = (
    # --- 1 · durability ---
    Sample(
        "open-to-all",
        Text("日志文件人人可读：权限交给 umask", "The log can be read by all: its mode is left to the umask"),
        (("| os.O_CREAT | _BINARY, 0o600)", "| os.O_CREAT | _BINARY, 0o644)"),),
        "22-homework-lines",
    ),
    Sample(
        "never-synced",
        Text("fsync 级别从不同步，照样确认", "Level `fsync` acknowledges and never syncs"),
        ((_SYNC, _SYNC.replace("os.fsync(descriptor)", "pass")),),
        "22-homework-acknowledged",
    ),
    Sample(
        "group-answers-at-once",
        Text("group 还没同步就先确认", "`group` acknowledges before its sync"),
        (
            (_DUE, _DUE.replace("- self._acknowledged >= self.group", "% self.group == 0")),
            (
                "            return self.sync()\n        return []\n",
                "            return self.sync()\n        return self._acknowledge()\n",
            ),
        ),
        "22-homework-acknowledged",
    ),
    Sample(
        "left-in-python",
        Text("确认时，字节还在 Python 的缓冲区里", "Lines are acknowledged while Python still buffers them"),
        (
            (_WRITE, "            self._kept = getattr(self, '_kept', b'') + line\n"),
            (
                _SYNC,
                _SYNC.replace(
                    "            os.fsync",
                    "            _write_whole(descriptor, self.__dict__.pop('_kept', b''))\n            os.fsync",
                ),
            ),
            (
                "            waits = self._descriptor is not None and self._acknowledged < self._written\n",
                "            waits = self._descriptor is not None and bool(getattr(self, '_kept', b''))\n",
            ),
        ),
        "22-homework-acknowledged",
    ),
    Sample(
        "group-syncs-each",
        Text(
            "group 也一行同步一次：承诺守住了，好处没了",
            "`group` syncs each line: the promise holds, the gain is gone",
        ),
        (
            (_DUE, "        self._sync_quietly(descriptor)\n" + _DUE),
            (
                "    def close(self)",
                "    def _sync_quietly(self, descriptor: int) -> None:\n        if self.level == 'group':\n            os.fsync(descriptor)\n\n    def close(self)",
            ),
        ),
        "22-homework-price",
    ),
    Sample(
        "nameless",
        Text(
            "不同步目录：断电后文件可能没有名字",
            "The folder is not synced: after a power cut the file may have no name",
        ),
        ((_SYNC_FOLDER, "            pass\n"),),
        "22-homework-name",
    ),
    Sample(
        "name-hoped-for",
        Text("目录同步失败也当没事", "A failed sync of the folder is passed over"),
        (
            (
                _SYNC_FOLDER
                + "        except OSError:\n            os.close(descriptor)\n            raise\n",
                _SYNC_FOLDER + "        except OSError:\n            pass\n",
            ),
        ),
        "22-homework-name-failed",
    ),
    Sample(
        "tries-again",
        Text(
            "fsync 失败后再同步一次，“成功”就算数",
            "After a failed fsync it syncs again and believes the second",
        ),
        (
            (
                _SYNC.replace("            # Never again", ""),
                "            os.fsync(descriptor)\n        except OSError:\n            os.fsync(descriptor)\n        except BaseException:\n",
            ),
        ),
        "22-homework-failed-sync",
    ),
    Sample(
        "open-after-failed-sync",
        Text("fsync 失败只报错，不关日志", "A failed fsync is reported, and the log stays open"),
        (_NOT_CLOSED,),
        "22-homework-failed-sync",
    ),
    Sample(
        "open-after-asked-sync",
        Text(
            "append 里的同步失败会关日志，自己调用的 sync 失败却不关",
            "A sync that fails in `append` closes the log, one that was asked for does not",
        ),
        (
            _NOT_CLOSED,
            (
                "            return self.sync()\n        return []\n",
                "            try:\n                return self.sync()\n            except OSError:\n                self._end()\n                raise\n        return []\n",
            ),
        ),
        "22-homework-failed-sync",
    ),
    Sample(
        "left-open",
        Text("目录同步失败时忘了关描述符", "A failed sync of the folder leaves the descriptor open"),
        (
            (
                _SYNC_FOLDER + "        except OSError:\n            os.close(descriptor)\n",
                _SYNC_FOLDER + "        except OSError:\n",
            ),
        ),
        "22-homework-name-failed",
    ),
    Sample(
        "short-count-ignored",
        Text("不看 write 返回了多少", "What write returned is not looked at"),
        ((_WRITE, "            os.write(descriptor, line)\n"),),
        "22-homework-short",
    ),
    Sample(
        "glued-on",
        Text(
            "写失败后继续用同一个日志：下一行接在残片后面",
            "After a failed write the log goes on: the next line is glued onto what is left",
        ),
        (
            (
                "            # A full disk, or Ctrl-C: a piece of the line may be there, and nothing may be glued onto it.\n            self._end()\n            raise\n",
                "            raise\n",
            ),
        ),
        "22-homework-full",
    ),
    # --- 2 · containment ---
    Sample(
        "no-hyphen",
        Text("白名单漏了连字符和大写", "The list of what is allowed lacks hyphens and capitals"),
        _id('re.fullmatch(r"[a-z0-9_]{1,80}", session_id)'),
        "22-homework-safe",
    ),
    Sample(
        "dollar",
        Text("用 re.match 加 $：末尾换行混了过去", "re.match with `$`: a newline at the end gets through"),
        _id('re.match(r"[A-Za-z0-9_-]{1,80}$", session_id)'),
        "22-homework-unsafe",
    ),
    Sample(
        "any-letter",
        Text("\\w 认得所有文字，é 也放行", "`\\w` knows the letters of every script, é among them"),
        _id('re.fullmatch(r"[\\w-]{1,80}", session_id)'),
        "22-homework-unsafe",
    ),
    Sample(
        "any-length",
        Text("长度不限", "Any length will do"),
        _id('re.fullmatch(r"[A-Za-z0-9_-]+", session_id)'),
        "22-homework-unsafe",
    ),
    Sample(
        "denied-list",
        Text(
            "只挡 `/` 和 `..`：黑名单总有漏网",
            "Only `/` and `..` are refused: a list of what is denied is never complete",
        ),
        _id('(session_id and "/" not in session_id and ".." not in session_id)'),
        "22-homework-unsafe",
    ),
    Sample(
        "made-then-checked",
        Text("先建根目录再检查", "The root is made before the id is checked"),
        (
            (
                "    folder = Path(root) / check_id(session_id)\n",
                "    Path(root).mkdir(mode=0o700, exist_ok=True)\n    folder = Path(root) / check_id(session_id)\n",
            ),
        ),
        "22-homework-unsafe",
    ),
    Sample(
        "devices-by-case",
        Text("设备名只比大写", "Device names are compared in capitals only"),
        (("    if session_id.upper() in DEVICE_NAMES:\n", "    if session_id in DEVICE_NAMES:\n"),),
        "22-homework-devices",
    ),
    Sample(
        "folder-left-to-umask",
        Text("目录权限交给 umask", "The folder's mode is left to the umask"),
        (("    folder.mkdir(mode=0o700, exist_ok=True)\n", "    folder.mkdir(exist_ok=True)\n"),),
        "22-homework-private",
    ),
    Sample(
        "emptied",
        Text("打开会话时清空已有的日志", "Opening a session empties the log that is there"),
        (("os.O_WRONLY | os.O_CREAT, 0o600))", "os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))"),),
        "22-homework-kept",
    ),
    # --- 3 · integrity ---
    Sample(
        "sum-of-bytes",
        Text("拿字节之和当校验和", "The sum of the bytes passes for a checksum"),
        (("zlib.crc32(payload), payload)", "sum(payload), payload)"),),
        "22-homework-seal",
    ),
    Sample(
        "any-case",
        Text(
            "校验和按数值比较：大小写、空格都放过",
            "The checksum is compared as a number: capitals and spaces pass",
        ),
        (
            (
                _VERIFIED,
                "    try:\n        good = line[8:9] == b' ' and int(line[:8], 16) == zlib.crc32(payload)\n    except ValueError:\n        good = False\n    return payload if good else None\n",
            ),
        ),
        "22-homework-flips",
    ),
    Sample(
        "over-values",
        Text(
            "先解析再生成，校验的是值而不是字节",
            "It parses and writes anew: the checksum is of the value, not of the bytes",
        ),
        (
            ("import zlib\n", "import zlib\nimport json\n"),
            (
                _VERIFIED,
                "    def value(raw):\n        try:\n            return json.dumps(json.loads(raw)).encode()\n        except ValueError:\n            return raw\n\n"
                "    def spellings():\n        yield payload\n        for ascii in (True, False):\n            for gaps in ((',', ':'), (', ', ': ')):\n"
                "                yield json.dumps(json.loads(payload), ensure_ascii=ascii, separators=gaps).encode()\n\n"
                "    try:\n        good = any(line[:9] == seal(one)[:9] for one in spellings())\n    except ValueError:\n        good = False\n    return payload if good else None\n",
            ),
        ),
        "22-homework-bytes",
    ),
    Sample(
        "bad-lines-skipped",
        Text("校验不过的行跳过去", "A line that does not verify is skipped"),
        ((_REFUSED, "        if payload is None:\n            continue\n"),),
        "22-homework-flips",
    ),
    Sample(
        "last-forgiven",
        Text("最后一行坏了就当撕裂，不管它有没有结束", "A bad last line counts as torn, ended or not"),
        (
            (
                _REFUSED,
                "        if payload is None and number == len(ended):\n            good = sum(len(one) + 1 for one in ended[:-1])\n            return SealedLog(tuple(payloads), good, raw[good:])\n"
                + _REFUSED,
            ),
        ),
        "22-homework-torn",
    ),
    Sample(
        "counted-from-0",
        Text("行号从 0 数起", "Lines are counted from 0"),
        (("enumerate(ended, start=1)", "enumerate(ended, start=0)"),),
        "22-homework-named",
    ),
    Sample(
        "content-shown",
        Text("报错时把坏行打印出来", "The error shows the bad line"),
        (
            (
                'raise CorruptLogError(number, "校验和不符 (the checksum does not match)")',
                "raise CorruptLogError(number, repr(line))",
            ),
        ),
        "22-homework-named",
    ),
    Sample(
        "torn-costs-two",
        Text("尾部撕裂时，把前一行也丢掉", "With a torn tail the line before it is dropped, too"),
        (
            (
                "    return SealedLog(tuple(payloads), len(raw) - len(torn), torn)\n",
                "    if torn and payloads:\n        return SealedLog(tuple(payloads[:-1]), len(raw) - len(torn), torn)\n    return SealedLog(tuple(payloads), len(raw) - len(torn), torn)\n",
            ),
        ),
        "22-homework-crash-proof",
    ),
)

VARIANTS = (
    Sample(
        "file-object",
        Text("用无缓冲的文件对象写", "It writes with an unbuffered file object"),
        (
            (
                _WRITE,
                "            file = open(descriptor, 'ab', buffering=0, closefd=False)\n            rest = line\n            while rest:\n                rest = rest[file.write(rest):]\n",
            ),
        ),
    ),
    Sample(
        "data-only",
        Text("用 fdatasync 代替 fsync", "fdatasync instead of fsync"),
        ((_SYNC, _SYNC.replace("os.fsync", "os.fdatasync")),),
    ),
    Sample(
        "folder-once",
        Text("文件是新的才同步目录", "The folder is synced only for a new file"),
        (
            (
                "        descriptor = os.open(self.path, ",
                "        is_new = not self.path.exists()\n        descriptor = os.open(self.path, ",
            ),
            (_SYNC_FOLDER, "            if is_new:\n                sync_folder(self.path.parent)\n"),
        ),
    ),
    Sample(
        "cuts-back",
        Text(
            "写失败后先截掉残片再关闭", "After a failed write the piece is cut off before the log is closed"
        ),
        (
            (_WRITE, "            before = os.fstat(descriptor).st_size\n" + _WRITE),
            (
                "            # A full disk, or Ctrl-C: a piece",
                "            os.ftruncate(descriptor, before)\n            # A full disk, or Ctrl-C: a piece",
            ),
        ),
    ),
    Sample(
        "whole-counts",
        Text("只差换行的最后一行也算数", "A last line that lacks its newline alone counts"),
        (
            (
                "    # The newline is a line's last byte.",
                "    if torn and unseal(torn) is not None:\n        return SealedLog((*payloads, unseal(torn)), len(raw), b'')\n    # The newline is a line's last byte.",
            ),
        ),
    ),
)
