"""Archives as students and attackers make them: what is taken, what is left out, and that none of them is trusted."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import shutil
import struct
import subprocess
import tarfile
import tracemalloc
import zipfile
import zlib
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grader.intake import KIT_FILES, open_submission, source
from grader.intake.kit_files import MAX_FILE_BYTES
from grader.intake.reasons import UnreadableError
from grader.submission_zip import gather
from tests.piped import KIT

RIGHT = KIT / "assets/sample-class/right"
FILES = gather(RIGHT, list(KIT_FILES)).files
STORE = "lesson_22/session_store.py"
MIB = 1024 * 1024


def zip_of(entries, compression=zipfile.ZIP_DEFLATED):
    """Give a zip's bytes. An entry's name may be a ZipInfo; names may stand twice."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compression) as archive:
        for name, raw in entries:
            archive.writestr(name, raw)
    return packed.getvalue()


def tar_of(entries, mode="w", form=tarfile.GNU_FORMAT):
    """Give a tar's bytes. An entry's name may be a TarInfo."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode, format=form) as archive:
        for name, raw in entries:
            member = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            member.size = member.size or len(raw)
            archive.addfile(member, io.BytesIO(raw))
    return packed.getvalue()


def opened(folder, raw, name="s.zip"):
    (folder / name).write_bytes(raw)
    return open_submission(folder / name)


def taken(found):
    return {
        f"{handin.package}/{name}": raw
        for handin in found.handins.values()
        for name, raw in handin.files.items()
    }


def reasons(found):
    return {entry.name: entry.why for entry in found.left_out}


def special(name, kind, target=""):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member, b""


@contextmanager
def little_memory():
    """Hold what happens within to a few buffers more than one file may be large."""
    tracemalloc.start()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 12 * MIB


MAKERS = {
    "s.zip": zip_of,
    "s.tar": tar_of,
    "s.tar.gz": lambda entries: tar_of(entries, "w:gz"),
    "s.tgz": lambda entries: tar_of(entries, "w:gz"),
    "s.tar.bz2": lambda entries: tar_of(entries, "w:bz2"),
    "s.tar.xz": lambda entries: tar_of(entries, "w:xz"),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("prefix", ["", "starter/", "作业 final/", "repo-main/starter/"])
def test_an_archive_is_taken_as_its_folder_would_be(tmp_path, name, prefix):
    """Every kind, wherever people put the lessons in it; a wrong ending does not matter."""
    raw = MAKERS[name]([(prefix + path, content) for path, content in FILES.items()])
    found = opened(tmp_path, raw, name)
    misnamed = opened(tmp_path, raw, "misnamed.zip")

    assert taken(found) == taken(misnamed) == FILES
    assert (found.problem, found.left_out) == (None, ())
    assert found.content == open_submission(RIGHT).content
    assert found.student == "s"


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_every_form_of_tar_is_read(tmp_path, form):
    """With names too long for a plain header, and in any script."""
    top = "x" * 60 + "/" if form == tarfile.USTAR_FORMAT else "名" * 80 + "/"
    entries = [(top + path, content) for path, content in FILES.items()]

    assert taken(opened(tmp_path, tar_of(entries, form=form), "s.tar")) == FILES


def test_archives_of_the_systems_own_tools_are_read(tmp_path):
    """What `tar` packs of a folder."""
    shutil.copytree(RIGHT, tmp_path / "mine")
    for flag, name in (("z", "a.tgz"), ("j", "a.tar.bz2"), ("J", "a.tar.xz"), ("", "a.tar")):
        subprocess.run(["tar", f"c{flag}f", name, "mine"], cwd=tmp_path, check=True)

        assert taken(open_submission(tmp_path / name)) == FILES


def test_what_a_mac_adds_is_nobodys_file(tmp_path):
    """`__MACOSX`, `._…` and `.DS_Store` are neither taken nor listed, even under the right names."""
    extra = [
        ("__MACOSX/lesson_22/session_store.py", b"x"),
        ("lesson_22/._session_store.py", b"x"),
        (".DS_Store", b"x"),
    ]
    found = opened(tmp_path, zip_of([*FILES.items(), *extra]))

    assert (taken(found), found.left_out) == (FILES, ())


@pytest.mark.parametrize("name", ["s.zip", "s.tar", "s.tar.gz"])
@pytest.mark.parametrize(
    "evil",
    [
        "../lesson_22/homework.py",
        "lesson_22/../lesson_22/homework.py",
        "/lesson_22/homework.py",
        "/etc/passwd",
        "C:/lesson_22/homework.py",
        "c:lesson_22/homework.py",
        "lesson_22/../../../../etc/cron.d/x",
    ],
)
def test_a_name_that_leads_out_is_left_out(tmp_path, name, evil):
    """Zip slip: such a name is listed, is never a path, and never passes for one of the kit's."""
    found = opened(tmp_path, MAKERS[name]([*FILES.items(), (evil, b"x = 1\n")]), name)

    assert taken(found) == FILES
    assert reasons(found) == {evil: "outside"}


def test_backslashes_of_old_windows_tools_are_slashes(tmp_path):
    """And a name that leads out by them does not."""
    entries = [(path.replace("/", "\\"), raw) for path, raw in FILES.items()]
    found = opened(tmp_path, zip_of([*entries, ("..\\..\\evil.py", b"")]))

    assert taken(found) == FILES
    assert reasons(found) == {"../../evil.py": "outside"}


def test_a_name_cut_by_nul_is_not_the_kits(tmp_path):
    """`session_store.py\\0.txt` is one file to a viewer, another to a program."""
    raw = zip_of([("lesson_22/__init__.py", b""), ("lesson_22/session_store.pyX.txt", b"evil")])
    found = opened(tmp_path, raw.replace(b"session_store.pyX", b"session_store.py\0"))

    assert STORE not in taken(found)
    assert reasons(found)["lesson_22/session_store.py\0.txt"] == "outside"


@pytest.mark.parametrize("name", ["s.zip", "s.tar"])
def test_a_name_that_stands_twice_is_not_taken(tmp_path, name):
    """Nobody can tell which was meant, so neither is, and the missing file says why."""
    raw = MAKERS[name]([*FILES.items(), (f"./{STORE}", b"x = 2\n")])
    found = opened(tmp_path, raw, name)

    assert STORE not in taken(found)
    assert reasons(found) == {STORE: "duplicate"}
    assert f"{STORE} (its name stands there more than once)" in found.handin("22").problem.en
    assert found.handin("04").problem is None


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_zip_with_two_entries_of_one_name_is_no_riddle(tmp_path):
    """The very same name twice in the directory."""
    found = opened(tmp_path, zip_of([*FILES.items(), (STORE, b"x = 2\n")]))

    assert reasons(found) == {STORE: "duplicate"}


def test_names_that_differ_in_case_only_do_not_replace_each_other(tmp_path):
    """The kit's own spelling is taken, the other one is listed; alone, it is told what is wrong with it."""
    both = opened(tmp_path, zip_of([*FILES.items(), ("lesson_22/Session_Store.py", b"evil")]))
    alone = opened(tmp_path, zip_of([("Lesson_22/Session_Store.py", b""), ("Lesson_22/__init__.py", b"")]))

    assert taken(both) == FILES
    assert reasons(both) == {"lesson_22/Session_Store.py": "misnamed"}
    assert "there is one at Lesson_22/Session_Store.py" in alone.handin("22").problem.en


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        (tarfile.SYMTYPE, "/etc/passwd"),
        (tarfile.SYMTYPE, "todo.py"),
        (tarfile.LNKTYPE, "lesson_22/todo.py"),
        (tarfile.LNKTYPE, "/etc/shadow"),
        (tarfile.CHRTYPE, ""),
        (tarfile.BLKTYPE, ""),
        (tarfile.FIFOTYPE, ""),
        (b"Z", ""),
    ],
)
def test_what_is_no_plain_file_in_a_tar_is_left_out(tmp_path, kind, target):
    """Links, devices and pipes under a needed name: the file is missing, nothing is followed or opened."""
    entries = [entry for entry in FILES.items() if entry[0] != STORE]
    found = opened(tmp_path, tar_of([*entries, special(STORE, kind, target)]), "s.tar")

    assert reasons(found) == {STORE: "odd"}


def test_a_linked_folder_in_a_tar_leads_nowhere(tmp_path):
    """`lesson_22` is a link out, then a file is put "through" it: it is just a name."""
    found = opened(
        tmp_path,
        tar_of([special("lesson_22", tarfile.SYMTYPE, str(tmp_path)), *FILES.items()]),
        "s.tar",
    )

    assert taken(found) == FILES
    assert reasons(found) == {"lesson_22": "odd"}
    assert [path.name for path in tmp_path.iterdir()] == ["s.tar"]


@pytest.mark.parametrize("mode", [0o120777, 0o020666, 0o010644])
def test_what_is_no_plain_file_in_a_zip_is_left_out(tmp_path, mode):
    """A link, a device and a pipe by their Unix mode."""
    link = zipfile.ZipInfo(STORE)
    link.create_system, link.external_attr = 3, mode << 16
    entries = [entry for entry in FILES.items() if entry[0] != STORE]

    assert reasons(opened(tmp_path, zip_of([*entries, (link, b"/etc/passwd")]))) == {STORE: "odd"}


def test_a_sparse_file_has_no_measure(tmp_path):
    """A few bytes that claim to be gigabytes."""
    sparse = tmp_path / "lesson_22/session_store.py"
    sparse.parent.mkdir()
    sparse.touch()
    os.truncate(sparse, 4 << 30)
    subprocess.run(["tar", "cSf", tmp_path / "s.tar", "lesson_22"], cwd=tmp_path, check=True)

    assert reasons(open_submission(tmp_path / "s.tar")) == {STORE: "odd"}


def flagged(raw, bit):
    """Set a flag in every header of a zip."""
    changed = bytearray(raw)
    for signature, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = raw.find(signature)
        while at >= 0:
            changed[at + place] |= bit & 0xFF
            changed[at + place + 1] |= bit >> 8
            at = raw.find(signature, at + 1)
    return bytes(changed)


def test_an_encrypted_zip_says_so(tmp_path):
    """The password is not guessed."""
    found = opened(tmp_path, flagged(zip_of(FILES.items()), 1))

    assert set(reasons(found).values()) == {"encrypted"}
    assert f"{STORE} (encrypted)" in found.handin("22").problem.en


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_method_that_cannot_be_bounded_is_not_read(tmp_path, compression):
    """zipfile unpacks these without measure; no common tool makes such zips unasked."""
    found = opened(tmp_path, zip_of(FILES.items(), compression))

    assert set(reasons(found).values()) == {"method"}


@pytest.mark.parametrize("encoding", ["gb18030", "utf-8", "cp437"])
def test_names_in_any_encoding_are_read(tmp_path, encoding):
    """A top folder that was named in a code page, by a tool that did not say which."""
    top = {"gb18030": "第22课作业", "utf-8": "作业-é", "cp437": "réponse"}[encoding]
    placeholder = "T" * len(top.encode(encoding))
    raw = zip_of(
        [(f"{placeholder}/{path}", content) for path, content in FILES.items()]
        + [(f"{placeholder}/x.txt", b"")]
    )
    found = opened(tmp_path, raw.replace(placeholder.encode(), top.encode(encoding)))

    assert taken(found) == FILES
    if encoding != "cp437":
        assert reasons(found) == {f"{top}/x.txt": "unnamed"}


def test_a_name_that_is_not_the_utf8_it_claims_to_be_is_told(tmp_path):
    """One row with a reason; the run goes on."""
    raw = zip_of([("lesson_22/AAAA.py", b"x")]).replace(b"AAAA", b"\xff\xfe\xff\xfe")

    assert "damaged" in opened(tmp_path, flagged(raw, 0x800)).problem.en


@pytest.mark.parametrize("name", ["s.zip", "s.tar.gz", "s.tar.bz2", "s.tar.xz", "s.tar"])
def test_a_half_uploaded_archive_has_its_reason_at_every_cut(tmp_path, name):
    """Cut anywhere, it is told to be damaged; never half a hand-in that passes for a whole one."""
    raw = MAKERS[name](FILES.items())
    end = len(raw.rstrip(b"\0")) if name == "s.tar" else len(raw)
    for cut in {1, 2, 300, 511, 512, 513, 1024, *range(7, end, end // 40)}:
        found = opened(tmp_path, raw[:cut], name)

        assert found.problem, cut
        assert taken(found) == {}, cut


@pytest.mark.parametrize("name", ["s.zip", "s.tar.gz", "s.tar.xz", "s.tar"])
def test_a_changed_byte_is_never_taken_for_the_students(tmp_path, name):
    """Where the format has checksums, what comes out is what went in, or a reason."""
    raw = MAKERS[name](FILES.items())
    for at in range(3, len(raw), max(1, len(raw) // 150)):
        changed = bytearray(raw)
        changed[at] ^= 0x55
        found = opened(tmp_path, bytes(changed), name)
        if name != "s.tar":  # a plain tar has none for contents
            assert taken(found).items() <= FILES.items(), at


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"", "empty"),
        (b"<!DOCTYPE html><p>Log in", "damaged"),
        (b"Rar!\x1a\x07\x01\x00rest", "RAR archives are not read"),
        (b"7z\xbc\xaf\x27\x1c\x00\x04", "7z archives are not read"),
        (b"\x28\xb5\x2f\xfd\x00", "Zstandard archives are not read"),
        (b"PK\x05\x06" + bytes(18), None),
        (bytes(range(256)) * 8, "damaged"),
        (gzip.compress(b"not a tar", mtime=0), "damaged"),
        (bytes(1024), None),
    ],
)
def test_what_is_no_archive_says_so(tmp_path, raw, told):
    """Sniffed by its first bytes, whatever its name; an empty archive is whole, and lacks the files."""
    found = opened(tmp_path, raw)

    if told is None:
        assert (found.problem, found.handin("22").files) == (None, {})
        assert "is not there" in found.handin("22").problem.en
    else:
        assert told in found.problem.en
        assert found.handin("22").problem == found.problem


def test_a_file_that_claims_to_be_no_archive_says_so(tmp_path):
    """A picture, a document, a lone module: neither folder nor archive."""
    assert (
        "neither a folder nor an archive" in opened(tmp_path, b"import os\n", "session_store.py").problem.en
    )


def test_an_archive_within_an_archive_is_not_opened(tmp_path):
    """A zip in a zip in a zip: named, and left packed."""
    inner = zip_of(FILES.items())
    found = opened(tmp_path, zip_of([("s.zip", inner)]))

    assert reasons(found) == {"s.zip": "archive"}
    assert "unpack s.zip first" in found.handin("22").problem.en


def test_a_folder_around_one_archive_is_opened(tmp_path):
    """As learning platforms export each upload."""
    (tmp_path / "Ana Lima_12_assignsubmission_file").mkdir()
    (tmp_path / "Ana Lima_12_assignsubmission_file/lab.zip").write_bytes(zip_of(FILES.items()))
    found = open_submission(tmp_path / "Ana Lima_12_assignsubmission_file")

    assert taken(found) == FILES
    assert found.form == "zip"
    assert found.handed_in == "Ana Lima_12_assignsubmission_file"


def test_a_large_member_is_not_unpacked(tmp_path):
    """By what it declares."""
    raw = zip_of([(STORE, b"#" * (MAX_FILE_BYTES + 1))])

    assert reasons(opened(tmp_path, raw)) == {STORE: "large"}
    assert reasons(opened(tmp_path, tar_of([(STORE, b"#" * (MAX_FILE_BYTES + 1))], "w:gz"))) == {
        STORE: "large"
    }


def lying_zip(real, claimed):
    """Give a zip whose one member unpacks to `real` zero bytes, and claims to be `claimed` long."""
    raw = bytearray(zip_of([(STORE, bytes(real))]))
    size = struct.pack("<I", claimed)
    for signature, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = raw.find(signature) + place
        raw[at : at + 4] = size
    return bytes(raw)


@pytest.mark.parametrize("claimed", [0, 10, 1000, MAX_FILE_BYTES])
def test_a_member_that_lies_about_its_size_is_damaged(tmp_path, claimed):
    """It claims little and unpacks to 16 MiB: no more than claimed is ever unpacked, and its checksum fails."""
    assert reasons(opened(tmp_path, lying_zip(16 * MIB, claimed))) == {STORE: "damaged"}


@pytest.mark.parametrize(
    ("signature", "place", "value"),
    [
        (b"PK\x01\x02", 42, b"\xf0\xff\xff\x7f"),  # the directory sends the reader behind the end
        (b"PK\x03\x04", 6, b"\0\x08" + bytes(22) + b"\xff\xfe"),  # a name that is not the UTF-8 it claims
        (b"PK\x03\x04", 26, b"\xff\xff"),  # its name has no end
        (b"PK\x03\x04", 0, b"XX"),
        (b"PK\x01\x02", 6, b"\xff\0"),  # a version of zip that does not exist
    ],
)
def test_a_header_that_contradicts_the_directory_is_damage(tmp_path, signature, place, value):
    """Each header is believed by zipfile in a way of its own; none of its errors reaches the class."""
    raw = bytearray(zip_of([("lesson_22/__init__.py", b"x"), (STORE, b"x" * 70_000)], zipfile.ZIP_STORED))
    at = raw.rfind(signature) + place
    raw[at : at + len(value)] = value
    found = opened(tmp_path, bytes(raw))

    assert STORE not in taken(found)
    assert "damaged" in (found.problem or found.handin("22").problem).en


def overlapping_zip(count):
    """Give a zip whose members all share one body (the first kind of zip bomb)."""
    body = zlib.compress(b"#" * MAX_FILE_BYTES)[2:-4]
    crc = zlib.crc32(b"#" * MAX_FILE_BYTES)
    sizes = struct.pack("<III", crc, len(body), MAX_FILE_BYTES)
    local = (
        b"PK\x03\x04"
        + struct.pack("<HHHHH", 20, 0, 8, 0, 33)
        + sizes
        + struct.pack("<HH", 1, 0)
        + b"a"
        + body
    )
    entry = b"PK\x01\x02" + struct.pack("<HHHHHH", 20, 20, 0, 8, 0, 33) + sizes
    entry += struct.pack("<HHHHHII", 1, 0, 0, 0, 0, 0, 0) + b"a"
    end = b"PK\x05\x06" + struct.pack(
        "<HHHHIIH", 0, 0, count % 65536, count % 65536, len(entry) * count, len(local), 0
    )
    return local + entry * count + end


def test_overlapping_entries_are_refused(tmp_path):
    """A thousand members in one body."""
    assert "overlap" in opened(tmp_path, overlapping_zip(1000)).problem.en


def test_too_large_a_directory_is_not_read(tmp_path):
    """A hundred thousand members, or a directory of 200 MiB, all hole."""
    many = overlapping_zip(100_000)
    (tmp_path / "hole.zip").write_bytes(b"PK\x03\x04")
    os.truncate(tmp_path / "hole.zip", 200 * MIB)
    with (tmp_path / "hole.zip").open("ab") as file:
        file.write(b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, 200 * MIB, 0, 0))
    with little_memory():
        found = open_submission(tmp_path / "hole.zip")

    assert "more than 20000 files" in opened(tmp_path, many).problem.en
    assert "more than 20000 files" in found.problem.en


def test_too_many_members_in_a_tar_are_not_read(tmp_path, monkeypatch):
    """The count is bounded, whatever they hold."""
    monkeypatch.setattr("grader.intake.tars.MAX_ENTRIES", 100)
    header = tarfile.TarInfo("x").tobuf()

    assert "more than 100 files" in opened(tmp_path, gzip.compress(header * 102), "s.tgz").problem.en


@pytest.mark.parametrize("packing", [gzip.compress, bz2.compress, lzma.compress])
def test_a_tar_that_unpacks_without_end_is_given_up(tmp_path, packing, monkeypatch):
    """A bomb of zeros behind one header: counted as it is unpacked, in small steps."""
    monkeypatch.setattr("grader.intake.tars.MAX_UNPACKED_BYTES", MIB)
    big = tarfile.TarInfo("big")
    big.size = 8 * MIB
    raw = packing(big.tobuf() + bytes(8 * MIB))
    with little_memory():
        found = opened(tmp_path, raw, "s.tgz")

    assert "unpacks to more than 1 MiB" in found.problem.en


def test_an_xz_may_not_ask_for_all_memory(tmp_path):
    """Its header names the memory it wants: this one a 512 MiB dictionary."""
    packer = lzma.LZMACompressor(lzma.FORMAT_XZ, filters=[{"id": lzma.FILTER_LZMA2, "preset": 0}])
    raw = packer.compress(tar_of(FILES.items())) + packer.flush()
    assert taken(opened(tmp_path, raw, "s.tar.xz")) == FILES

    # The dictionary's size is one byte of the block header, which has a checksum of its own.
    header = bytearray(raw[12:24])
    header[4] = 34  # 512 MiB
    header[8:12] = struct.pack("<I", zlib.crc32(header[:8]))
    greedy = raw[:12] + bytes(header) + raw[24:]

    assert "damaged" in opened(tmp_path, greedy, "s.tar.xz").problem.en


@pytest.mark.parametrize(
    "kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK]
)
def test_a_long_name_without_measure_is_not_read(tmp_path, kind):
    """tarfile would read as many bytes as this header claims into memory."""
    member = tarfile.TarInfo("x")
    member.type, member.size = kind, 20 * MIB
    raw = gzip.compress(member.tobuf() + bytes(20 * MIB), 1)
    with little_memory():
        found = opened(tmp_path, raw, "s.tgz")

    assert "damaged" in found.problem.en


def test_a_tar_with_a_negative_or_endless_size_ends(tmp_path):
    """tarfile would go back and read the same header for ever, or ask for blocks that never come."""
    for size in (-512, -1, 1 << 62):
        member = tarfile.TarInfo(STORE)
        member.size = size
        raw = member.tobuf(tarfile.GNU_FORMAT) + bytes(2048)

        assert "damaged" in opened(tmp_path, raw, "s.tar").problem.en


def test_a_tar_that_breaks_off_at_a_header_is_damaged(tmp_path):
    """tarfile takes a header that is none for the end."""
    raw = bytearray(tar_of([(f"lesson_22/{name}", b"x" * 512) for name in KIT_FILES["22"].named]))
    raw[3 * 1024 + 20] ^= 1

    assert "damaged" in opened(tmp_path, bytes(raw), "s.tar").problem.en
    assert "damaged" in opened(tmp_path, gzip.compress(raw), "s.tgz").problem.en


def test_a_pax_record_may_not_turn_back_the_tape(tmp_path):
    """A size is hidden in a PAX record, where the header's own is harmless."""
    for size in ("-512", "4611686018427387904"):
        member = tarfile.TarInfo(STORE)
        member.pax_headers = {"size": size}
        raw = tar_of([(member, b"")], form=tarfile.PAX_FORMAT)

        assert "damaged" in opened(tmp_path, raw, "s.tar").problem.en


def test_endless_headers_of_headers_end(tmp_path):
    """Each PAX record announces another one: tarfile recurses."""
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 0

    assert opened(tmp_path, gzip.compress(header.tobuf() * 3_000), "s.tgz").problem


def test_a_huge_upload_is_not_opened(tmp_path):
    """By its size alone; the gigabyte is a hole."""
    (tmp_path / "s.zip").write_bytes(zip_of(FILES.items()))
    os.truncate(tmp_path / "s.zip", source.MAX_ARCHIVE_BYTES + 1)

    assert "larger than 256 MiB" in open_submission(tmp_path / "s.zip").problem.en


def test_time_is_bounded(tmp_path, monkeypatch):
    """What takes too long is given up, with its reason."""
    monkeypatch.setattr(source.Deadline.__init__, "__defaults__", (0.0,))

    for name, maker in MAKERS.items():
        assert "given up" in opened(tmp_path, maker(FILES.items()), name).problem.en


@pytest.mark.parametrize(
    "raw",
    [
        b"\x1f\x8b\x08\x08" + bytes(6) + b"n" * 5000,
        gzip.compress(b"", mtime=0) * 5000,
        bz2.compress(b"") * 100_000,
    ],
    ids=["a name without end", "empty gzips", "empty bzip2s"],
)
def test_what_unpacks_to_nothing_costs_no_time(tmp_path, monkeypatch, raw):
    """A file name without end in a gzip's header, and empty parts without number: the clock is looked at all the same."""
    looks = iter(range(100))

    def look(_):
        if next(looks, None) is None:
            raise UnreadableError("slow", most=1)

    monkeypatch.setattr(source.Deadline, "check", look)

    assert "given up" in opened(tmp_path, raw, "s.tgz").problem.en


def test_opening_an_archive_writes_nothing(tmp_path):
    """Not beside it, not in the folder for temporary files, and the archive is as it was."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "class").mkdir()
    for name, maker in MAKERS.items():
        (tmp_path / "class" / name).write_bytes(
            maker([*FILES.items(), ("../../evil.py", b"x"), ("/tmp/evil.py", b"x")])
        )
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in (tmp_path / "class").iterdir()}
    for path in before:
        assert taken(open_submission(path)) == FILES

    assert {
        path: (path.read_bytes(), path.stat().st_mtime_ns) for path in (tmp_path / "class").iterdir()
    } == before
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted(["class", "tmp", *MAKERS])


ANY_NAMES = st.sampled_from(
    [
        STORE,
        "lesson_22/__init__.py",
        "../x",
        "a/b",
        "./" + STORE,
        "空.py",
        "x.ipynb",
        "statelab-submission.json",
    ]
)
ANY_ENTRIES = st.lists(st.tuples(ANY_NAMES, st.binary(max_size=200)), max_size=6)


def mutated(raw, draw):
    """Change an archive as uploads and attackers do: bytes, holes, repeats, lost pieces, large and negative numbers."""
    changed = bytearray(raw)
    for _ in range(draw.randint(0, 6)):
        at, length = draw.randrange(len(changed) or 1), draw.randint(1, 600)
        patch = draw.choice(
            [
                [draw.randrange(256)],
                bytes(length),
                changed[at // 2 : at // 2 + length],
                draw.choice([b"\xff" * 4, b"\x80\0\0\0", b"-512", b"9999", b"\0\x08", b"\xff\xfe"]),
            ]
        )
        changed[at : at + draw.choice([0, len(patch), length])] = patch
        if len(changed) > 512 and draw.random() < 0.3:
            changed[at // 512 * 512 : at // 512 * 512 + 512] = with_number(
                changed[at // 512 * 512 :][:512], draw
            )
    return bytes(changed)


def with_number(block, draw):
    """Give a tar's header another size, and the checksum that goes with it."""
    header = bytearray(block.ljust(512, b"\0"))
    header[124:136] = draw.choice([b"77777777777\0", b"\x80" + b"\xff" * 11, b"\xff" * 12, b"00000000000\0"])
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return header


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("examples", [150, pytest.param(20_000, marks=pytest.mark.proof)])
def test_a_mutated_archive_is_a_submission_or_a_reason(tmp_path_factory, examples):
    """Real archives, changed at random: never an unexpected error, never more than the bounds allow."""

    @settings(max_examples=examples, deadline=None)
    @given(ANY_ENTRIES, st.sampled_from(list(MAKERS.values())), st.randoms(use_true_random=False))
    def holds(entries, maker, draw):
        raw = mutated(maker(entries), draw)
        check_bounds(tmp_path_factory, gzip.compress(raw) if draw.random() < 0.2 else raw)

    holds()


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    start=st.sampled_from([b"", b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b\x08", b"BZh9", b"\xfd7zXZ\0"]),
    rest=st.binary(max_size=2000),
)
def test_any_bytes_are_a_submission_or_a_reason(tmp_path_factory, start, rest):
    """Random bytes behind every magic number."""
    check_bounds(tmp_path_factory, start + rest)


def check_bounds(tmp_path_factory, raw):
    path = tmp_path_factory.getbasetemp() / "any.zip"
    path.write_bytes(raw)
    found = open_submission(path)
    handins = [found.handin(lesson) for lesson in KIT_FILES]

    assert all(handin.problem for handin in handins) or taken(found)
    assert all(len(content) <= MAX_FILE_BYTES for content in taken(found).values())
    assert all(name in KIT_FILES[handin.lesson].named for handin in handins for name in handin.files)
    assert not found.problem or "half way" not in found.problem.en
