from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.secret_keys import drawn, seeds
from windowsill.secrets import redact
from windowsill.secrets.detectors import ASSIGNMENT, compiled, find_assignments

pytestmark = pytest.mark.unit

VALUE = "Tr0ub4dor&3"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f'password = "{VALUE}"', 'password = "[secret: password]"'),
        (f"'passwd': '{VALUE}',", "'passwd': '[secret: password]',"),
        (f"dbPassword: {VALUE}", "dbPassword: [secret: password]"),
        (f"spring.datasource.password={VALUE}", "spring.datasource.password=[secret: password]"),
        (f"Server=a;User Id=b;Password={VALUE.replace('&', '')};", "Server=a;User Id=b;Password=[secret: password];"),
        (
            "https://example.org/?access_token=a1b2c3d4e5&page=2",
            "https://example.org/?access_token=[secret: api-key]&page=2",
        ),
        ("PGPASSWORD=letmein psql", "PGPASSWORD=[secret: password] psql"),
        ("export API_TOKEN='letmein'", "export API_TOKEN='[secret: api-key]'"),
        ("STRIPE_SECRET_KEY_TEST=letmein", "STRIPE_SECRET_KEY_TEST=[secret: api-key]"),
        ("curl --token=abc123def456", "curl --token=[secret: token]"),
        ("hello\ntoken: x9f8a7b6c5d4", "hello\ntoken: [secret: token]"),
        ('{\\"password\\": \\"hunter2\\"}', '{\\"password\\": \\"[secret: password]\\"}'),
        ("x-api-key: 0123456789abcdef0123", "x-api-key: [secret: api-key]"),
        ('client_secret => "a1b2c3d4"', 'client_secret => "[secret: api-key]"'),
        ("my password is hunter2!", "my password is [secret: password]!"),
        ('"password": "pässwört-9"', '"password": "[secret: password]"'),
        (r"PASSWORD=a1b2c3d4\nUSER=me", r"PASSWORD=[secret: password]\nUSER=me"),
        ("DB_PASS=hunter2", "DB_PASS=[secret: password]"),
        ('"pass": "hunter22"', '"pass": "[secret: password]"'),
        ('{"password":\n    "hunter2"}', '{"password":\n    "[secret: password]"}'),
        ('{"password":                    "hunter2"}', '{"password":                    "[secret: password]"}'),
        ('{"name": "DB_PASSWORD", "value": "letmein"}', '{"name": "DB_PASSWORD", "value": "[secret: password]"}'),
        ("- name: DB_PASSWORD\n  value: hunter2", "- name: DB_PASSWORD\n  value: [secret: password]"),
        ("<password>hunter2</password>", "<password>[secret: password]</password>"),
        ("<db.token>a1b2c3d4e5</db.token>", "<db.token>[secret: token]</db.token>"),
    ],
)
def test_value_under_the_name_of_a_secret_is_taken_out(text, clean):
    """In code, JSON, YAML, shells, properties, connection strings, flags and sentences; the name stays."""
    assert redact(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "password = get_password()",
        "password: str | None = None",
        "password = settings.password",
        'password = os.environ["DB_PASSWORD"]',
        "DB_PASSWORD=$PASSWORD",
        "DB_PASSWORD=${PASSWORD:-}",
        "password: <your password>",
        'password = "********"',
        'api_key="OPENAI_API_KEY"',
        'api_key = "your-api-key-here"',
        '{"label": "Password", "error": "Password is required"}',
        '"password": "Enter your password"',
        "token = next(tokens)",
        "token: Token",
        'pad_token = "<|endoftext|>"',
        "max_tokens: 8192",
        '"next_page_token": "CAUQAA1234567"',
        "the token expired 30 minutes ago",
        "tokens = 128000",
        "the password field2value is hidden",
        "secret: the butler did it",
        "--password-file /run/secrets/db",
        "passport: X1234567",
        "keyword: abc12345",
        "private_key: Ed25519PrivateKey",
        "Forgot password? See https://example.org/reset7",
        "the tests pass: 120/120",
        "first_pass = 'blur'",
        "FIRST_PASS=1",
        "if token>limit</b>:",
        "<password>${DB_PASSWORD}</password>",
        "mysql -u root -p <password> shop",
        '{"name": "password", "value": ""}',
        "bypass: a1b2c3d4e5",
    ],
)
def test_code_labels_and_references_stay(text):
    """What says where a secret comes from, or only speaks of one, is none."""
    assert redact(text) == text


@given(name=st.sampled_from(["password", "DB_PASSWORD", "apiKey", "client_secret", "access_token"]), seed=seeds)
def test_quoted_value_is_taken_out_to_its_end(name, seed):
    """Whatever is in it, blanks at its ends and escaped quotes included."""
    value = drawn(seed, 6) + '1\\"' + drawn(seed, 5) + "&;,)" + drawn(seed + 1, 5)
    clean = redact(f'{name}: "{value}" # as agreed')
    assert clean.startswith(f'{name}: "[secret: ')
    assert clean.endswith(']" # as agreed')


BEFORE = ("", "--", "--my-", "\\n--", "MY_", '"', "<")
NAMES = ("token", "api_key", "password", "secret", "PASS", "key")
SIGNS = (" ", "\t", "=", ": ", " is ", ":\n", '": "', ">", ": str = ", '", "value": "', "\nvalue: ", "\uff1a", "")
WORDS = ("hunter22", "a1B2c3d4e5", "'a1B2c3d4e5'", "letters", "x</a>")


@pytest.mark.parametrize("sign", SIGNS)
def test_no_value_is_found_without_what_assigns_it(sign):
    """So a text without a name and a sign behind it, or a flag, need not be searched for values."""
    for before, name, word in itertools.product(BEFORE, NAMES, WORDS):
        data = f"{before}{name}{sign}{word}".encode()
        assert compiled(ASSIGNMENT).search(data, 0, len(data)) is not None or not any(find_assignments(data)), data
