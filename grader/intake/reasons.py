"""Why something was left out, or cannot be graded at all: every reason that intake gives, in both languages."""

from __future__ import annotations

from grader.suites.check import Text


class UnreadableError(Exception):
    """This submission cannot be opened. `problem` says why, and what to do next; it names no content."""

    def __init__(self, key: str, **values: object) -> None:
        self.problem = problem(key, **values)
        super().__init__(self.problem.en)


LEFT_OUT: dict[str, Text] = {
    "unnamed": Text("不是课程要交的文件", "not a file that the kit names"),
    "odd": Text("链接、管道或设备，不是普通文件", "a link, pipe or device, not a plain file"),
    "large": Text("太大", "too large"),
    "unreadable": Text("读不出来", "cannot be read"),
    "outside": Text("名字指向提交之外", "its name leads out of the submission"),
    "duplicate": Text("同一个名字出现了不止一次", "its name stands there more than once"),
    "misnamed": Text("名字的大小写或写法不对", "its name differs in case or spelling from the kit's"),
    "encrypted": Text("加了密", "encrypted"),
    "method": Text("用了不支持的压缩方法", "packed by a method that is not read"),
    "damaged": Text("已损坏", "damaged"),
    "archive": Text("压缩包里的压缩包，不再打开", "an archive inside the submission; not opened"),
    "deep": Text("文件夹嵌套太深", "too many folders down"),
    "too-many": Text("文件太多，其余的没有看", "too many files; the rest was not looked at"),
    "more": Text("另有这么多个文件，没有一一列出", "so many more, not listed one by one"),
}
"""What each `LeftOut.why` means. `unreadable (…)` carries the system's own words behind it."""

_PROBLEMS: dict[str, Text] = {
    "system": Text("无法读取这份提交（{why}）", "this submission cannot be read ({why})"),
    "gone": Text("这份提交不在了", "this submission is no longer there"),
    "odd": Text(
        "这份提交是链接、管道或设备，请换成文件夹或压缩包",
        "this is a link, pipe or device; hand in a folder or an archive",
    ),
    "empty-file": Text("文件是空的，请重新上传", "the file is empty; upload it again"),
    "not-an-archive": Text(
        "这不是文件夹，也不是能读的压缩包；请交 zip 或 tar，或文件夹",
        "this is neither a folder nor an archive that is read here; hand in a zip, a tar or a folder",
    ),
    "other-archive": Text(
        "{kind} 压缩包在这里不能读，请改用 zip", "{kind} archives are not read here; make it a zip"
    ),
    "huge": Text(
        "文件超过 {most} MiB；只交课程要的文件，例如用 statelab submit 打包",
        "the file is larger than {most} MiB; hand in the lesson's files only, as statelab submit does",
    ),
    "damaged": Text(
        "压缩包已损坏，或只传上来一部分；请重新打包并上传",
        "the archive is damaged, or only part of it arrived; make it again and upload it again",
    ),
    "too-many": Text(
        "里面的文件超过 {most} 个；只交课程要的文件",
        "it holds more than {most} files; hand in the lesson's files only",
    ),
    "bomb": Text(
        "解开后超过 {most} MiB，不再读下去；只交课程要的文件",
        "it unpacks to more than {most} MiB and was not read further; hand in the lesson's files only",
    ),
    "overlap": Text(
        "压缩包里的文件互相重叠，正常的打包工具不会这样；请重新打包",
        "entries of the archive overlap, which no packing tool does; make it again",
    ),
    "slow": Text(
        "{most} 秒内没有读完，不再读下去", "it could not be read within {most} seconds, and was given up"
    ),
    "no-git": Text(
        "这是 Git 仓库，但这台机器上没有 git；装上 git 再评",
        "this is a Git repository, and git is not installed on this machine; install it and grade again",
    ),
    "no-commit": Text(
        "Git 仓库里没有可读的提交（HEAD）；请先 git commit，或直接交文件夹",
        "the Git repository has no commit that can be read (HEAD); commit first, or hand in a plain folder",
    ),
    "borrowed-objects": Text(
        "Git 仓库的对象不在仓库里（{name}），只读仓库自己的；请用 git clone 做一份完整的",
        "the Git repository keeps objects elsewhere ({name}), and only its own are read; hand in a full clone",
    ),
    "git-failed": Text(
        "git 读不出这个仓库的 HEAD；请用 git fsck 检查，或直接交文件夹",
        "git cannot read HEAD of this repository; check it with git fsck, or hand in a plain folder",
    ),
    "unexpected": Text(
        "这份提交读到一半出错（{why}）；请重新打包",
        "reading this submission failed half way ({why}); make it again",
    ),
}


def problem(key: str, **values: object) -> Text:
    """Give one of intake's sentences with its values filled in, in both languages."""
    text = _PROBLEMS[key]
    return Text(text.zh.format(**values), text.en.format(**values))


def reason(why: str) -> Text:
    """Say in both languages what a `LeftOut.why` means."""
    word, _, detail = why.partition(" ")
    text = LEFT_OUT.get(word, LEFT_OUT["unreadable"])
    return Text(f"{text.zh} {detail}".rstrip(), f"{text.en} {detail}".rstrip())
