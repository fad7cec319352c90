"""Passwords as people write them down: in SQL, tables, code, other languages, on a line of their own."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.growth import TIMES, is_linear
from support.secret_keys import drawn
from windowsill.secrets import find, redact
from windowsill.secrets.documents import redact_value

pytestmark = pytest.mark.unit

HEX = "3cd0ea7af867ff82829d1e1517d46b72d57ef4e5bf3e92eab728b91bbb57cdb8"
WORDS = "abandon ability able about above absent absorb abstract absurd abuse access accident"
SHADOW = "$6" + "$VZUIDwrl$" + drawn(7, 86)
WRITTEN = {
    "hunter2": [
        "CREATE USER bob WITH PASSWORD '{}';",
        "ALTER ROLE bob ENCRYPTED PASSWORD '{}'",
        "create login bob with password = N'{}'",
        "CREATE USER b IDENTIFIED BY '{}';",
        "CREATE USER b IDENTIFIED WITH mysql_native_password BY '{}';",
        "INSERT INTO users (name, password) VALUES ('bob', '{}')",
        "insert into users(id, password, name) values (1, 'tiger5s', 'a'), (2, '{}', 'b''c');",
        "const password: string = '{}';",
        'password: str | None = "{}"',
        'const PASSWORD: &\'static str = "{}";',
        "user,password\nbob,{}",
        'user;password;note\n"bob";"{}";"x"',
        "user\tpassword\nann\tfoo\nbob\t{}",
        "| user | password |\n|---|---|\n| bob | {} |",
        "| User | **Password** | x |\n|:--|--:|---|\n| ann | none | 1 |\n| bob | `{}` | 2 |",
        "Password:\n{}",
        "Password:\r\n  {}\r\nPort: 3",
        "pass: {}",
        r"{{\\\"password\\\": \\\"{}\\\"}}",
        r"{{\"a\": \"{{\\\"password\\\": \\\"{}\\\"}}\"}}",
        "ConvertTo-SecureString '{}' -AsPlainText -Force",
        "password\N{FULLWIDTH EQUALS SIGN}{}",
        "password\N{FULLWIDTH COLON} {}",
        "パスワードは{}です",
        "密码\N{FULLWIDTH COLON}{}",
        "비밀번호: {}",
        "Das Passwort lautet {}.",
        "el contraseña es {}",
        "Le mot de passe est {}",
        "пароль: {}",
        "Login: bob / {}",
        "the credentials for staging are `bob@example.com` / `{}`.",
        "log in as bob / {}, please",
    ],
    "swordfish": ["secret: {}", "x\npass: {}\ny"],
    "4821": ["PIN: {}", "the PIN is {}", '"pin": "{}"', "pin code = {}"],
    HEX: ["the encryption key is {}", "private key: {}"],
    WORDS: ["seed phrase: {}", "Recovery words is {}", "mnemonic = '{}'"],
    SHADOW: ["root:{}:19000:0:99999:7:::"],
    "4111 1111 1111 1111": ["card {}", "pay with {} now"],
    "4111111111111111": ["card number: {}", "visa {}"],
    "378282246310005": ["amex {}"],
}


@pytest.mark.parametrize(("secret", "text"), [(secret, text) for secret, texts in WRITTEN.items() for text in texts])
def test_a_password_is_taken_out_however_it_is_written(secret, text):
    """Nothing of it is left, and what stands around it is."""
    clean = redact(text.replace("{{", "{").replace("}}", "}").replace("{}", secret))
    assert secret not in clean
    assert clean.startswith(text.replace("{{", "{").partition("{}")[0][:8])


@pytest.mark.parametrize(
    "text",
    [
        "Sessions are identified by 'email', or identified as \"orphaned\".",
        "ALTER TABLE users ADD COLUMN password VARCHAR(255);",
        "INSERT INTO users (name, password) VALUES (?, ?)",
        "INSERT INTO users (name, password) VALUES ($1, $2)",
        "const password: string = getPassword();",
        "def login(user: str, password: str = None): ...",
        "| field | password |\n|---|---|\n| type | string |\n| needed | yes |",
        "user, password, token\nThe first, the second, the third",
        "password:\n  secretKeyRef:\n    name: db",
        "Password:\nEnter the one you were given",
        "secret: required",
        "secret:\n  name: db",
        "pass: true",
        "3 tests pass: all of them",
        "pin: 13",
        "spin: 12345",
        "GPIO pin = 17",
        "the seed phrase: twelve words that nobody else may ever see, kept in a safe",
        "order 1234 5678 9012 3456",
        "0000 0000 0000 0000",
        "at 1700000000000 and 4111111111111111",
        "Das Passwort ist falsch.",
        "パスワードを忘れた",
        "costs $5$ and $6$",
        '"auth": "required"',
        "login: username / password",
        "user: 12 / 300",
        "users are on python3 / node20 as well",
        "the admin page is /admin / index2",
    ],
)
def test_words_about_passwords_stay(text):
    """A word, a type, a placeholder, a number of something else."""
    assert find(text) == []


def test_a_private_key_without_its_first_lines_is_taken_out():
    """The lines of base64 before the end of a key are the key, and the words before them are not."""
    lines = [drawn(number, 64) for number in range(5)]
    end = "-" * 5 + "END RSA PRIVATE KEY" + "-" * 5
    for joined in ("\n", "\r\n", "\\n", "\n> "):
        text = joined.join(["the rest of the file", *lines, "Ab3=", end])
        clean = redact(text)
        assert not any(line in clean for line in lines)
        assert clean.startswith("the rest of the file")
        assert clean.endswith("[secret: private-key]")


@given(
    place=st.integers(1, 39),
    sign=st.sampled_from(["\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad"]),
    before=st.text(alphabet="ab é\u200b日", max_size=9),
)
def test_what_nobody_sees_inside_a_key_does_not_hide_it(place, sign, before):
    """Spaces without a width; what stands around the key stays byte for byte."""
    token = "gh" + "p_" + drawn(3, 36)
    clean = redact(f"{before} {token[:place]}{sign}{token[place:]} é\u200b")
    assert clean == f"{before} [secret: github-token] é\u200b"


def test_a_key_is_one_under_whatever_name():
    """The name of an id explains a random value, not the key of a wallet or the login of a registry."""
    wallet = "5" + "HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ"
    login = "Ym9iOmh1bnRlcjJwYXNz"
    assert redact_value({"user_id": wallet}) == {"user_id": "[secret: wallet-key]"}
    assert login not in json.dumps(redact_value({"blob": json.dumps({"auths": {"r.io": {"auth": login}}})}))


HOSTILE = {
    "names": "password ",
    "assignments": "password=",
    "headers": "a,password\n",
    "tables": "a,password\nb,hunter2x\n",
    "one wide row": "password,",
    "quotes": 'password=\\\\"',
    "inserts": "insert into a (password) values ",
    "tuples": "('a'),",
    "ends of keys": "-" * 5 + "END PRIVATE KEY" + "-" * 5 + "\n",
    "lines of base64": "A" * 64 + "\n",
    "digits": "4",
    "cards": "4111 1111 1111 1112 ",
    "zero width": "a\u200b",
    "escapes": "\\",
    "users": "create user a ",
    "words": "seed phrase: abc ",
    "pins": "pin:",
    "dollars": "$6$",
    "foreign": "密码",
    "logins": "login as bob / ",
}


@pytest.mark.growth
@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
def test_eight_times_the_text_is_about_eight_times_the_work(unit):
    """A square would be sixty-four times, whatever the text is made of."""
    size = 20_000 // len(unit)
    texts = {n: unit * n + " password hunter2" for n in (size, TIMES * size)}
    assert is_linear(lambda n: redact(texts[n]), size)


@pytest.mark.parametrize("sign", ["+", "-"])
def test_the_sign_of_a_line_in_a_patch_hides_no_key(sign):
    """A key at the beginning of a line that a patch adds or removes, and a login over several of them."""
    key = "s" + "k-1e1ffadafe52e69678960e17dbc4640a"
    assert redact(f" a\n{sign}{key}") == f" a\n{sign}[secret: openai-key]"
    login = f"{sign}machine example.org\n{sign}  login me\n{sign}  password {{}}\n"
    assert redact(login.format("L0r0HsPib7")) == login.format("[secret: netrc-password]")


def test_a_key_that_a_terminal_broke_in_two_lines_is_one():
    """Only if both halves together have the length of a key."""
    first, second = "gh" + "p_" + drawn(3, 20), drawn(4, 16)
    assert redact(f"token {first}\n{second} ok") == "token [secret: github-token] ok"
    assert second[1:] in redact(f"token {first}\n{second[1:]} ok")


def test_words_that_are_written_as_one_are_a_password_where_it_is_said():
    """No word of English that follows there is so long."""
    assert redact("The password is correcthorsebattery, ok?") == "The password is [secret: password], ok?"
    for plain in ("The password is cryptographically hashed.", "password = confirmationpasswordfield"):
        assert redact(plain) == plain
