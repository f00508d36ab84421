"""One slip for every check that no mutant is meant for: a small edit of the plain store that this check must see."""

from __future__ import annotations

from grader.suites.check import Text
from grader.suites.mutants import Sample
from grader.suites.mutants.lesson_22 import VARIANTS


def slip(caught_by: str, name: str, *edits: tuple[str, str]) -> Sample:
    return Sample(name, Text(name, name), edits, caught_by)


PARSE_FAILED = """\
            if ended:
                raise CorruptLogError(path, number, str(problem)) from None
"""
RECORD = "        record = capture_type(type) + capture_data(data)"
WRITE = """\
            if file.write(line) != len(line):
                raise OSError(errno.EIO, "only a part of the line was written", str(self.path))
"""
LOOK = "            events, good, torn = scan(file.read(), self.path)\n"
MEND = "            self._mend(file, good, torn)\n"
SAVE = "        file.write(torn)\n"
READ = """\
        except FileNotFoundError:
            return []
        return scan(raw, self.path)[0]
"""
SKIPS_BLANK = next(variant.edits for variant in VARIANTS if variant.id == "skips-blank")

LENIENT = """
def decode_line(piece, decode=decode_line):
    import json

    try:
        value = json.loads(piece.decode(), strict=False)
    except (ValueError, RecursionError):
        raise NotJsonError("not JSON") from None
    return decode(json.dumps(value).encode())


def scan(raw, path):
"""
ONLY_MY_SPELLING = """
def decode_line(piece, decode=decode_line):
    event = decode(piece)
    if encode_line(event.sequence, capture_type(event.type)[1], capture_data(event.data)[1]) != piece + b"\\n":
        raise NotAnEventError("not as I write it")
    return event


def scan(raw, path):
"""

SLIPS = (
    slip(
        "22-01",
        "memory-only",
        (WRITE, "            self._kept.append(event)\n"),
        ("            self._size = known + len(line)\n", "            self._size = 0\n"),
        ("        self._next = 1\n", "        self._next = 1\n        self._kept = []\n"),
        (READ, "        except FileNotFoundError:\n            pass\n        return list(self._kept)\n"),
    ),
    slip("22-04", "torn-tail-refused", (PARSE_FAILED, PARSE_FAILED.replace("if ended", "if piece"))),
    slip(
        "22-s03",
        "taken-when-written",
        (RECORD, "        record = (type, data)"),
        (
            "name_json, data, data_json = record",
            "name_json, data, data_json = capture_type(record[0]) + capture_data(record[1])",
        ),
    ),
    slip(
        "22-s04",
        "plain-json-dumps",
        (
            RECORD,
            "        import json\n\n        record = capture_type(type) + (data, json.dumps(data).encode())",
        ),
    ),
    slip(
        "22-s05",
        "the-callers-own-object",
        (RECORD, "        record = capture_type(type) + (data, capture_data(data)[1])"),
    ),
    slip("22-s06-partial", "short-write-taken-for-whole", (WRITE, "            file.write(line)\n")),
    slip(
        "22-s07-mkdir",
        "folder-made-only-once",
        (
            "        make_folder(self.path.parent)\n",
            "        if not self._tried:\n            self._tried = True\n            make_folder(self.path.parent)\n",
        ),
        ("        self._next = 1\n", "        self._next = 1\n        self._tried = False\n"),
    ),
    slip(
        "22-s08-cancel",
        "cancelled-written",
        ("            if done.cancelled():\n                continue\n", ""),
    ),
    slip(
        "22-s08-unheard",
        "failures-silenced",
        ("done.set_exception(error)\n", "done.set_exception(error)\n                    done.exception()\n"),
    ),
    slip(
        "22-s08-loops",
        "first-loop-only",
        ("if self._worker is not None and not self._loop.is_closed()", "if self._loop is not None"),
    ),
    slip(
        "22-s09-line",
        "two-writes",
        (WRITE, '            file.write(line[:-1])\n            file.write(b"\\n")\n'),
    ),
    slip(
        "22-s09-large",
        "limit-of-512-kib",
        (
            WRITE,
            '            if len(line) > 1 << 19:\n                raise ValueError("too large")\n' + WRITE,
        ),
    ),
    slip("22-s09-private", "mode-left-to-umask", ("os.O_APPEND | create, 0o600)", "os.O_APPEND | create)")),
    slip(
        "22-s10",
        "new-instance-starts-at-one",
        (
            "            self._next = len(events) + 1\n",
            "            self._next = len(events) + 1 if self._identity else 1\n",
        ),
    ),
    slip("22-s11-kept", "copy-not-synced", ("        os.fsync(file.fileno())\n", "")),
    slip(
        "22-s11-clash",
        "older-copy-overwritten",
        ("    while os.path.exists(name):\n", "    while False:\n"),
        ("os.O_CREAT | os.O_EXCL, 0o600", "os.O_CREAT | os.O_TRUNC, 0o600"),
    ),
    slip(
        "22-s11-newline",
        "missing-newline-left",
        ('                file.write(b"\\n")\n', "                pass\n"),
    ),
    slip(
        "22-s11-cuts",
        "copy-kept-as-text",
        (SAVE, '        file.write(torn.decode(errors="replace").encode())\n'),
    ),
    slip(
        "22-s14-cuts",
        "decoded-as-a-whole",
        ('    pieces = raw.split(b"\\n")\n', '    pieces = raw.decode().encode().split(b"\\n")\n'),
    ),
    slip(
        "22-s14-tails",
        "only-cut-json-is-torn",
        (PARSE_FAILED, PARSE_FAILED.replace("if ended", 'if ended or piece[-1:] in b"\\x00} "')),
    ),
    slip(
        "22-s15-kinds",
        "line-quoted-in-the-error",
        (PARSE_FAILED, PARSE_FAILED.replace("str(problem)", 'f"{problem}: {piece[:80]!r}"')),
    ),
    slip(
        "22-s15-ended",
        "bad-last-line-forgiven",
        (PARSE_FAILED, PARSE_FAILED.replace("if ended", "if number < len(pieces) - 1")),
    ),
    slip(
        "22-s15-numbers",
        "numbers-not-named",
        ('f"expected {number}, found {event.sequence}"', '"wrong number"'),
    ),
    slip("22-s15-keys", "last-key-wins", ("\ndef scan(raw, path):\n", LENIENT.replace(", strict=False", ""))),
    slip("22-s15-bytes", "control-characters-pass", ("\ndef scan(raw, path):\n", LENIENT)),
    slip(
        "22-s15-unseen",
        "same-size-same-content",
        (
            READ,
            READ.replace(
                "        return scan",
                "        if len(raw) == self._read[0]:\n            return self._read[1]\n        self._read = len(raw), scan",
            ).replace("path)[0]\n", "path)[0]\n        return self._read[1]\n"),
        ),
        ("        self._next = 1\n", "        self._next = 1\n        self._read = 0, []\n"),
    ),
    slip(
        "22-s15-append",
        "appends-to-a-damaged-log",
        (
            LOOK,
            '            raw = file.read()\n            try:\n                events, good, torn = scan(raw, self.path)\n            except CorruptLogError:\n                events, good, torn = raw.split(b"\\n")[:-1], len(raw), b""\n',
        ),
    ),
    slip("22-s15-append", "damage-met-only-once", (LOOK, "            self._size = status.st_size\n" + LOOK)),
    slip(
        "22-s11-kept",
        "half-a-repair-taken-for-done",
        (MEND, "            self._size = status.st_size\n" + MEND),
    ),
    slip("22-s12-legal", "only-my-own-spelling", ("\ndef scan(raw, path):\n", ONLY_MY_SPELLING)),
    slip(
        "22-s13-nothing",
        "missing-file-raises",
        (READ, READ.replace("            return []\n", "            raise\n")),
    ),
    slip(
        "22-s16",
        "records-counted-not-lines",
        *SKIPS_BLANK,
        (PARSE_FAILED, PARSE_FAILED.replace("(path, number,", "(path, len(events) + 1,")),
    ),
    slip(
        "22-s17",
        "reads-what-is-still-waiting",
        (
            READ,
            READ.replace("scan(raw, self.path)[0]", "self._with_waiting(scan(raw, self.path)[0])")
            + """
    def _with_waiting(self, events):
        for _, record in self._waiting:
            events.append(SessionEvent(len(events) + 1, record[0], record[2]))
        return events
""",
        ),
    ),
    slip(
        "22-s18-changed", "size-never-compared", ("if status.st_size != self._size", "if self._size is None")
    ),
    slip(
        "22-s18-gone",
        "begins-again-when-gone",
        ("os.O_CREAT if self._identity is None else 0", "os.O_CREAT"),
        ("if self._identity not in (None, identity)", "if False"),
    ),
    slip("22-s18-two", "looked-at-once", ("if status.st_size != self._size", "if self._identity is None")),
)
