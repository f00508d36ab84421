"""Git repositories, read at HEAD: what was committed, with real git, and nothing of the student's ever runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from grader.intake import KIT_FILES, open_submission, take
from grader.submission_zip import gather
from tests.piped import KIT

RIGHT = KIT / "assets/sample-class/right"
FILES = gather(RIGHT, list(KIT_FILES)).files
STORE = "lesson_22/session_store.py"


def git(folder, *words, **options):
    """Run git as the student would, untouched by this machine's settings."""
    clean = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    return subprocess.run(
        ["git", "-C", folder, *who, *words],
        check=True, capture_output=True, text=True, env={**os.environ, **clean}, **options,
    ).stdout.strip()  # fmt: skip


def commit_all(folder):
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "work")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def checkout(tmp_path):
    """A right submission, committed."""
    folder = tmp_path / "class" / "ana"
    shutil.copytree(RIGHT, folder)
    git(folder, "init", "-q", "-b", "main")
    commit_all(folder)
    return folder


def taken(found):
    return {
        f"{handin.package}/{name}": raw
        for handin in found.handins.values()
        for name, raw in handin.files.items()
    }


def reasons(found):
    return {entry.name: entry.why for entry in found.left_out}


def test_a_checkout_is_read_at_head(checkout):
    """What lies in the work tree and was not committed is left out, and told."""
    (checkout / STORE).write_text("x = 1\n")
    (checkout / "lesson_22/homework.py").write_text("x = 1\n")
    (checkout / "untracked.py").write_text("x = 1\n")
    found = open_submission(checkout)

    assert (found.form, found.problem, found.left_out) == ("git", None, ())
    assert taken(found) == FILES
    assert [note.en for note in found.notes] == [
        f"not committed, so not graded: changes in lesson_22/homework.py, {STORE}"
    ]


def test_a_clean_checkout_needs_no_note(checkout):
    """Line ends that a checkout on Windows rewrites are no change."""
    (checkout / STORE).write_bytes(FILES[STORE].replace(b"\n", b"\r\n"))
    found = open_submission(checkout)

    assert found.notes == ()
    assert found.content == open_submission(RIGHT).content


def test_a_learner_is_judged_by_the_work_tree(checkout):
    """`verify` takes a folder as it stands, a repository or not."""
    (checkout / STORE).write_text("x = 1\n")

    assert take(checkout, "22").files["session_store.py"] == b"x = 1\n"


def in_every_state(checkout):
    """Give the same repository as the states that git keeps one in."""
    yield checkout
    git(checkout, "pack-refs", "--all")
    git(checkout, "gc", "-q", "--aggressive")
    yield checkout
    git(checkout, "checkout", "-q", "--detach")
    yield checkout
    bare = checkout.parent / "bare.git"
    git(checkout.parent, "clone", "-q", "--bare", "--no-local", "ana", "bare.git")
    yield bare
    shutil.rmtree(checkout / "lesson_22")
    yield checkout


def test_loose_packed_detached_bare_and_emptied_repositories_are_read(checkout):
    """Whatever state the repository is in, HEAD is the same."""
    for folder in in_every_state(checkout):
        assert taken(open_submission(folder)) == FILES, folder


def test_a_sha256_repository_is_read(tmp_path):
    """The newer object format is known by its ids."""
    shutil.copytree(RIGHT, tmp_path / "ana")
    git(tmp_path / "ana", "init", "-q", "--object-format=sha256")
    commit_all(tmp_path / "ana")

    assert taken(open_submission(tmp_path / "ana")) == FILES


def trap(folder):
    """Give a program that leaves a trace if it ever runs, and the trace."""
    trace, program = folder / "it-ran", folder / "trap.sh"
    program.write_text(f"#!/bin/sh\ntouch {trace}\ncat\n")
    program.chmod(0o755)
    return program, trace


PROMISOR = (
    "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = origin\n"
    '[remote "origin"]\n\turl = ext::{trap}\n\tpromisor = true\n[protocol]\n\tallow = always\n'
)
CONFIGS = [
    "[core]\n\tfsmonitor = {trap}\n",
    "[core]\n\tpager = {trap}\n\teditor = {trap}\n\tsshCommand = {trap}\n\taskPass = {trap}\n\tgitProxy = {trap}\n",
    "[core]\n\thooksPath = {folder}\n",
    "[alias]\n\tls-tree = !{trap}\n\tcat-file = !{trap}\n",
    '[filter "x"]\n\tclean = {trap}\n\tsmudge = {trap}\n\tprocess = {trap}\n\trequired = true\n',
    '[diff "x"]\n\ttextconv = {trap}\n\tcommand = {trap}\n[diff]\n\texternal = {trap}\n',
    "[credential]\n\thelper = {trap}\n[gpg]\n\tprogram = {trap}\n[uploadpack]\n\tpackObjectsHook = {trap}\n",
    PROMISOR,
    "[include]\n\tpath = {fifo}\n",
    "[core]\n\tworktree = /\n\tbare = false\n",
    "[core]\n\trepositoryformatversion = 99\n",
    "not a configuration [",
]


@pytest.mark.parametrize("config", CONFIGS)
def test_nothing_that_a_repository_configures_is_run(checkout, tmp_path, config):
    """File system monitors, hooks, filters, aliases, pagers, promisor remotes: the configuration is not even read."""
    program, trace = trap(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    for hook in ("post-index-change", "post-checkout", "reference-transaction", "fsmonitor-watchman"):
        shutil.copy(program, checkout / ".git/hooks" / hook)
    (checkout / ".git/info/attributes").write_text("* filter=x diff=x\n")
    text = config.format(trap=program, folder=tmp_path, fifo=tmp_path / "fifo")
    (checkout / ".git/config").write_text(text)
    found = open_submission(checkout)

    assert taken(found) == FILES
    assert not trace.exists()


def test_the_trap_is_real(checkout, tmp_path):
    """Plain git does run what this repository says, so the tests above can fail."""
    program, trace = trap(tmp_path)
    (checkout / ".git/config").write_text(CONFIGS[0].format(trap=program))
    git(checkout, "status")

    assert trace.exists()


def test_a_missing_object_is_not_fetched(checkout, tmp_path):
    """A promisor remote is a command line of the student's choice."""
    program, trace = trap(tmp_path)
    (checkout / ".git/config").write_text(PROMISOR.format(trap=program))
    blob = git(RIGHT, "hash-object", "lesson_22/session_store.py")
    (checkout / f".git/objects/{blob[:2]}/{blob[2:]}").unlink()
    found = open_submission(checkout)

    assert reasons(found) == {STORE: "damaged"}
    assert not trace.exists()


def test_the_graders_own_environment_does_not_lead_git_away(checkout, monkeypatch, tmp_path):
    """GIT_* variables of the instructor's shell are not passed on."""
    program, trace = trap(tmp_path)
    for name, value in {
        "GIT_DIR": "/nowhere",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "alias.ls-tree",
        "GIT_CONFIG_VALUE_0": f"!{program}",
        "GIT_TRACE": str(trace),
        "GIT_EXTERNAL_DIFF": str(program),
    }.items():
        monkeypatch.setenv(name, value)

    assert taken(open_submission(checkout)) == FILES
    assert not trace.exists()


def test_replaced_objects_and_grafts_do_not_count(checkout):
    """What HEAD names is read, not what `git replace` would put in its place."""
    blob = git(checkout, "rev-parse", f"HEAD:{STORE}")
    evil = git(checkout, "hash-object", "-w", "--stdin", input="evil = 1\n")
    git(checkout, "replace", blob, evil)

    assert taken(open_submission(checkout)) == FILES


def test_objects_of_others_are_not_read(checkout, tmp_path):
    """Alternates, a common folder, and links would let one submission hold another's objects."""
    other = tmp_path / "other"
    shutil.copytree(checkout / ".git", other)

    def alternates(repository):
        (repository / "objects/info").mkdir(exist_ok=True)
        (repository / "objects/info/alternates").write_text(f"{other}/objects\n")

    def common_folder(repository):
        (repository / "commondir").write_text(f"{other}\n")

    def linked_objects(repository):
        shutil.rmtree(repository / "objects")
        (repository / "objects").symlink_to(other / "objects")

    def linked_object(repository):
        loose = next(path for path in (repository / "objects").glob("??/*"))
        loose.unlink()
        loose.symlink_to(other / "objects" / loose.parent.name / loose.name)

    def pipe_for_an_object(repository):
        os.mkfifo(repository / "objects" / "pack" / "x.pack")

    for number, change in enumerate(
        [alternates, common_folder, linked_objects, linked_object, pipe_for_an_object]
    ):
        folder = tmp_path / str(number)
        shutil.copytree(checkout, folder)
        change(folder / ".git")
        found = open_submission(folder)

        assert "keeps objects elsewhere" in found.problem.en, change
        assert taken(found) == {}


def test_a_head_that_leads_out_is_none(checkout, tmp_path):
    """HEAD is read here: it may not name a file outside, a link, a pipe, or itself."""
    commit = git(checkout, "rev-parse", "HEAD")
    (tmp_path / "secret").write_text(commit)
    heads = checkout / ".git/refs/heads"
    (heads / "linked").symlink_to(tmp_path / "secret")
    (checkout / ".git/refs/away").symlink_to(tmp_path)
    os.mkfifo(heads / "pipe")
    (heads / "loop").write_text("ref: refs/heads/loop\n")
    for target in [
        "refs/../../../../secret",
        str(tmp_path / "secret"),
        "refs/heads/linked",
        "refs/away/secret",
        "refs/heads/pipe",
        "refs/heads/loop",
        "refs/heads/gone",
        "-rf",
        "",
    ]:
        (checkout / ".git/HEAD").write_text(f"ref: {target}\n")

        assert "no commit that can be read" in open_submission(checkout).problem.en, target


@pytest.mark.parametrize("head", ["", "--help\n", "HEAD\n", "0" * 40, "a" * 39, "\xff\xfe", "x" * 5000])
def test_a_head_that_is_no_commit_is_told(checkout, head):
    """Never handed to git as a word, never a traceback."""
    (checkout / ".git/HEAD").write_text(head, "latin-1")

    assert "HEAD" in open_submission(checkout).problem.en


def test_a_repository_without_a_commit_says_so(tmp_path):
    """`git init` and nothing more."""
    shutil.copytree(RIGHT, tmp_path / "ana")
    git(tmp_path / "ana", "init", "-q")

    assert "commit first" in open_submission(tmp_path / "ana").problem.en


def test_links_submodules_and_strange_names_in_a_tree_are_left_out(checkout):
    """A link under a needed name, another repository as `lesson_04`, a name that leads out."""
    (checkout / STORE).unlink()
    (checkout / STORE).symlink_to("/etc/passwd")
    shutil.rmtree(checkout / "lesson_04")
    commit_all(checkout)
    head = git(checkout, "rev-parse", "HEAD")
    git(checkout, "update-index", "--add", "--cacheinfo", f"160000,{head},lesson_04")
    tree = git(checkout, "write-tree")
    blob = git(checkout, "hash-object", "-w", "--stdin", input="evil = 1\n")
    listed = git(checkout, "ls-tree", tree) + f"\n100644 blob {blob}\tC:evil.py\n"
    tree = git(checkout, "mktree", input=listed)
    (checkout / ".git/HEAD").write_text(git(checkout, "commit-tree", tree, "-m", "x") + "\n")
    found = open_submission(checkout)

    assert reasons(found) == {STORE: "odd", "lesson_04": "odd", "C:evil.py": "outside"}


def test_a_tree_of_ten_to_the_tenth_files_ends(tmp_path):
    """Ten levels of trees, each ten times the one below: the listing is read as a stream, and given up."""
    bomb = tmp_path / "bomb"
    bomb.mkdir()
    git(bomb, "init", "-q")
    kind, name = "100644 blob", git(bomb, "hash-object", "-w", "--stdin", input="x\n")
    for _ in range(10):
        listed = "".join(f"{kind} {name}\td{number}\n" for number in range(10))
        kind, name = "040000 tree", git(bomb, "mktree", input=listed)
    (bomb / ".git/HEAD").write_text(git(bomb, "commit-tree", name, "-m", "x") + "\n")

    assert "more than 20000 files" in open_submission(bomb).problem.en


def test_a_large_blob_is_not_unpacked(checkout):
    """Its size is asked first."""
    (checkout / STORE).write_bytes(bytes(40 * 1024 * 1024))
    commit_all(checkout)

    assert reasons(open_submission(checkout)) == {STORE: "large"}


def test_a_damaged_object_is_told(checkout):
    """Half a push: an object that is cut, and a commit that is not there."""
    blob = git(checkout, "rev-parse", f"HEAD:{STORE}")
    loose = checkout / f".git/objects/{blob[:2]}/{blob[2:]}"
    loose.chmod(0o644)
    loose.write_bytes(loose.read_bytes()[:20])
    cut = open_submission(checkout)
    commit = git(checkout, "rev-parse", "HEAD")
    (checkout / f".git/objects/{commit[:2]}/{commit[2:]}").unlink()

    assert reasons(cut) == {STORE: "damaged"}
    assert "git fsck" in open_submission(checkout).problem.en


@pytest.mark.parametrize("what", ["a file", "a link", "an empty folder"])
def test_a_git_that_is_no_repository_is_not_followed(checkout, tmp_path, what):
    """A linked work tree or a stray `.git`: the folder is read as it lies there, and that is told."""
    shutil.move(checkout / ".git", tmp_path / "elsewhere")
    if what == "a file":
        (checkout / ".git").write_text(f"gitdir: {tmp_path / 'elsewhere'}\n")
    elif what == "a link":
        (checkout / ".git").symlink_to(tmp_path / "elsewhere")
    else:
        (checkout / ".git").mkdir()
    (checkout / STORE).write_text("x = 1\n")
    found = open_submission(checkout)

    assert found.form == "folder"
    assert taken(found)[STORE] == b"x = 1\n"
    assert "no whole repository" in found.notes[0].en


def test_without_git_the_row_says_so(checkout, monkeypatch, tmp_path):
    """The grader's lack, told in words, not a crash."""
    monkeypatch.setenv("PATH", str(tmp_path))

    assert "git is not installed" in open_submission(checkout).problem.en


def test_a_repository_is_not_written_and_no_process_is_left(checkout):
    """Not even an index is refreshed; git's server is gone when the submission is open."""

    def state():
        return {path: path.lstat().st_mtime_ns for path in checkout.rglob("*")}

    before, children = state(), own_children()
    open_submission(checkout)

    assert state() == before
    assert own_children() == children


def own_children():
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text()
