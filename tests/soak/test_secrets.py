"""Secrets of many kinds in many places: none is left, and ordinary text loses nothing."""

import base64
import json
import random
import string
import uuid

import pytest

from support.secret_keys import FORMATS, HEX, drawn
from windowsill.secrets import redact

pytestmark = pytest.mark.integration

TEXTS = 400
"""Texts of each kind in `make test`."""
ANYWHERE = ("{}", "token {}", "use {} here", '"{}"', "`{}`", "({})", "a={}&b=1", "key:\n  {}\n", "> {}")
"""Places of keys whose own shape tells them."""

KEYS = [FORMATS[name] for name in sorted(FORMATS)]
PASSWORDS = (
    lambda seed: "hunter2" + drawn(seed, 3),
    lambda seed: "Tr0ub4dor&" + drawn(seed, 4, string.digits),
    lambda seed: drawn(seed, 12) + "1!",
)
"""Words that are secret only where something says so."""
NAMED = (
    *("password: {}", "password={}", "DB_PASSWORD='{}'", "export PGPASSWORD={}", '{"password":"{}"}', "pwd={}"),
    *("<password>{}</password>", "connect(user='b', password='{}')", "const password: string = '{}';", "pass: {}"),
    *("postgres://bob:{}@db.example.com/x", "redis://:{}@h:6379/0", "curl -u bob:{} https://x", "--password {} -v"),
    *("CREATE USER b WITH PASSWORD '{}';", "CREATE USER b IDENTIFIED BY '{}';", "UPDATE u SET password = '{}'"),
    *("INSERT INTO u (name, password) VALUES ('b', '{}')", "user,password\nbob,{}", "Password:\n{}", "密码\uff1a{}"),
    *(
        "| user | password |\n|---|---|\n| bob | {} |",
        "パスワードは{}です",
        "Das Passwort lautet {}.",
        "password\uff1d{}",
    ),
    *("machine h login b password {}", "Server=x;Password={};", "password => '{}'", 'Password: "{}",'),
)
WRAPPINGS = (
    lambda _, text: text,
    lambda rng, text: f"{ordinary(rng)}\n{text}\n{ordinary(rng)}",
    lambda _, text: "\n".join(f"+{line}" for line in text.split("\n")),
)
"""Around a secret: nothing, other text, the signs of a patch."""


def ordinary(rng: random.Random) -> str:
    """Return text as agents see it every day, with nothing secret in it."""
    return rng.choice(
        [
            lambda: f"commit {drawn(rng.getrandbits(60), 40, HEX)}\nAuthor: Bob <bob@example.com>\n    Mend the parser",
            lambda: f"GET /v1/orders/{uuid.UUID(int=rng.getrandbits(128))} HTTP/1.1",
            lambda: (
                f"sha256:{drawn(rng.getrandbits(60), 64, HEX)}  dist/app-{rng.randint(1, 9)}.{rng.randint(0, 9)}.tar.gz"
            ),
            lambda: f"def test_{rng.choice(['token', 'password', 'secret'])}_is_checked(session):\n    assert session",
            lambda: 'password = os.environ["DB_PASSWORD"]',
            lambda: "The password is stored as a hash, and the token expires after an hour.",
            lambda: f"src/app/{rng.choice(['parser', 'views'])}.py:{rng.randint(1, 900)}: undefined name 'x'",
            lambda: f"data:image/png;base64,{base64.b64encode(rng.randbytes(120)).decode()}",
            lambda: json.dumps({"order": rng.randint(10**9, 10**10), "at": "2026-11-16T03:11:31Z", "paid": True}),
            lambda: "def read(path, *, token=None, password=None):\n    return open(path).read()",
            lambda: f"| {rng.random():.6f} | {rng.randint(0, 10**6)} | ok |",
            lambda: "password: <your password>\napi_key: ${API_KEY}\nsecret: ****",
        ]
    )()


def test_no_secret_is_left(tally):
    """Keys of known shapes anywhere, passwords where something names them; the text around them stays."""

    def trial(rng: random.Random) -> list[str]:
        if rng.random() < 0.5:
            place, secret = rng.choice(KEYS)(rng.getrandbits(60))
            place = rng.choice(ANYWHERE) if place == "{}" and "\n" not in secret else place
        else:
            place, secret = rng.choice(NAMED), rng.choice(PASSWORDS)(rng.getrandbits(60))
        text = rng.choice(WRAPPINGS)(rng, place.replace("{}", secret))
        found = redact(text)
        return [text] if any(line in found for line in secret.replace("\\n", "\n").split("\n")) else []

    tally.run("secrets: texts with one", TEXTS, trial)
    tally.check()


def test_ordinary_text_stays_as_it_is(tally):
    """Hashes, names of functions, placeholders and talk about passwords are no secrets."""

    def trial(rng: random.Random) -> list[str]:
        text = ordinary(rng)
        return [] if redact(text) == text else [f"{text} became {redact(text)}"]

    tally.run("secrets: texts without any", TEXTS, trial)
    tally.check()
