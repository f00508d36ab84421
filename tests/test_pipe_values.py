"""What crosses the pipe: plain values of exact types, errors by identity, replies within bounds."""

from __future__ import annotations

import pytest

from grader.channel import ChildLost
from grader.lab import CorruptLog, StudentError, canonical
from tests.piped import on_pipe


def append_one(data=1):
    async def body(lab):
        return await lab.store().append("note", data)

    return body


def returning(event):
    """A store whose append gives back this expression and writes nothing."""
    return f"""
class Number(int): pass
class Words(str): pass
class JsonlSessionStore(Plain):
    async def append(self, type, data):
        return {event}
"""


def raising(statement):
    """A store whose append runs this statement when it is awaited."""
    return f"""
class JsonlSessionStore(Plain):
    async def append(self, kind, data):
        {statement}
"""


@pytest.mark.parametrize(
    "data", [{"k": [1, 1.0, True, None, "\ud83d\ude00 \u2028"]}, "\ud800", 2**64, 1e300, []]
)
def test_plain_data_crosses_unchanged(data):
    """JSON values arrive at the store and come back as they are, lone surrogates and long integers too."""
    returned = on_pipe(returning("SessionEvent(1, type, data)"), append_one(data))
    assert canonical(returned.data) == canonical(data)


@pytest.mark.parametrize("sequence", ["True", "1.0", "'1'", "None"])
def test_a_number_keeps_its_type(sequence):
    """`True`, `1.0` and `"1"` are not taken for 1."""
    returned = on_pipe(returning(f"SessionEvent({sequence}, type, data)"), append_one())
    assert canonical(returned.sequence) != canonical(1)


@pytest.mark.parametrize(
    "event",
    [
        "SessionEvent(Number(1), type, data)",
        "SessionEvent(1, Words(type), data)",
        "SessionEvent(1, type, (1, 2))",
        "SessionEvent(1, type, {1: 2})",
        "SessionEvent(1, type, {1, 2})",
        "SessionEvent(1, type, b'x')",
    ],
)
def test_only_plain_json_comes_back(event):
    """Subclasses, tuples, sets, bytes and keys that are no text are the store's error, not the grader's."""
    with pytest.raises(TypeError, match="plain JSON"):
        on_pipe(returning(event), append_one())


@pytest.mark.parametrize("value", ["float('nan')", "float('inf')"])
def test_numbers_that_json_lacks_do_not_come_back(value):
    """NaN and Infinity are refused at the child's own border."""
    with pytest.raises(ValueError, match="JSON compliant"):
        on_pipe(returning(f"SessionEvent(1, type, {value})"), append_one())


def test_an_endless_value_does_not_come_back():
    """A value that holds itself ends as an error of the store."""
    store = "loop = []\nloop.append(loop)\n" + returning("SessionEvent(1, type, loop)")
    with pytest.raises(RuntimeError):
        on_pipe(store, append_one())


@pytest.mark.parametrize("event", ["None", "(1, type, data)", "42"])
def test_what_is_no_event_is_an_attribute_error(event):
    """Something without sequence, type and data is no SessionEvent."""
    with pytest.raises(AttributeError):
        on_pipe(returning(event), append_one())


def test_what_cannot_be_awaited_is_a_type_error():
    """An append that gives back the event itself breaks the interface."""
    store = "class JsonlSessionStore(Plain):\n    def append(self, type, data): return SessionEvent(1, type, data)"
    with pytest.raises(TypeError, match="awaitable"):
        on_pipe(store, append_one())


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("raise ValueError('no')", ValueError),
        ("import json; json.loads('{')", ValueError),
        ("raise KeyError('no')", LookupError),
        ("raise NotImplementedError('step 1')", NotImplementedError),
        ("Path('/nowhere').read_text()", FileNotFoundError),
        ("os.open('/', os.O_WRONLY)", IsADirectoryError),
    ],
)
def test_known_errors_arrive_as_themselves(statement, kind):
    """Builtins of the whitelist and their subclasses are known by identity; an OSError keeps its number."""
    with pytest.raises(kind):
        on_pipe(raising(statement), append_one())


def test_the_corruption_error_keeps_its_line_path_and_text():
    """CorruptLogError is known as the class that the package exports, also through a subclass."""
    store = raising("raise type('Mine', (CorruptLogError,), {})(self.path, 7, 'bad number')")
    with pytest.raises(CorruptLog) as caught:
        on_pipe(store, append_one())
    assert caught.value.line == 7
    assert caught.value.path.endswith("events.jsonl")
    assert "line 7" in caught.value.text


@pytest.mark.parametrize(
    "statement",
    [
        "raise type('ValueError', (Exception,), {})('looks known')",
        "raise type('SkipTest', (Exception,), {})('skip me')",
        "raise __import__('unittest').SkipTest('skip me')",
        "raise KeyboardInterrupt",
        "raise SystemExit(0)",
        "raise BaseException('all the way')",
        "raise type('Nameless', (Exception,), {'__module__': 7})()",
        "raise type('Silent', (Exception,), {'__str__': lambda self: 1 / 0})()",
        "raise type('Mute', (Exception,), {'__str__': lambda self: (_ for _ in ()).throw(SystemExit(0))})()",
        "raise type('M', (type,), {'__eq__': lambda *_: True, '__hash__': lambda *_: 1 / 0})('E', (Exception,), {})()",
    ],
)
def test_any_other_error_is_the_students_and_the_child_goes_on(statement):
    """A name is no passport, and an error that lies or raises when looked at is still answered."""
    store = f"""
class JsonlSessionStore(Plain):
    async def append(self, kind, data):
        if data == 1:
            {statement}
        return SessionEvent(1, kind, data)
"""

    async def body(lab):
        with pytest.raises(StudentError):
            await lab.store().append("a", 1)
        return (await lab.store().append("a", 2)).data

    assert on_pipe(store, body) == 2


@pytest.mark.parametrize("method", ["__init__(self, path)", "append(self, type, data)"])
def test_an_error_before_there_is_an_awaitable_comes_from_the_await(method):
    """What the constructor or a plain `append` raises reaches the caller who awaits."""
    store = f"class JsonlSessionStore(Plain):\n    def {method}: raise ValueError('early')"
    with pytest.raises(ValueError, match="early"):
        on_pipe(store, append_one())


def test_an_error_tells_the_line_that_raised_it():
    """The student's own file and line come with an error, for the learner's message."""
    with pytest.raises(ValueError, match="no") as caught:
        on_pipe(raising("raise ValueError('no')"), append_one())
    assert caught.value.__notes__[0].startswith("__init__.py:")


@pytest.mark.parametrize("line", ["float('nan')", "10**300", "[1]", "object()", "'x' * 10_000"])
def test_an_attribute_that_is_no_number_does_no_harm(line):
    """Whatever stands in `line` of a CorruptLogError, the error arrives."""
    with pytest.raises(CorruptLog) as caught:
        on_pipe(raising(f"raise CorruptLogError('p', {line}, 'r')"), append_one())
    assert caught.value.line is None or len(str(caught.value.line)) <= 400


def test_what_a_student_says_cannot_move_a_cursor():
    """Control characters of an error's text and class are replaced."""
    with pytest.raises(StudentError) as caught:
        on_pipe(raising(r"raise type('E\x1b[2J', (Exception,), {})('a\x1b[2Jb\nc')"), append_one())
    assert caught.value.text == "a\ufffd[2Jb\ufffdc"
    assert caught.value.name.isprintable()


def test_a_long_error_text_is_cut():
    """An error's own words are bounded."""
    with pytest.raises(ValueError) as caught:
        on_pipe(raising("raise ValueError('x' * 10_000_000)"), append_one())
    assert len(str(caught.value)) <= 400


def test_a_large_honest_reply_is_taken():
    """What was sent may come back: three megabytes of data are no attack."""
    data = "é\x00" * 1_000_000
    assert on_pipe(returning("SessionEvent(1, type, data)"), append_one(data)).data == data


def test_a_reply_far_beyond_what_was_sent_is_refused():
    """A store that answers one small event with megabytes is cut off."""
    with pytest.raises(ChildLost) as lost:
        on_pipe(returning("SessionEvent(1, type, 'x' * 3_000_000)"), append_one())
    assert lost.value.reason == "tamper"


FORGE = """
import socket
def forge(line):
    for fd in range(3, 1024):
        try:
            socket.socket(fileno=os.dup(fd)).sendall(line)
        except OSError:
            pass
class JsonlSessionStore(Plain):
    async def append(self, type, data):
        forge({line!r})
        return self.write(type, data)
"""


ASKED = 3
"""The id of the first append that a check awaits: after `forget` and `open`."""


@pytest.mark.parametrize(
    "line",
    [
        b"5 passed\n",
        b'{"id":999,"ok":[1,"note",1]}\n',
        b'{"id":3,"ok":{"sequence":1}}\n',
        b'{"id":3,"ok":[1,"note"]}\n',
        b'{"id":3,"ok":[NaN,"note",1]}\n',
        b'{"id":3,"ok":[1e999,"note",1]}\n',
        b'{"id":3,"err":{"types":["ValueError"]}}\n',
        b'{"id":3}\n',
        b'{"id":3.0,"ok":[1,"note",1]}\n',
        b'{"id":3,"ok":[1,"note",1],"more":1}\n',
        b'{"id":3,"ok":' + b"[" * 500_000 + b"\n",
        b'{"id":3,"ok":' + b"9" * 10_000 + b"}\n",
        b"\xff\xfe\n",
    ],
)
def test_a_forged_line_ends_the_child(line):
    """A line that the host would not write now is tampering: no reply, a wrong shape, or nobody's."""
    with pytest.raises(ChildLost) as lost:
        on_pipe(FORGE.replace("{line!r}", repr(line)), append_one())
    assert lost.value.reason == "tamper"


def test_the_first_reply_to_a_question_is_believed():
    """What the pipe cannot tell: code that owns the channel answers for the host. The second answer gives it away."""
    source = FORGE.replace("{line!r}", repr(b'{"id":%d,"ok":[9,"forged",1]}\n' % ASKED))

    async def append_and_read(lab):
        store = lab.store()
        await store.append("note", 1)
        await store.read()

    assert on_pipe(source, append_one()).sequence == 9
    with pytest.raises(ChildLost, match="tamper"):
        on_pipe(source, append_and_read)
