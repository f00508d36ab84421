"""The grader's own words for a learner, in both languages. What a check says comes from the check itself."""

from __future__ import annotations

from typing import Literal

from grader.suites.check import Text
from labkit.workspace import HOMEWORK, language

Language = Literal["zh", "en"]

TOPICS: dict[str, tuple[Text, ...]] = {
    "22": (
        Text("追加与重放", "append and replay"),
        Text("编号连续", "contiguous numbers"),
        Text("并发保序", "call order"),
        Text("撕裂的尾部", "torn tail"),
        Text("拒绝坏行", "bad line refused"),
    ),
    "04": (
        Text("契约", "contract"),
        Text("任务与待办箱", "tasks and inbox"),
        Text("边界", "boundary"),
        Text("验证", "verification"),
        Text("裁决", "decision"),
        Text("摘要", "digest"),
        Text("状态文件", "state file"),
    ),
    HOMEWORK: (
        Text("确认与同步", "acknowledging and syncing"),
        Text("会话 ID", "session id"),
        Text("校验和", "checksum"),
        Text("崩溃证明", "crash proof"),
    ),
}
"""What the required tests of a lesson, or of the homework, cover, in their order."""

VERDICTS: dict[str, Text] = {
    "complete": Text("全部通过", "complete"),
    "ok": Text("必做通过", "ok"),
    "fail": Text("未通过", "failed"),
    "not-implemented": Text("尚未实现", "not implemented"),
    "timeout": Text("超时", "out of time"),
    "memory": Text("内存超限", "out of memory"),
    "crash": Text("进程崩溃", "crashed"),
    "tamper": Text("干扰评分", "tampering"),
    "missing-file": Text("缺文件", "file missing"),
    "syntax-error": Text("语法错误", "syntax error"),
    "import-error": Text("导入失败", "import failed"),
    "grader-error": Text("评分器出错", "grader error"),
}

DIMENSIONS: dict[str, Text] = {
    "concurrency": Text("并发", "concurrency"),
    "recovery": Text("恢复", "recovery"),
    "integrity": Text("完整性", "integrity"),
    "diagnosis": Text("诊断", "diagnosis"),
    "claim": Text("领取", "claim"),
    "resume": Text("恢复执行", "resume"),
    "evidence": Text("证据", "evidence"),
    "durability": Text("持久", "durability"),
    "containment": Text("不越界", "containment"),
}

SAID: dict[str, Text] = {
    "required": Text("必做", "Required"),
    "extended": Text("扩展", "Extended"),
    "lesson": Text("第 {lesson} 课", "Lesson {lesson}"),
    "homework": Text("第 22 课 · 作业", "Lesson 22, homework"),
    "score": Text("{title}：{passed}/{total}", "{title}: {passed}/{total}"),
    "unwritten": Text("{count} 项尚未实现", "{count} not implemented yet"),
    "write-next": Text(
        "补全空着的函数体；有步骤编号的，从编号最小的一步写起。",
        "Fill in the bodies that are empty; where the steps are numbered, begin with the lowest.",
    ),
    "first": Text("先看这一项：{id} {title}", "Start with {id}: {title}"),
    "place": Text("你的代码：{place}", "Your code: {place}"),
    "hint": Text("下一步：{hint}", "Next step: {hint}"),
    "covered": Text("覆盖：{topics}", "covered: {topics}"),
    "standing": Text(
        "ok：{ok} · complete：{complete} · 得分 {earned}/{worth}",
        "ok: {ok} · complete: {complete} · points {earned}/{worth}",
    ),
    "isolation": Text("隔离：{rung} · 随机种子：{seed}", "isolation: {rung} · seed: {seed}"),
    "bare": Text(
        "这台机器上没有可用的隔离：代码能读写你能读写的一切。只检查你自己会运行的代码；装上 bubblewrap 可以隔离。",
        "Nothing on this machine isolates: the code can touch whatever you can. Check only code that you would run "
        "yourself; bubblewrap, once installed, isolates it.",
    ),
    "yes": Text("是", "yes"),
    "no": Text("否", "no"),
    "submission": Text("提交", "Submission"),
    "number": Text("课", "Lesson"),
    "verdict": Text("结论", "Verdict"),
    "points": Text("得分", "Points"),
    "first-failure": Text("先看", "Start with"),
    "feedback": Text("给 {name} 的反馈", "Feedback for {name}"),
    "hand-in": Text("收作业", "hand-in"),
    "colon": Text("：", ": "),
    "left-out": Text("没有收取的文件", "Files that were not taken"),
    "notebooks": Text("执行了的 notebook（不计分）", "Notebooks that were executed (no marks)"),
    "cell": Text("第 {cell} 格", "cell {cell}"),
    "our-fault": Text(
        "评分器自己出了错，这份结果还不作数：重新评分之前不扣任何分。",
        "The grader itself failed here. This result does not count until it was graded again; no marks are lost.",
    ),
    "the-same": Text("另有 {count} 项结果相同", "{count} more ended the same way"),
    "nothing-left": Text(
        "全部通过，这一课没有遗留。", "Everything passed; there is nothing left to do here."
    ),
    "reproduce": Text(
        "在自己的电脑上可以重做同样的检查：`make verify`，或者笔记本里的“检查”按钮。每次的输入都重新抽取。",
        "The same checks run on your own machine: `make verify`, or the *Check* button of the notebooks. "
        "Inputs are drawn anew each time.",
    ),
}


def say(key: str, language: Language, **values: object) -> str:
    """Give one sentence in a language, with its values filled in."""
    return str(getattr(SAID[key], language)).format(**values)


def lesson_name(number: str) -> Text:
    """Give the name of a lesson, or of the homework, in both languages."""
    key = "homework" if number == HOMEWORK else "lesson"
    return Text(say(key, "zh", lesson=number), say(key, "en", lesson=number))


def chosen_language(asked: str | None = None) -> Language:
    """Give the language asked for (``zh`` or ``en``), else the learner's."""
    return language() if asked is None else "zh" if asked == "zh" else "en"
