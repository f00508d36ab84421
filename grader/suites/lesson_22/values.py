"""What is stored, and how it stands on disk: S3, S4, S5, S9."""
# ruff: noqa: D400 - a docstring is the learner's title

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from grader.lab import Event
from grader.suites.check import Text
from grader.suites.expect import Trial
from grader.suites.lesson_22 import scenarios
from grader.suites.lesson_22.drawn import LOG, WRITES, after, some_data, some_events, some_type, word
from grader.suites.lesson_22.scenarios import source_of
from grader.suites.lesson_22.suite import check

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grader.lab import Lab


@check(
    "22-s03",
    rules=("S3",),
    dimension="integrity",
    hint=Text(
        "在 append 里、排队之前就去掉 type 两端的空白并序列化 data；轮到写入时只用那份文本。",
        "Strip the type and serialise data inside append, before queueing; when its turn comes, write that text.",
    ),
)
async def taken_as_it_was_at_the_call(lab: Lab) -> None:
    """去掉 type 两端的空白，不许为空；data 以调用那一刻为准

    The type is stripped and must not be blank; the data is taken as it was at the call
    """
    kind, kept = some_type(lab.draw), word(lab.draw)
    stripped = Trial("S3", "追加一个两端带空白的 type", "Append a type with white space around it")
    returned = await stripped.gives(lab.store().append(f" \t{kind}\n", None))
    expected = [Event(1, kind, None)]
    stripped.same_events([returned], expected, Text("返回的事件", "the event returned"))
    stripped.disk_holds(lab, expected)
    changed = Trial(
        "S3",
        "调用 append 之后、写入之前修改传入的对象",
        "Change the object after the call, before it is written",
    )
    given = {"name": LOG, "type": kind, "kept": kept}
    await changed.gives(lab.scenario(source_of(scenarios.changed_after_call), given))
    expected = after(expected, kind, {"kept": kept, "list": [1]})
    changed.disk_holds(lab, expected)
    blank = Trial("S3", "以空白或非字符串作为 type 追加", "Append with a type that is blank or no string")
    told = await blank.gives(lab.scenario(source_of(scenarios.refused_types), {"name": LOG}))
    _all_refused(blank, told)
    blank.disk_holds(lab, expected)


@check(
    "22-s04",
    rules=("S4", "S7"),
    dimension="integrity",
    hint=Text(
        "json.dumps 默认放过 NaN 和会撞在一起的键：设 allow_nan=False，并检查写出的文本能原样读回；都要在编号之前。",
        "json.dumps lets NaN and colliding keys pass: set allow_nan=False and make sure the text reads back as it was; "
        "all of it before a number is taken.",
    ),
)
async def what_is_not_json_is_refused(lab: Lab) -> None:
    """不是 JSON 的数据只让那一次调用失败：不写字节，不占编号，不堵队列

    Data that is not JSON fails that one call: nothing is written, no number is used, the queue goes on
    """
    events = some_events(lab.draw, 2)
    trial = Trial("S4", "逐个追加不能成为 JSON 的值", "Append values that cannot be JSON, one by one")
    await trial.gives(lab.store().append(events[0].type, events[0].data))
    given = {"name": LOG, "type": some_type(lab.draw)}
    told = await trial.gives(lab.scenario(source_of(scenarios.refused_values), given))
    _all_refused(trial, told)
    trial.disk_holds(lab, events[:1])
    await trial.gives(lab.store().append(events[1].type, events[1].data))
    trial.disk_holds(lab, events)
    queue = Trial(
        "S7", "同时追加几个值，其中一个不是 JSON", "Append several values at once, one of them not JSON"
    )
    name, data = "queue.jsonl", [some_data(lab.draw) for _ in range(4)]
    given_queue = {"name": name, "type": events[0].type, "data": data, "at": lab.draw.randrange(4)}
    endings = await queue.gives(lab.scenario(source_of(scenarios.refused_in_queue), given_queue))
    refused = endings.pop(given_queue["at"])
    _all_refused(queue, {"set": refused})
    queue.require(
        all("event" in told for told in endings),
        Text("其余的追加都成功", "all the others succeed"),
        Text("也有失败的", "some failed too"),
    )
    queue.disk_holds(
        lab, [Event(number, events[0].type, value) for number, value in enumerate(data, start=1)], name
    )


def _all_refused(trial: Trial, told: Mapping[str, Mapping[str, Any]]) -> None:
    """Each value was refused with a ValueError or TypeError; the failure names the first that was not."""
    for name, outcome in told.items():
        names = outcome.get("error", ())
        found = f"{names[0]}" if names else ""
        trial.require(
            "ValueError" in names or "TypeError" in names,
            Text(
                f"“{name}”被拒绝：ValueError 或 TypeError",
                f'"{name}" is refused with ValueError or TypeError',
            ),
            Text(f"抛出 {found}", f"{found} was raised") if found else Text("没有报错", "nothing was raised"),
        )


@check(
    "22-s05",
    rules=("S5",),
    dimension="integrity",
    hint=Text(
        "返回的事件应由写下的文本重新解析出来，而不是把调用者的对象原样交回去。",
        "Build the returned event by parsing the text that was written, instead of handing the caller's object back.",
    ),
)
async def the_returned_event_is_the_stored_one(lab: Lab) -> None:
    """返回的事件就是以后读到的事件，并且不与调用者共用对象

    The event returned is the one that is read later, and shares no object with the caller
    """
    trial = Trial(
        "S5",
        "追加含元组和整数键的数据，再修改手里的对象",
        "Append data with a tuple and an integer key, then change it",
    )
    kind, text = some_type(lab.draw), word(lab.draw)
    told = await trial.gives(
        lab.scenario(source_of(scenarios.returned_event), {"name": LOG, "type": kind, "word": text})
    )
    trial.disk_holds(lab, [Event(1, kind, {"pair": [1, [2]], "7": text, "inner": {"list": [1]}})])
    trial.require(
        told["kinds"] == ["list", ["str", "str", "str"]],
        Text("元组变成列表，键都是字符串", "the tuple is a list and the keys are strings"),
        Text("返回的数据不是 JSON 的形状", "the returned data has not the shape of JSON"),
    )
    trial.require(
        told["equal"],
        Text("返回的事件等于读到的事件", "the returned event equals the one that is read"),
        Text("两者不等", "they differ"),
    )
    trial.require(
        not told["shares"],
        Text("返回的事件不与调用者共用对象", "the returned event shares no object with the caller"),
        Text("改一处，另一处也变了", "a change in one shows in the other"),
    )
    trial.require(
        told["log"] == [1],
        Text("再读一次，历史不变", "reading again gives the same history"),
        Text("历史变了", "the history has changed"),
    )


@check(
    "22-s09-line",
    rules=("S9",),
    dimension="integrity",
    faults=True,
    hint=Text(
        "先拼好“JSON + 换行”的字节，再一次写出；分两次写，别的写者就可能插在中间。",
        "Put JSON and newline together as bytes and hand them over in one write; with two writes another writer may "
        "come between.",
    ),
)
async def one_record_is_one_line_in_one_write(lab: Lab) -> None:
    """一条记录是一行 UTF-8 JSON，连同换行一次交给操作系统

    A record is one line of UTF-8 JSON, handed to the operating system in one write with its newline
    """
    trial = Trial(
        "S9",
        "逐个追加事件，在文件层数写操作",
        "Append events one by one and count the writes at the file layer",
    )
    events = some_events(lab.draw, 4)
    events = after(events, some_type(lab.draw), {"text": "a\nb\r\nc\u2028d\u0085e", "more": "数据🧪"})
    await lab.arm([])
    store = lab.store()
    for event in events:
        await trial.gives(store.append(event.type, event.data))
    seen = await lab.disarm()
    trial.disk_holds(lab, events)
    sizes = [len(piece) + 1 for piece in trial.bytes_on_disk(lab).split(b"\n")[:-1]]
    written = [entry["size"] for entry in seen if entry["op"] in WRITES and entry["path"] == LOG]
    trial.require(
        written == sizes,
        Text(f"{len(sizes)} 次写，每次恰好一行", f"{len(sizes)} writes, each of exactly one line"),
        Text(f"{len(written)} 次写", f"{len(written)} writes"),
    )


@check(
    "22-s09-large",
    rules=("S2", "S9"),
    dimension="integrity",
    hint=Text(
        "大记录也走同一个队列；os.write 可能只写一部分，要看返回值。",
        "Large records take the same queue; os.write may write only a part, so look at what it returns.",
    ),
)
async def large_records_stay_whole(lab: Lab) -> None:
    """两条 700 KB 的记录同时追加：两行都完整，次序不变

    Two records of 700 KB appended at once are two whole lines in call order
    """
    trial = Trial("S9", "同时追加两条约 700 KB 的记录", "Append two records of about 700 KB at once")
    kind, size = some_type(lab.draw), 700_000 + lab.draw.randrange(1000)
    letters = lab.draw.sample("abcdefgh", 2)
    given = {"name": LOG, "type": kind, "letters": letters, "bytes": size}
    await trial.gives(lab.scenario(source_of(scenarios.large_appends), given))
    trial.disk_holds(
        lab, [Event(number, kind, letter * size) for number, letter in enumerate(letters, start=1)]
    )


@check(
    "22-s09-private",
    rules=("S9",),
    dimension="integrity",
    hint=Text(
        "用 os.open(…, 0o600) 建文件，用 mkdir(mode=0o700) 逐级建目录：parents=True 建的上级目录不理会 mode。",
        "Create the file with os.open(..., 0o600) and each folder with mkdir(mode=0o700): the parents that "
        "parents=True makes ignore the mode.",
    ),
)
async def files_and_folders_are_private(lab: Lab) -> None:
    """缺少的上级目录会建好；文件 0600，目录 0700

    Missing parent folders are made; the file is 0600 and the folders 0700
    """
    trial = Trial(
        "S9",
        "在还不存在的两级目录里第一次追加",
        "Make the first append below two folders that do not exist yet",
    )
    event = some_events(lab.draw, 1)[0]
    name = f"deep/{word(lab.draw)}/{LOG}"
    given = {"name": name, "type": event.type, "data": event.data}
    await trial.gives(lab.scenario(source_of(scenarios.append_with_open_umask), given))
    trial.disk_holds(lab, [event], name)
    if os.name != "posix":
        return
    folder = name.removesuffix(f"/{LOG}")
    for place, wanted in ((name, 0o600), (folder, 0o700), ("deep", 0o700)):
        mode = lab.mode(place)
        what = "file" if place == name else "folder"
        trial.require(
            mode == wanted,
            Text(
                f"{'文件' if place == name else '目录'}权限 {wanted:04o}", f"the {what} has mode {wanted:04o}"
            ),
            Text(f"{mode:04o}", f"{mode:04o}"),
        )
