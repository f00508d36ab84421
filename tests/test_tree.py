"""A folder that somebody else filled is looked at without following anything that they left there."""

from __future__ import annotations

import hashlib
import os

import pytest

from grader import tree
from grader.work_folder import OddFileError


def test_everything_is_listed_as_what_it_is(tmp_path):
    """Files with digest and mode, links with where they point, pipes as something else; folders are not listed."""
    lab = tmp_path / "001" / "lab"
    (lab / "a").mkdir(parents=True)
    (lab / "a" / "file").write_bytes(b"x")
    (lab / "a" / "file").chmod(0o640)
    (lab / "link").symlink_to("/etc/passwd")
    (lab / "folder").symlink_to("/etc")
    os.mkfifo(lab / "pipe")

    found = tree.look(tmp_path, "001/lab")

    assert found == {
        "a/file": ("file", 0o640, hashlib.sha256(b"x").hexdigest()),
        "link": ("link", 0, "/etc/passwd"),
        "folder": ("link", 0, "/etc"),
        "pipe": ("other", 0, "p"),
    }


@pytest.mark.parametrize("step", ["001", "001/lab", "001/lab/tasks"])
def test_no_link_is_followed_on_the_way(tmp_path, step):
    """A link in the place of any folder of the way is refused, for a look and for a read."""
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "lab" / "tasks").mkdir(parents=True)
    (elsewhere / "lab" / "tasks" / "secret").write_text("x")
    root = tmp_path / "root"
    (root / step).parent.mkdir(parents=True)
    (root / step).symlink_to(elsewhere / step.removeprefix("001").removeprefix("/"))

    with pytest.raises(OddFileError):
        tree.read(root, "001/lab/tasks/secret")
    with pytest.raises(OddFileError):
        tree.look(root, "001/lab/tasks")


@pytest.mark.parametrize(
    "make",
    [
        os.mkfifo,
        os.mkdir,
        lambda path: path.symlink_to("/etc/passwd"),
        lambda path: path.write_bytes(b"x" * (9 << 20)),
    ],
)
def test_only_a_plain_file_of_reasonable_size_is_read(tmp_path, make):
    """A pipe is not waited for, a link is not followed, a huge file is not taken in."""
    make(tmp_path / "odd")

    with pytest.raises(OddFileError):
        tree.read(tmp_path, "odd")


def test_what_is_missing_is_missing(tmp_path):
    """A missing file, and a missing folder on the way, are told apart from odd ones."""
    with pytest.raises(FileNotFoundError):
        tree.read(tmp_path, "nowhere")
    with pytest.raises(FileNotFoundError):
        tree.look(tmp_path, "001/lab")
