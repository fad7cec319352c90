"""Shell commands that read and write files."""

import pytest

from windowsill.shell import TouchedFile, files_of, shows_files, without_trimming

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("cat src/a.py", [("src/a.py", False, (1, 0))]),
        ("sed -n '10,20p' a.go | head -5", [("a.go", False, (10, 20))]),
        ("cd /repo && tail -n 5 log.txt", [("log.txt", False, (1, 0))]),
        ("echo hi > out.txt", [("out.txt", True, (1, 0))]),
        ("cat <<'EOF' >> docs/x.md\ntext\nEOF", [("docs/x.md", True, (1, 0))]),
        ("sed -i 's/a/b/' a.py", [("a.py", True, (1, 0))]),
        ("rm -f old/a.c", [("old/a.c", True, (1, 0))]),
        ("go test ./... 2>&1 | tail -20", []),
        ("make > /dev/null", []),
        ("grep -rn foo src", []),
    ],
)
def test_the_files_of_a_command_are_known(command, files):
    """Readers, writers and redirections are told from the command's words."""
    assert files_of(command) == [TouchedFile(path=path, changed=changed, range=lines) for path, changed, lines in files]


def test_a_patch_in_a_script_names_its_files():
    """A heredoc that is applied as a patch changes the files it names."""
    script = "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a/b.ts\n-x\n+y\n*** End Patch\nEOF"
    assert files_of(script) == [TouchedFile(path="a/b.ts", changed=True)]


@pytest.mark.parametrize(
    "command", ["make test 2>&1", "make test | tail -20", "make test 2>&1 | head -n 5", " make test "]
)
def test_trimming_the_output_makes_no_other_command(command):
    """Two runs that differ in what they show of the output are the same command."""
    assert without_trimming(command) == "make test"


def test_commands_that_only_show_are_told_from_those_that_do():
    """An error word in a file that is shown is no error."""
    assert shows_files("cd x && grep -n error log.txt | head")
    assert not shows_files("make 2>&1 | grep error")


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("cat > out.py <<'EOF'\nrm -rf lib/data.txt\ncat other.py\nEOF\ncat end.py", ["out.py", "end.py"]),
        ("python - <<E\nif a > b.c: pass", []),
        ('git commit -m "Say x > y.py; rm a.py"', []),
        ("python -c 'print(1 > x.py)' > 'log.txt'", ["log.txt"]),
        ('bash -c "cat a.py > b.txt"', ["b.txt", "a.py"]),
    ],
)
def test_texts_that_a_command_hands_on_are_not_run(command, files):
    """Words in a here-document or in quotation marks touch no file; a script in quotation marks that is run does."""
    assert [one.path for one in files_of(command)] == files


def test_a_path_without_end_in_a_patch_is_none():
    """A digest shall not hold a whole text for a path."""
    assert files_of("*** Update File: " + "a" * 5_000 + "\n*** Add File: b.py") == [
        TouchedFile(path="b.py", changed=True)
    ]
