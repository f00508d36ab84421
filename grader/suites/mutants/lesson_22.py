"""The samples of lesson 22: eleven classic mistakes, the right code in other styles, and the lesson's own store."""

from __future__ import annotations

from grader.suites.check import Text
from grader.suites.mutants import Sample

_QUEUE_AT_CALL = """\
        done = loop.create_future()
        self._waiting.append((done, record))
        if self._worker is None:
            self._worker = loop.create_task(self._work())
        return done
"""

_NUMBER_BY_READING = """
    async def _append(self, record):
        events = await self.read()
        async with self._lock:
            return await asyncio.to_thread(self._write_as, len(events) + 1, record)

    def _write_as(self, sequence, record):
        name, name_json, data, data_json = record
        make_folder(self.path.parent)
        with self._open() as file:
            file.write(encode_line(sequence, name_json, data_json))
        return SessionEvent(sequence, name, data)
"""

_WORK = """
    async def _work(self):
        while self._waiting:
            done, record = self._waiting.popleft()
            if done.cancelled():
                continue
            try:
                event = await asyncio.to_thread(self._write, record)
            except Exception as error:
                if not done.cancelled():
                    done.set_exception(error)
            else:
                if not done.cancelled():
                    done.set_result(event)
        self._worker = None
"""

MUTANTS = (
    Sample(
        "no-queue",
        Text(
            "没有队列：每个 append 各自读末尾、各自写",
            "No queue: each append reads the end and writes on its own",
        ),
        (
            (_QUEUE_AT_CALL, "        return loop.create_task(self._append(record))\n"),
            (_WORK, _NUMBER_BY_READING.replace("        async with self._lock:\n    ", "")),
        ),
        caught_by="22-03",
    ),
    Sample(
        "number-outside",
        Text(
            "队列只管写入，编号在排队之前就取好了",
            "The queue guards the write, but the number is taken before it",
        ),
        (
            (_QUEUE_AT_CALL, "        return loop.create_task(self._append(record))\n"),
            (_WORK, _NUMBER_BY_READING),
            (
                "        self._worker = None\n        self._loop = None\n",
                "        self._worker = None\n        self._loop = None\n        self._lock = asyncio.Lock()\n",
            ),
        ),
        caught_by="22-s02",
    ),
    Sample(
        "poisoned-queue",
        Text("一次失败之后，队列一直是失败状态", "After one failure the queue stays rejected"),
        (
            (
                _QUEUE_AT_CALL,
                "        self._worker = loop.create_task(self._after(self._worker, record))\n        return self._worker\n",
            ),
            (
                _WORK,
                """
    async def _after(self, previous, record):
        if previous is not None:
            await previous
        return await asyncio.to_thread(self._write, record)
""",
            ),
        ),
        caught_by="22-s07-write",
    ),
    Sample(
        "skips-bad-lines",
        Text("凡是解析不了的行都跳过", "Every line that does not parse is skipped"),
        (
            (
                "            if ended:\n                raise CorruptLogError(path, number, str(problem)) from None\n            break\n",
                "            if ended:\n                continue\n            break\n",
            ),
            (
                '        if event.sequence != number:\n            raise CorruptLogError(path, number, f"expected {number}, found',
                '        if event.sequence != len(events) + 1:\n            raise CorruptLogError(path, number, f"expected {len(events) + 1}, found',
            ),
        ),
        caught_by="22-05",
    ),
    Sample(
        "only-monotonic",
        Text("只检查编号递增，不检查连续", "Numbers only have to rise, not to be contiguous"),
        (
            (
                "        if event.sequence != number:\n",
                "        if events and event.sequence <= events[-1].sequence:\n",
            ),
        ),
        caught_by="22-02",
    ),
    Sample(
        "number-burned",
        Text(
            "写之前就推进编号，写失败也不再看磁盘",
            "The number is advanced before the write, and a failure never looks back",
        ),
        (
            (
                "            event = SessionEvent(self._next, name, data)\n",
                "            event = SessionEvent(self._next, name, data)\n            self._next += 1\n",
            ),
            ("        self._next += 1\n        return event\n", "        return event\n"),
            ("            known, self._size = self._size, None\n", "            known = self._size\n"),
        ),
        caught_by="22-s06-failed",
    ),
    Sample(
        "async-append",
        Text("`async def append`：等到 await 才排队", "`async def append`: the place is taken at the await"),
        (
            ("    def append(self, type, data):\n", "    async def append(self, type, data):\n"),
            (
                "            self._worker = loop.create_task(self._work())\n        return done\n",
                "            self._worker = loop.create_task(self._work())\n        return await done\n",
            ),
        ),
        caught_by="22-s01",
    ),
    Sample(
        "unended-dropped",
        Text(
            "最后一条完整的记录只因缺换行就被丢弃",
            "A whole last record is dropped because its newline is missing",
        ),
        (("        if not ended and not piece:\n", "        if not ended:\n"),),
        caught_by="22-s14-whole",
    ),
    Sample(
        "glued-tail",
        Text("撕裂的尾部不修，直接接在后面写", "A torn tail is left, and the next record is glued onto it"),
        (
            (
                "            save_torn(self.path, good, torn)\n            file.truncate(good)\n",
                "            pass\n",
            ),
        ),
        caught_by="22-s11-kept",
    ),
    Sample(
        "denied-is-empty",
        Text("没有权限读，也当成空历史", "A file that may not be read counts as an empty history"),
        (
            (
                "        except FileNotFoundError:\n            return []\n",
                "        except OSError:\n            return []\n",
            ),
        ),
        caught_by="22-s13-refused",
    ),
    Sample(
        "splitlines",
        Text("用 str.splitlines 断行", "Lines are made with str.splitlines"),
        (
            (
                '    pieces = raw.split(b"\\n")\n',
                '    lines = raw.decode(errors="surrogateescape").splitlines()\n'
                '    if not raw or raw.endswith(b"\\n"):\n'
                '        lines.append("")\n'
                '    pieces = [line.encode(errors="surrogateescape") for line in lines]\n',
            ),
        ),
        caught_by="22-s12",
    ),
)

VARIANTS = (
    Sample(
        "plain",
        Text(
            "一个工作任务，在线程里写，每次打开文件",
            "One worker task, writes in a thread, the file opened each time",
        ),
    ),
    Sample(
        "lock",
        Text(
            "用 asyncio.Lock 代替队列，在循环里直接写",
            "An asyncio.Lock instead of a queue, writing on the loop",
        ),
        (
            (
                _QUEUE_AT_CALL,
                "        self._busy += 1\n        task = loop.create_task(self._locked(record))\n"
                "        task.add_done_callback(self._leave)\n        return task\n",
            ),
            (
                _WORK,
                """
    async def _locked(self, record):
        async with self._lock:
            return self._write(record)

    def _leave(self, task):
        self._busy -= 1
""",
            ),
            (
                "        self._worker = None\n        self._loop = None\n",
                "        self._busy = 0\n        self._loop = None\n",
            ),
            ("            if self._worker is not None and not", "            if self._busy and not"),
            (
                "            self._loop, self._worker = loop, None\n            self._waiting.clear()\n",
                "            self._loop, self._busy, self._lock = loop, 0, asyncio.Lock()\n",
            ),
        ),
    ),
    Sample(
        "thread",
        Text("一个专用线程，一次写一条", "One thread of its own that writes one record at a time"),
        (
            (
                _QUEUE_AT_CALL,
                "        self._worker = asyncio.wrap_future(self._thread.submit(self._write, record))\n        return self._worker\n",
            ),
            (_WORK, ""),
            (
                "        self._worker = None\n        self._loop = None\n",
                "        self._worker = None\n        self._thread = ThreadPoolExecutor(max_workers=1)\n        self._loop = None\n",
            ),
            (
                "            if self._worker is not None and not self._loop.is_closed():\n",
                "            if self._worker is not None and not self._worker.done() and not self._loop.is_closed():\n",
            ),
            (
                "from collections import deque\n",
                "from collections import deque\nfrom concurrent.futures import ThreadPoolExecutor\n",
            ),
        ),
    ),
    Sample(
        "skips-blank",
        Text("跳过空行，行号仍按物理行", "Blank lines are skipped, and still counted"),
        (
            (
                "        try:\n            event = decode_line(piece)\n",
                "        if ended and not piece.strip():\n            good += len(piece) + 1\n            continue\n        try:\n            event = decode_line(piece)\n",
            ),
            (
                '        if event.sequence != number:\n            raise CorruptLogError(path, number, f"expected {number}, found',
                '        if event.sequence != len(events) + 1:\n            raise CorruptLogError(path, number, f"expected {len(events) + 1}, found',
            ),
        ),
    ),
    Sample(
        "refuses-late",
        Text(
            "无效的值在 await 时报错，而不是调用时", "A bad value is refused at the await instead of the call"
        ),
        (
            (
                "        record = capture_type(type) + capture_data(data)  # name, its JSON, a copy of the data, its JSON\n        done = loop.create_future()\n",
                "        done = loop.create_future()\n        try:\n            record = capture_type(type) + capture_data(data)\n"
                "        except (TypeError, ValueError) as error:\n            done.set_exception(error)\n            return done\n",
            ),
        ),
    ),
)

REFERENCE = Sample(
    "reference",
    Text(
        "课文里的实现：先编号再写，撕裂的尾部照样接着写",
        "The lesson's own store: it numbers before it writes and appends onto a torn tail",
    ),
    base="reference",
)
