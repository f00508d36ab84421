"""Limits and points from `grading.toml`."""

from __future__ import annotations

import pytest

from grader.settings import Limits, SettingsError, load_settings


def test_the_kits_own_file_states_every_limit():
    """The shipped file and the defaults in code are one thing, said twice and kept equal."""
    assert load_settings().limits == Limits()


def test_a_file_may_change_a_few(tmp_path):
    """What a file does not name keeps its default."""
    file = tmp_path / "mine.toml"
    file.write_text('[limits]\ncall_seconds = 1.5\n[points.22]\nrequired = 20\n"22-01" = 5\n')
    settings = load_settings(file)
    assert settings.limits == Limits(call_seconds=1.5)
    assert settings.points == {"22": {"required": 20, "22-01": 5}}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[limits]\ncall_secs = 1", "limits.call_secs"),
        ("[limits]\ncall_seconds = 0", "limits.call_seconds"),
        ("[limits]\ncall_seconds = true", "limits.call_seconds"),
        ("[limits]\ncall_seconds = 'long'", "limits.call_seconds"),
        ("[points.22]\nrequired = -1", "points.22"),
        ("[points]\nrequired = 1", "points.required"),
        ("[colours]\nred = 1", "colours"),
        ("limits = 3", "limits"),
        ("points = 3", "points"),
        ("[limits", "is not TOML"),
        ("\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "is not TOML"),
    ],
)
def test_a_wrong_file_says_where(tmp_path, text, named):
    """An unknown name or an impossible value is refused by its name, before anything is graded."""
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(SettingsError, match=named):
        load_settings(file)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    """A file that is not UTF-8 is no settings file."""
    file = tmp_path / "mine.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="is not TOML"):
        load_settings(file)


def test_a_missing_file_is_named(tmp_path):
    """The path stands in the message, with what to do."""
    with pytest.raises(SettingsError, match=r"mine\.toml: cannot be read"):
        load_settings(tmp_path / "mine.toml")


def test_a_lesson_may_have_limits_of_its_own(tmp_path):
    """What its table names is the lesson's, everything else is everybody's; a wrong name in it is refused, too."""
    file = tmp_path / "mine.toml"
    file.write_text("[limits]\ncall_seconds = 3\ntimeouts = 1\n[limits.04]\ncall_seconds = 9\n")
    settings = load_settings(file)
    assert (settings.limits_of("04").call_seconds, settings.limits_of("04").timeouts) == (9, 1)
    assert settings.limits_of("22").call_seconds == 3
    file.write_text("[limits.04]\ncalls = 9\n")
    with pytest.raises(SettingsError, match=r"limits\.04\.calls"):
        load_settings(file)


def test_addresses_are_not_memory():
    """A program may reserve more addresses than it may write to."""
    limits = Limits(memory_mib=10, address_space_mib=80).for_child(None)
    assert (limits["RLIMIT_DATA"], limits["RLIMIT_AS"]) == (10 << 20, 80 << 20)


def test_processes_are_counted_beside_those_that_run():
    """The system counts by user, so the limit stands on top of what the user runs already."""
    assert Limits(processes=10).for_child(90)["RLIMIT_NPROC"] == 100
    assert "RLIMIT_NPROC" not in Limits().for_child(None)
