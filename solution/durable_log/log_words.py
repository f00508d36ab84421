"""What `statelab log` says, in Chinese and English: one entry a text, each written for its own reader."""

from __future__ import annotations

from typing import NamedTuple

from .foreign import Finding


class Text(NamedTuple):
    """One text in both languages."""

    zh: str
    en: str

    def in_(self, language: str) -> str:
        """Give the text in `zh` or `en`."""
        return self.zh if language == "zh" else self.en


FINDINGS = {
    "torn-tail": Text(
        "末尾有 {length} 字节不成记录：写到一半就停了",
        "torn tail: the last {length} bytes are an unfinished record",
    ),
    "nul-tail": Text(
        "末尾 {length} 字节以 NUL 填充：断电后常见",
        "torn tail of {length} bytes that ends in NULs, as power loss leaves it",
    ),
    "nul-file": Text("整个文件只有 NUL 字节：历史已经丢失", "nothing but NUL bytes: the history is lost"),
    "nul-run": Text("夹着 {length} 个 NUL 字节", "a run of {length} NUL bytes"),
    "fused-records": Text(
        "两条完整记录挤在同一行，后一条从偏移 {other} 开始",
        "two whole records share the line; the second begins at offset {other}",
    ),
    "fragment-and-record": Text(
        "残片后面直接粘着一条完整记录，它从偏移 {other} 开始",
        "a fragment, and glued to it a whole record that begins at offset {other}",
    ),
    "fragment": Text("记录只写了开头，就被换行截断", "the beginning of a record, ended by a newline"),
    "raw-newline": Text(
        "字符串里有未转义的换行，一条记录散在 {lines} 行里",
        "a raw newline inside a string: one record lies over {lines} lines",
    ),
    "split-record": Text("一条记录被换行拆成 {lines} 行", "one record is broken over {lines} lines"),
    "splice": Text(
        "一条记录插进了另一条的中间，插入处在偏移 {other}",
        "a record was written into the middle of another, at offset {other}",
    ),
    "bom": Text("以 BOM 开头，严格的读取器会拒绝", "a byte order mark, which a strict reader refuses"),
    "utf-16": Text("这是 UTF-16 编码，日志应当用 UTF-8", "UTF-16 text; a log is UTF-8"),
    "utf-8": Text("不是合法的 UTF-8", "not valid UTF-8"),
    "encoded-surrogate": Text(
        "代理字符被直接编码成 UTF-8，这不合法", "a surrogate encoded as UTF-8, which is not valid"
    ),
    "blank-line": Text("空行：正常的写入从不产生它", "a blank line; no writer of records makes one"),
    "not-an-object": Text("是 JSON，却不是对象", "JSON, but not an object"),
    "not-json": Text("不是合法 JSON", "not valid JSON"),
    "control-character": Text("字符串里有未转义的控制字符", "a raw control character inside a string"),
    "doubled-key": Text(
        "同一个对象里有重复的键，不同的读取器会取不同的值",
        "a key stands twice in one object; readers differ in which one counts",
    ),
    "nan": Text("NaN 或 Infinity 不是 JSON", "NaN or Infinity is not JSON"),
    "number-overflow": Text("数字超出双精度范围", "a number too large for a double"),
    "integer-too-long": Text("整数位数过多，读不回来", "an integer of more digits than can be read back"),
    "too-deep": Text("嵌套过深", "nested too deep"),
    "too-long": Text(
        "这一行有 {length} 字节，超过上限，无法判断",
        "{length} bytes in one line: over the limit, so it was not judged",
    ),
    "gzip": Text("压缩文件不完整或已损坏", "the compressed file is cut short or damaged"),
    "not-an-event": Text("是 JSON，却不是这种日志的事件", "JSON, but no event of this format"),
    "wrong-sequence": Text("序号不连续：这里应为 {due}", "the sequence is not contiguous: {due} is due here"),
    "record": Text("与这种日志的记录格式或哈希链不符", "not the record, or not the hash, that is due here"),
    "crlf": Text(
        "行尾是 CRLF；JSON 照样能读，逐字节的哈希会变",
        "lines end in CRLF; still readable, but hashes over bytes differ",
    ),
    "line-separator": Text(
        "文字里有 U+0085、U+2028 或 U+2029：它们是数据，别按它们断行",
        "U+0085, U+2028 or U+2029 inside text: data, not the end of a line",
    ),
    "huge-integer": Text(
        "整数超过 64 位，有的读取器会悄悄改掉它",
        "an integer past 64 bits, which some readers change silently",
    ),
    "lone-surrogate": Text(
        "转义的半个代理字符：读得出，输出时可能出错",
        "an escaped lone surrogate: readable, and may fail on output",
    ),
    "duplicate": Text("与第 {other} 行逐字节相同", "the same bytes as line {other}"),
    "missing-newline": Text(
        "最后一条记录完整，只缺换行", "the last record is whole and lacks only its newline"
    ),
    "mixed": Text("从这里起混进了另一种格式的记录", "records of another format are mixed in, here first"),
    "growing": Text(
        "读取期间文件还在增长：末尾可能正在写",
        "the file grew while it was read; its end may be in the making",
    ),
}

SECOND_IN_TAIL = Text("；其中从偏移 {other} 起是完整记录", "; from offset {other} on it holds a whole record")

ADVICE = {
    "torn": Text(
        "之前的记录都算数。写入方已停止时，可以修复：statelab log repair {path}",
        "Everything before it counts. Once nothing writes the file: statelab log repair {path}",
    ),
    "corrupt": Text(
        "请保留原文件，不要手改；从备份恢复，或只采信第一处损坏之前的记录。",
        "Keep the file as it is and edit nothing; restore a backup, or trust only what stands before the first damage.",
    ),
}

VERDICTS = {
    "sound": Text("完好", "sound"),
    "torn": Text("尾部撕裂", "torn tail"),
    "corrupt": Text("已损坏", "corrupt"),
}

WEIGHTS = {"corrupt": Text("损坏", "corrupt"), "torn": Text("撕裂", "torn"), "note": Text("提示", "note")}

SCREEN = {
    "summary": Text(
        "{path}：{verdict}（{format}，{records} 条记录，{size} 字节）",
        "{path}: {verdict} ({format}, {records} records, {size} bytes)",
    ),
    "before": Text(
        "第一处损坏之前有 {events} 条记录，到偏移 {good} 为止。",
        "{events} records stand before the first damage, up to offset {good}.",
    ),
    "more": Text("另有 {n} 项未列出。", "{n} more are not listed."),
    "line": Text("行", "line"),
    "offset": Text("偏移", "offset"),
    "weight": Text("性质", "weight"),
    "finding": Text("发现", "finding"),
    "sequence": Text("序号", "sequence"),
    "type": Text("类型", "type"),
    "id": Text("标识", "id"),
    "summary-column": Text("摘要", "summary"),
    "records": Text("记录数", "records"),
    "bytes": Text("字节数", "bytes"),
    "first": Text("最早时间", "first at"),
    "last": Text("最晚时间", "last at"),
    "rate": Text("每秒事件", "events a second"),
    "longest": Text("最长一行", "longest line"),
    "longest-value": Text("第 {line} 行，{bytes} 字节", "line {line}, {bytes} bytes"),
    "median": Text("平均一行", "mean line"),
    "other": Text("（其他）", "(other)"),
    "nothing-torn": Text(
        "{path}：没有撕裂的尾部，什么也没有改。", "{path}: no torn tail; nothing was changed."
    ),
    "would-repair": Text(
        "{path}：会先备份原文件，再从偏移 {offset} 截去 {torn} 字节。加 --yes 执行。",
        "{path}: would copy the file aside, then cut {torn} bytes at offset {offset}. Do it with --yes.",
    ),
    "repaired": Text(
        "{path}：已从偏移 {offset} 截去 {torn} 字节；原文件保存在 {backup}",
        "{path}: cut {torn} bytes at offset {offset}; the original is kept in {backup}",
    ),
    "replaced": Text(
        "{path}：文件被换成了新的，从头读起", "{path}: the file was replaced; reading the new one"
    ),
    "shrunk": Text("{path}：文件变短了，从头读起", "{path}: the file became shorter; reading from its start"),
}


def say(key: str, language: str, **fields: object) -> str:
    """Give one text of the screen with its fields filled in; numbers get their thousands apart."""
    return _fill(SCREEN[key].in_(language), fields)


def describe(finding: Finding, language: str) -> str:
    """Say in words what was found, without its place."""
    text = FINDINGS[finding.kind].in_(language)
    if finding.weight == "torn" and finding.other is not None:
        text += SECOND_IN_TAIL.in_(language)
    fields = {name: getattr(finding, name) for name in ("length", "lines", "other", "due")}
    return _fill(text, fields) + (f": {finding.detail}" if finding.detail else "")


def _fill(text: str, fields: dict[str, object]) -> str:
    return text.format(
        **{name: f"{value:,}" if type(value) is int else value for name, value in fields.items()}
    )
