"""Paths that are out of bounds, however they are written; with real folders and real links."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowsill.state.policies import ForbiddenPaths
from windowsill.state.policies.paths import _same_letters

pytestmark = [pytest.mark.unit, pytest.mark.skipif(sys.platform == "win32", reason="POSIX paths")]

DEFAULT = ("/etc", "/sys", "/proc", "~/.ssh")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A home with keys, and a project with links, beside a secret folder."""
    for folder in ("home/.ssh", "work/src", "secret/deep"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "secret/deep/key").write_text("k")
    (tmp_path / "home/.ssh/id").write_text("k")
    (tmp_path / "work/link").symlink_to(tmp_path / "secret")
    (tmp_path / "work/src/up").symlink_to("../../secret/deep")
    (tmp_path / "work/chain").symlink_to("link/deep")
    (tmp_path / "work/loop").symlink_to("loop")
    (tmp_path / "work/out").symlink_to("/tmp")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


def forbidden(path, forbidden_paths, *, base):
    return ForbiddenPaths(forbidden_paths, base=base).crossing(path)


def refused(place, path, *paths):
    return forbidden(path, paths or (str(place / "secret"), *DEFAULT), base=place / "work")


@pytest.mark.parametrize(
    "path",
    [
        "/etc",
        "/etc/",
        "/etc/.",
        "/etc/passwd",
        "/etc//passwd",
        "//etc/passwd",
        "///etc/passwd",
        "/./etc/passwd",
        "/tmp/../etc/passwd",
        "/nothing/there/../../etc/passwd",
        "/etc/nothing/there",
        " /etc/passwd",
        "/etc/passwd\n",
        "~/.ssh",
        "~/.ssh/id",
        "~/.ssh/new/key",
        "~/../home/.ssh/id",
        "../home/.ssh/id",
        "../secret",
        "../secret/",
        "../secret/deep/key",
        "./src/../../secret/deep",
        "link",
        "link/deep/key",
        "link/not/there/yet",
        "src/up",
        "src/up/key",
        "src/up/..",
        "chain/key",
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd",
        "/proc/self/fd/0",
        "/dev/fd/0",
        "/dev/fd",
        "file:///etc/passwd",
        "FILE:///etc/passwd",
        "file:/etc/passwd",
        "file://localhost/etc/passwd",
        "file:///etc/%70asswd",
        "file:///tmp/%2e%2e/etc/passwd",
        "file:///etc?x#y",
        "/etc/pass\0wd",
        "a\0b",
        "loop/x",
        "\ud800",
    ],
)
def test_a_forbidden_path_is_refused(place, path):
    """By dots, slashes, links, homes, addresses and processes."""
    assert refused(place, path) is not None


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "src",
        "src/new/file.py",
        "src/../src",
        "..",
        "/etcetera",
        "/etc.",
        "/et",
        "/",
        "/tmp/etc",
        "../secrets",
        "../secret.txt",
        "etc/passwd",
        "out/x",
        "~/.sshd",
        "~/notes",
        "~nobody-of-this-name/.ssh",
        "/dev/null",
        "/dev/stdout",
        "/dev/stderr",
        "file:///tmp/x",
        "x" * 5_000,
    ],
)
def test_other_paths_are_allowed(place, path):
    """A name that only begins like a forbidden one is another name."""
    assert refused(place, path) is None


def test_the_reason_names_both_ends(place):
    """What was asked for, where it leads, and which forbidden path that is in."""
    secret = place / "secret"
    assert refused(place, "link/deep/key", str(secret)) == (
        f'"link/deep/key" is "{secret}/deep/key", which is in the forbidden "{secret}"'
    )
    assert refused(place, "/etc/passwd") == '"/etc/passwd" is in the forbidden "/etc"'


def test_a_link_in_the_forbidden_path_is_followed(place):
    """Forbidding a link forbids what it leads to, and the other way round."""
    assert refused(place, "../secret/deep", "link") is not None
    assert refused(place, "link", str(place / "secret")) is not None
    assert refused(place, "../secret/not/there", "link/not") is not None


def test_a_forbidden_path_may_be_relative(place):
    """It begins where the paths of calls begin."""
    assert refused(place, str(place / "work/src/x"), "src") is not None


def test_what_a_tool_makes_of_dots_does_not_matter(place):
    """Whether `..` is tidied away first, or links are followed first: both ways are looked at."""
    (place / "work/far").symlink_to(place / "secret/deep")
    assert refused(place, "far/../x", str(place / "secret")) is not None
    assert refused(place, "far/../src/x", str(place / "work/src")) is not None


def test_a_link_inside_a_forbidden_folder_is_not_followed(place):
    """To follow it is to read the folder."""
    (place / "secret/exit").symlink_to("/tmp")
    assert refused(place, "../secret/exit/x") is not None


def test_another_name_of_the_same_file_is_known(place):
    """By what it is, not by its letters: hard links, mounts, file systems that ignore case."""
    os.link(place / "secret/deep/key", place / "work/same")
    assert refused(place, "same", str(place / "secret/deep/key")) is not None


def test_both_homes_are_forbidden(place):
    """The one the environment names and the one of the account."""
    pwd = pytest.importorskip("pwd")
    home = pwd.getpwuid(os.getuid()).pw_dir
    assert refused(place, f"{home}/.ssh/id") is not None
    assert refused(place, str(place / "home/.ssh/id")) is not None


def test_a_process_decides_where_its_links_lead(place):
    """What another process sees as its root cannot be told, so it is refused though `/proc` is not forbidden."""
    assert "depends on the process" in refused(place, "/proc/1/root/tmp/x", "/etc")
    assert "depends on the process" in refused(place, "/dev/fd/7", "/etc")
    assert refused(place, "/proc/cpuinfo", "/etc") is None


def test_with_nothing_forbidden_everything_is_allowed(place):
    """An empty list is no fence."""
    assert forbidden("/etc/passwd", (), base=place) is None


def test_the_whole_tree_may_be_forbidden(place):
    """Everything is below the root."""
    assert refused(place, "src/x", "/") is not None


@pytest.mark.parametrize("pattern", ["/et?/passwd", "/e*", "/*", "/[e]tc/x", "/**/passwd", "../sec*/deep", "~/.s*/id"])
def test_a_pattern_that_can_mean_a_forbidden_path_is_refused(place, pattern):
    """As a shell would expand it."""
    assert (
        ForbiddenPaths((str(place / "secret"), *DEFAULT), base=place / "work").crossing(pattern, expands=True)
        is not None
    )


@pytest.mark.parametrize("pattern", ["lin*", "[l]ink", "src/u?"])
def test_a_pattern_that_means_a_link_is_refused(place, pattern):
    """Where the link leads to a forbidden folder."""
    assert ForbiddenPaths([str(place / "secret")], base=place / "work").crossing(pattern, expands=True) is not None


@pytest.mark.parametrize("pattern", ["*.py", "src/*", "src/**/x", "/tmp/*.none", "/e", "/tm?/x", "/none/*", "link[2]"])
def test_other_patterns_are_allowed(place, pattern):
    """Also those that look similar."""
    assert ForbiddenPaths(DEFAULT, base=place / "work").crossing(pattern, expands=True) is None


def test_a_name_may_look_like_a_pattern(place):
    """A shell takes it as it is when nothing fits, so it is looked at both ways."""
    (place / "work/a[b]").symlink_to(place / "secret")
    assert ForbiddenPaths([str(place / "secret")], base=place / "work").crossing("a[b]/key", expands=True) is not None


def test_many_folders_below_the_base_are_no_forbidden_ones(place):
    """A forbidden path elsewhere is not below them, however long it is."""
    paths = ForbiddenPaths(["/home/somebody/very/deep/secret"], base=place / "work")
    assert paths.crossing("**/secret", expands=True) is None
    assert paths.crossing("/home/**/x", expands=True) is not None


def test_case_is_told_apart_where_the_system_does(monkeypatch):
    """On a Mac two spellings are one file; here they are two."""
    assert _same_letters("/ETC") != _same_letters("/etc")
    monkeypatch.setattr(sys, "platform", "darwin")
    assert _same_letters("/ETC/Cafe\u0301") == _same_letters("/etc/caf\u00e9")


STEPS = st.lists(
    st.sampled_from(["..", ".", "", "work", "secret", "deep", "link", "src", "up", "chain", "none"]), max_size=8
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A project with links into a secret folder; all examples share it."""
    root = tmp_path_factory.mktemp("tree")
    (root / "home/src").mkdir(parents=True)
    (root / "secret/deep").mkdir(parents=True)
    (root / "secret/deep/key").write_text("k")
    (root / "home/link").symlink_to(root / "secret")
    (root / "home/src/up").symlink_to("../../secret/deep")
    (root / "home/chain").symlink_to("link/deep")
    return root


@given(STEPS)
def test_nothing_that_opens_the_secret_gets_through(tree, steps):
    """Whatever way leads to the key, it is refused; and whatever leads elsewhere is not."""
    path = "/".join(["src", *steps, "key"])
    ends = os.path.realpath(f"{tree}/home/{path}"), os.path.realpath(os.path.normpath(f"{tree}/home/{path}"))
    inside = any(end.startswith(f"{tree}/secret/") for end in ends)
    assert (forbidden(path, [str(tree / "secret")], base=tree / "home") is not None) == inside
