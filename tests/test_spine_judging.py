"""From an agent's word to a decision: evidence, boundary, verification, and whole process trees (P10, P11, P12, P14)."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from tests.spine_lab import Lab, agent_script, environment

pytest_plugins = ["tests.spine_fixtures"]

CONTRACT = "loop.contract.json"
# What makes the quick verification pass, as an agent's script: then only the boundary can object.
SOLVE = "import pathlib, os\nsrc = pathlib.Path('src/search.mjs')\nsrc.write_bytes(src.read_bytes().replace(rb'/\\s+/', rb'/[\\s\\p{P}]+/'))\n"


def work(lab: Lab, source: str, *, solve: bool = True):
    """Run a round whose agent is this piece of Python."""
    return lab.run(*agent_script(lab, (SOLVE if solve else "") + source))


# --- P10: word and evidence ---


def test_an_agent_that_says_done_with_a_failing_test_is_rejected(lab):
    """Its claim stands in the attempt beside the failing exit code, and the task stays in processing."""
    says = 'print(\'{"status": "success", "summary": "all tests pass"}\')\nopen("src/search.mjs", "a").write("// done\\n")'
    ran = work(lab, says, solve=False)

    assert (ran.code, ran.said) == (1, ("rejected", "verification_failed", "acceptance"))
    attempt = lab.record("attempt")
    assert attempt["agent"]["status"] == "success"
    assert attempt["evidence"]["commands"][0]["exit_code"] == 1
    assert lab.places() == ["processing"]
    assert lab.run().said == ("blocked", "needs_person", "rejected")


def test_a_failing_agent_is_rejected_whatever_it_says_and_whatever_passes(lab):
    """Row 137: exit code and word are both recorded, and the exit code wins."""
    says = 'print(\'{"status": "success", "summary": "fine"}\')\nraise SystemExit(1)'
    ran = work(lab, says)

    assert ran.said == ("rejected", "agent_failed", "exit_code")
    attempt = lab.record("attempt")
    assert (attempt["agent"]["status"], attempt["evidence"]["agent_process"]["exit_code"]) == ("success", 1)
    assert attempt["evidence"]["changes"]["lines"] == 2


def test_an_agent_that_says_failure_but_did_it_is_completed(lab):
    """Words do not decide in the other direction either."""
    ran = work(lab, 'print(\'{"status": "failure", "summary": "could not do it"}\')')

    assert ran.said == ("completed", "verified", None)
    assert lab.record("attempt")["agent"]["status"] == "failure"


def test_an_agent_that_did_nothing_completes_nothing(lab):
    """An empty diff is nothing to accept, whatever passes."""
    lab.edit(CONTRACT, verification=[{"name": "yes", "argv": ["true"], "min_tests": 0}])
    lab.commit()

    assert work(lab, "", solve=False).said == ("rejected", "no_change", "empty_diff")


def test_an_agents_words_cannot_break_the_record(lab):
    """Lone surrogates, NUL, invalid UTF-8, a flood, deep JSON: recorded as they can be, and the round goes on."""
    flood = "import sys\nsys.stdout.buffer.write(b'\\xff\\x00' * 100_000 + b'\\n' + b'[' * 50_000 + b'\\n')\n"
    last = 'print(\'{"status": "\\\\ud800", "summary": "x"}\')\n'

    assert work(lab, flood + last).code == 0
    attempt = lab.record("attempt")
    assert attempt["agent"]["status"] == "\\ud800"
    assert attempt["evidence"]["agent_process"]["dropped_bytes"] > 0


# --- P11: the boundary ---


CROSSINGS = {
    "a protected test edited": ("open('acceptance/punctuation-search.test.mjs', 'a').write('//')", "protected_path"),
    "a protected test deleted": ("os.unlink('test/search.test.mjs')", "protected_path"),
    "a protected test renamed": ("os.rename('test/search.test.mjs', 'src/x.mjs')", "protected_path"),
    "the contract edited": ("open('loop.contract.json', 'a').write(' ')", "protected_path"),
    "the ignore file edited": ("open('.gitignore', 'a').write('*.mjs\\n')", "protected_path"),
    "a tool made executable": ("os.chmod('tools/run_once.py', 0o755)", "protected_path"),
    "the task itself edited": ("open('tasks/processing/issue-002.json', 'a').write(' ')", "protected_path"),
    "the task itself removed": ("os.unlink('tasks/processing/issue-002.json')", "protected_path"),
    "a task put into the inbox": ("open('tasks/inbox/issue-9.json', 'w').write('{}')", "protected_path"),
    "a new file elsewhere": ("open('notes.txt', 'w').write('x')", "outside_allowed_paths"),
    "a new file in a new folder": ("os.makedirs('a/b'); open('a/b/c', 'w').write('x')", "outside_allowed_paths"),
    "a new name that is no UTF-8": ("open(b'\\xff', 'w').write('x')", "outside_allowed_paths"),
    "a name with a newline": ("open('src\\nx', 'w').write('x')", "outside_allowed_paths"),
    "a file hidden by its own ignore file": (
        "os.makedirs('out'); open('out/.gitignore', 'w').write('*'); open('out/x', 'w').write('x')",
        "outside_allowed_paths",
    ),
    "a file hidden by the repository's exclude list": (
        "os.makedirs('.git/info', exist_ok=True); open('.git/info/exclude', 'w').write('secret'); open('secret', 'w')",
        "outside_allowed_paths",
    ),
    "a test hidden from Git, then edited": (
        "os.system('git update-index --assume-unchanged test/search.test.mjs'); open('test/search.test.mjs', 'a').write('//')",
        "protected_path",
    ),
    "a test hidden behind a filter": (
        ("os.makedirs('.git/info', exist_ok=True); open('.git/info/attributes', 'w').write('test/*.mjs filter=as_before');"
        "os.system('git config filter.as_before.clean \"git cat-file blob HEAD:test/search.test.mjs\"');"
        "text = open('test/search.test.mjs').read(); open('test/search.test.mjs', 'w').write(text[:-2] + ' \\n')"),
        "git_settings_changed",
    ),
    "a test's mode, with modes not looked at": (
        "os.system('git config core.fileMode false'); os.chmod('test/search.test.mjs', 0o755)", "git_settings_changed",
    ),
    "a test in a tree that stands for HEAD's": (
        ("open('test/search.test.mjs', 'a').write('//'); old = os.popen('git rev-parse HEAD^{tree}').read().strip();"
        "os.system(f'git add test && git replace {old} $(git write-tree)')"),
        "protected_path",
    ),
    "a node of its own, where npm looks first": (
        "os.makedirs('node_modules/.bin'); open('node_modules/.bin/node', 'w').write('#!/bin/sh')", "outside_allowed_paths",
    ),
    "a source hidden from Git": ("os.system('git update-index --skip-worktree src/books.mjs')", "hidden"),
    "a link to a device without end": ("os.symlink('/dev/zero', 'src/zero.mjs')", "not_a_regular_file"),
    "a huge source": ("open('src/books.mjs', 'w').write('//\\n' * 6_000_000)", "binary_file"),
    "a change that is staged": (
        "open('package.json', 'a').write(' '); os.system('git add package.json')", "protected_path",
    ),
    "a symbolic link": ("os.symlink('/etc/passwd', 'src/link.mjs')", "not_a_regular_file"),
    "a source turned into a link": (
        "os.unlink('src/books.mjs'); os.symlink('search.mjs', 'src/books.mjs')", "not_a_regular_file",
    ),
    "a repository inside": ("os.system('git init -q src/inner')", "not_a_regular_file"),
    "a new binary": ("open('src/x.bin', 'wb').write(b'\\0\\1')", "binary_file"),
    "a source turned binary": ("open('src/books.mjs', 'wb').write(b'\\0\\1')", "binary_file"),
    "too many files": ("[open(f'src/{n}.mjs', 'w').write('//') for n in range(2)]", "too_many_files"),
    "too many lines": ("open('src/search.mjs', 'a').write('//\\n' * 39)", "too_many_lines"),
    "too many new lines": ("open('src/new.mjs', 'w').write('//\\n' * 39)", "too_many_lines"),
    "a commit": ("os.system('git -c user.name=x -c user.email=x@y commit -qam agent')", "head_moved"),
    "an empty commit": ("os.system('git -c user.name=x -c user.email=x@y commit -q --allow-empty -m agent')", "head_moved"),
}  # fmt: skip


@pytest.mark.parametrize("what", list(CROSSINGS))
def test_a_crossing_is_rejected_and_nothing_is_put_back(lab, what):
    """Tracked and untracked, renames, deletions, modes, links, binaries, sizes; no command is run on what crossed."""
    source, cause = CROSSINGS[what]
    before = lab.git("rev-parse", "HEAD")
    ran = work(lab, source)

    assert (ran.code, ran.said) == (1, ("rejected", "boundary", cause))
    assert lab.record("attempt")["evidence"]["commands"] == []
    assert (lab.git("rev-parse", "HEAD") == before) == (cause != "head_moved")
    assert rb"\p{P}" in (lab.root / "src/search.mjs").read_bytes() or what.startswith("a source")


ALLOWED = {
    "one edit": ("", ["src/search.mjs"], 2),
    "a new source": ("open('src/new.mjs', 'w').write('a\\nb')", ["src/new.mjs", "src/search.mjs"], 4),
    "a deleted source": ("os.unlink('src/books.mjs')", ["src/books.mjs", "src/search.mjs"], 10),
    "a mode": ("os.chmod('src/books.mjs', 0o755)", ["src/books.mjs", "src/search.mjs"], 2),
    "exactly the limit": ("open('src/search.mjs', 'a').write('//\\n' * 38)", ["src/search.mjs"], 40),
    "what tools leave behind": (
        "os.makedirs('src/__pycache__'); open('src/__pycache__/y', 'w')",
        ["src/search.mjs"],
        2,
    ),
}


@pytest.mark.parametrize("what", list(ALLOWED))
def test_a_change_inside_the_boundary_is_counted_and_accepted(lab, what):
    """Files and lines as the contract counts them; the runner stages and commits nothing."""
    source, files, lines = ALLOWED[what]
    ran = work(lab, source)

    assert ran.said == ("completed", "verified", None)
    assert (ran.answer["changes"], ran.answer["boundary_errors"]) == ({"files": files, "lines": lines}, [])
    assert lab.git("diff", "--cached", "--name-only") == ""


def test_protected_wins_over_allowed(lab):
    """A file named in both lists is never to be changed."""
    lab.edit(CONTRACT, protected_paths=["src/books.mjs"], allowed_paths=["src/", "test/"])
    lab.commit()

    assert work(lab, "open('src/books.mjs', 'a').write('//')").said[2] == "protected_path"


def test_what_was_tested_is_what_was_seen(lab):
    """A command that changes the source while it verifies: not the same folder any more, so not completed."""
    argv = [sys.executable, "-c", "open('src/search.mjs', 'a').write('// later')"]
    lab.edit(CONTRACT, verification=[{"name": "sly", "argv": argv, "min_tests": 0}])
    lab.commit()

    assert work(lab, "").said == ("rejected", "boundary", "changed_during_verification")


@pytest.mark.parametrize("gone", [".loop/tasks/issue-002/events.jsonl", ".loop"])
def test_a_log_that_the_agent_removed_does_not_begin_anew(lab, gone):
    """Its history would be lost without a word: a person has to look."""
    source = f"import shutil; shutil.rmtree('{gone}') if os.path.isdir('{gone}') else os.unlink('{gone}')"

    assert work(lab, source).said == ("blocked", "state_changed", "events_replaced")


# --- P12: verification ---


def verified_by(lab: Lab, *argv: str, min_tests: int = 0, **fields: object) -> dict:
    """Run a round that is verified by this one command, and return the command's record."""
    lab.edit(CONTRACT, verification=[{"name": "only", "argv": list(argv), "min_tests": min_tests}], **fields)
    lab.commit()
    lab.run()
    return lab.record("attempt")["evidence"]["commands"][0]


def test_exit_code_and_output_are_kept(lab):
    """Standard output and error, in one stream, and the code as it was."""
    command = verified_by(lab, "sh", "-c", "echo out; echo err >&2; exit 7")

    assert (command["exit_code"], command["output"], command["passed"]) == (7, "out\nerr\n", False)


def test_arguments_are_a_list_and_no_shell_reads_them(lab):
    """What looks like a shell's word is only text."""
    command = verified_by(lab, "echo", "$HOME; `id` && *", "{acceptance}")

    assert command["output"] == "$HOME; `id` && * acceptance/punctuation-search.test.mjs\n"


def test_a_command_killed_by_a_signal_says_so(lab):
    """A negative code is the signal's number."""
    assert verified_by(lab, "sh", "-c", "kill -9 $$")["exit_code"] == -9


def test_a_missing_program_is_a_failed_command(lab):
    """127, as shells say, and the words that explain it."""
    command = verified_by(lab, "no-such-program-here")

    assert (command["exit_code"], command["passed"]) == (127, False)
    assert "no such program" in command["output"]


def test_output_is_capped_and_its_end_kept(lab):
    """A flood of 20 MB leaves its last bytes and the count of what was dropped."""
    flood = "import sys\nfor _ in range(200): sys.stdout.write('x' * 100_000)\nprint('the end')"
    command = verified_by(lab, sys.executable, "-c", flood)

    assert command["output"].endswith("the end\n")
    assert len(command["output"]) == 32_768
    assert command["dropped_bytes"] == 20_000_008 - 32_768


@pytest.mark.parametrize(
    "argv",
    [["--test-name-pattern=none-is-called-so", "test/search.test.mjs"], ["test/empty.test.mjs"]],
    ids=["none matches", "empty file"],
)
def test_no_tests_at_all_is_no_pass(lab, argv):
    """Node exits 0 when it finds none, and counts a file without tests as one that passes: neither is evidence."""
    (lab.root / "test" / "empty.test.mjs").write_text("", "utf-8")
    command = verified_by(lab, "node", "--test", "--test-reporter=tap", *argv, min_tests=1)

    assert (command["exit_code"], command["tests"], command["passed"]) == (0, 0, False)


def test_a_number_of_tests_too_long_to_read_is_no_number(lab):
    """A command may print anything: the round ends with its decision, not in the middle."""
    command = verified_by(lab, sys.executable, "-c", "print('# pass ' + '9' * 5000)", min_tests=1)

    assert (command["tests"], command["passed"]) == (None, False)


def test_an_early_exit_inside_the_source_is_no_pass(real_lab):
    """`process.exit(0)` in the module under test: exit code 0, and no test, for a file is none."""
    ran = work(real_lab, "open('src/search.mjs', 'a').write('process.exit(0);\\n')")

    assert ran.said == ("rejected", "verification_failed", "acceptance")
    command = real_lab.record("attempt")["evidence"]["commands"][0]
    assert (command["exit_code"], command["tests"]) == (0, 0)


def test_settings_that_make_a_test_run_pass_unread_do_not_reach_it(real_lab):
    """`NODE_TEST_CONTEXT` and its kin are taken out: an unhelpful agent is still rejected."""
    trap = {
        "NODE_TEST_CONTEXT": "child-v8",
        "NODE_OPTIONS": "--test-only",
        "npm_config_ignore_scripts": "true",
        "FORCE_COLOR": "1",
    }
    arguments = agent_script(real_lab, "open('src/search.mjs', 'a').write('// tried\\n')")
    rejected = real_lab.run(*arguments, env=trap)

    assert rejected.said == ("rejected", "verification_failed", "acceptance")
    assert [c["passed"] for c in rejected.answer["commands"]] == [False, True, True]


def sleeper(folder: Path, mark: str) -> str:
    """A shell line that writes its process id, then sleeps for long."""
    return f"echo $$ > {folder / mark}; exec sleep 300"


def gone(folder: Path, mark: str) -> bool:
    """Say whether the process that wrote its id has ended (a zombie has)."""
    status = Path(f"/proc/{int((folder / mark).read_text())}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] in "ZX"


TREES = {
    "a child": "sh -c '{line}'",
    "a child in the background": "sh -c '{line}' & wait",
    "one that ignores signals": "trap '' TERM HUP INT; sh -c '{line}'",
    "a session of its own": "setsid sh -c '{line}' & wait",
    "a daemon, twice removed": "(setsid sh -c '{line}' &) ; sleep 300",
}


@pytest.mark.parametrize("tree", list(TREES))
def test_at_the_limit_the_whole_tree_is_ended(lab, tree):
    """Groups, sessions, daemons: none of them outlives the time limit of its command."""
    mark = lab.root.parent / "pid"
    script = TREES[tree].replace("{line}", sleeper(mark.parent, "pid"))
    command = verified_by(lab, "sh", "-c", script, command_seconds=1)

    assert (command["timed_out"], command["passed"]) == (True, False)
    assert gone(mark.parent, "pid")


def test_what_a_finished_command_left_running_is_ended_too(lab):
    """A daemon that keeps the pipe open neither holds the round up nor stays."""
    folder = lab.root.parent
    script = f"setsid sh -c '{sleeper(folder, 'pid')}' & while ! test -s {folder / 'pid'}; do :; done; exit 0"
    command = verified_by(lab, "sh", "-c", script)

    assert (command["exit_code"], command["timed_out"]) == (0, False)
    assert gone(folder, "pid")


# --- P14: agents ---


def test_the_simulated_agent_stops_without_its_baseline(lab):
    """Exit 1, its own cause, and the source as it was."""
    source = lab.root / "src/search.mjs"
    source.write_bytes(
        (lab.root / "src/search.mjs").read_bytes().replace(rb"replace(/\s+/gu", b'replaceAll(" "')
    )
    lab.commit()
    before = source.read_bytes()
    ran = lab.run()

    assert (ran.code, ran.said) == (1, ("rejected", "agent_stopped", "baseline_missing"))
    assert source.read_bytes() == before
    assert ran.answer["commands"] == []


def test_a_source_that_is_missing_is_a_missing_baseline(lab):
    """No traceback, no file made."""
    (lab.root / "src/search.mjs").unlink()
    lab.commit()

    assert lab.run().said[1:] == ("agent_stopped", "baseline_missing")
    assert not (lab.root / "src/search.mjs").exists()


def test_a_command_agent_is_told_what_to_do(lab):
    """The prompt on stdin and in its arguments, the task's file, and the lab as its folder."""
    spy = "import sys, json\nprint(json.dumps({'status': 'told', 'summary': json.dumps([sys.argv[1:], sys.stdin.read(), os.getcwd()])[:1900]}))"
    *arguments, script = agent_script(lab, SOLVE + spy)
    ran = lab.run(*arguments, script, "--task={task}", "-p", "{prompt}")
    told = lab.record("attempt")["agent"]["summary"]

    assert ran.answer["agent"]["status"] == "told"
    assert "--task=tasks/processing/issue-002.json" in told
    assert told.count("Acceptance test: acceptance/punctuation-search.test.mjs") == 2
    assert str(lab.root) in told


def test_an_agents_argument_is_no_shell_word(lab):
    """Spaces and quotes arrive as they were typed."""
    *arguments, script = agent_script(lab, SOLVE + "import sys\nprint(sys.argv[1])")
    lab.run(*arguments, script, "a b; $(id) 'c'")

    assert lab.record("attempt")["agent"]["summary"] == "a b; $(id) 'c'"


def test_an_agent_over_its_time_is_ended_with_its_whole_tree(lab):
    """What it started in a session of its own is gone too, and half its work stands in the evidence."""
    lab.edit(CONTRACT, agent_seconds=1)
    lab.commit()
    folder = lab.root.parent
    daemon = f"import subprocess, time\nsubprocess.Popen(['setsid', 'sh', '-c', {sleeper(folder, 'pid')!r}])\ntime.sleep(300)"
    ran = work(lab, daemon)

    assert (ran.code, ran.said) == (1, ("rejected", "agent_failed", "time_limit"))
    assert gone(folder, "pid")
    assert lab.record("attempt")["evidence"]["agent_process"]["timed_out"] is True
    assert lab.record("attempt")["evidence"]["changes"]["files"] == ["src/search.mjs"]


def test_an_agent_cannot_work_on_behind_the_runners_back(lab):
    """A helper that it left behind to change things after the look has ended before the look."""
    late = (
        f"import subprocess\nsubprocess.Popen(['setsid', 'sh', '-c', {sleeper(lab.root.parent, 'pid')!r}])\n"
    )
    late += f"import time\nwhile not os.path.exists({str(lab.root.parent / 'pid')!r}): time.sleep(0.01)\n"

    assert work(lab, late).code == 0
    assert gone(lab.root.parent, "pid")


def test_a_shell_script_can_be_the_agent(lab):
    """A path with a folder in it is looked for from the lab; any program will do."""
    script = lab.root.parent / "agent.sh"
    script.write_text("#!/bin/sh\nsed -i 's|/\\\\s+/|/[\\\\s\\\\p{P}]+/|' src/search.mjs\n", "utf-8")
    script.chmod(0o755)

    assert lab.run("--", "../agent.sh").said == ("completed", "verified", None)


def test_a_round_needs_at_most_eight_git_processes(real_lab):
    """Fresh or resumed, counted at the border."""
    for name, first in (("fresh", []), ("resumed", ["--simulate-interruption-after-claim"])):
        copy = Lab(shutil.copytree(real_lab.root, real_lab.root.parent / name, symlinks=True))
        if first:
            copy.run(*first)
        folder = real_lab.root.parent / f"bin-{name}"
        folder.mkdir()
        (folder / "git").write_text(
            f'#!/bin/sh\necho x >> {folder}/count\nexec {shutil.which("git")} "$@"\n', "utf-8"
        )
        (folder / "git").chmod(0o755)
        assert copy.run(env={"PATH": f"{folder}{os.pathsep}{environment()['PATH']}"}).code == 0
        assert len((folder / "count").read_text().split()) <= 8


def test_the_clock_of_an_attempt_runs_forward(lab):
    """Started before finished; seconds are measured, not made up."""
    lab.edit(CONTRACT, verification=[{"name": "nap", "argv": ["sleep", "0.2"], "min_tests": 0}])
    lab.commit()
    begun = time.monotonic()
    lab.run()
    attempt = lab.record("attempt")

    assert attempt["started_at"] < attempt["finished_at"]
    assert 0.2 <= attempt["evidence"]["commands"][0]["seconds"] <= time.monotonic() - begun
