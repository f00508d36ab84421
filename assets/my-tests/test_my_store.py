"""你自己的测试：正确的 store 都通过，错误的 store 过不去。
Your own tests: right stores pass them, and a wrong one does not get past.

    statelab gate --tests workspace/my_tests/test_my_store.py

每项测试是一个名字以 test_ 开头的函数，写成 def 或 async def 都行。tmp_path 是它独有的空文件夹。
要让磁盘出错，就给函数加上参数 fault，再写 with fault("write", "ENOSPC"): ……
A test is a function whose name begins with test_; def and async def are both fine. tmp_path is an empty folder of its
own. To make the disk fail, give the function an argument fault and write: with fault("write", "ENOSPC"): ...
"""

import pytest
from lesson_22 import CorruptLogError, JsonlSessionStore


async def test_calls_made_at_once_keep_their_order(tmp_path):
    """同时发出的二十次追加，按发出的先后落盘。 / Twenty appends made at once reach the disk in the order of the calls."""
    store = JsonlSessionStore(tmp_path / "task.jsonl")
    results = [store.append("note", number) for number in range(20)]
    for result in reversed(results):  # 倒着等，顺序也不该变 / awaited backwards, and the order must not change
        await result

    history = await store.read()

    assert [event.data for event in history] == list(range(20))


# 想法一：三行里的第二行是 not-json，换行还在。read 该怎么答？
#   用 path.write_bytes(...) 写出这份日志，再用 with pytest.raises(CorruptLogError) as caught: 包住读取，最后看 caught.value.line。
# Idea 1: line 2 of three is not-json, with its newline. What must read answer?
#   Write that log with path.write_bytes(...), read inside `with pytest.raises(CorruptLogError) as caught:`, and look at
#   caught.value.line.


# 想法二：第一次追加时磁盘满了。接下来那次追加，该拿到几号？
# Idea 2: the disk is full at the first append. Which number is due to the next one?
