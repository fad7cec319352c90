"""Keys for tests, drawn at random and put together here, so that no file holds one; and texts that are none."""

from __future__ import annotations

import base64
import json
import random
import string

from hypothesis import strategies as st

LETTERS = string.ascii_letters + string.digits
STANDARD = LETTERS + "+/"
URL_SAFE = LETTERS + "-_"
HEX = "0123456789abcdef"
BASE32 = string.ascii_uppercase + "234567"

seeds = st.integers(0, 2**64)


def drawn(seed: int, size: int, letters: str = LETTERS) -> str:
    """Noise, the same for the same seed; hypothesis' own texts shrink to repetitions, which no key is."""
    chance = random.Random(f"{seed}/{size}/{letters}")
    return "".join(chance.choice(letters) for _ in range(size))


def coded(value: object) -> str:
    """As a part of a token."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _pem(seed: int, label: str, line_end: str = "\n") -> str:
    lines = [drawn(seed + line, 64, STANDARD) for line in range(6)]
    dashes = "-" * 5
    return line_end.join([f"{dashes}BEGIN {label}{dashes}", *lines, f"{dashes}END {label}{dashes}"])


# Each gives what stands around a key, `{}` in its place, and the key. Prefixes are cut in two: scanners read this file.
FORMATS = {
    "aws-access-key": lambda s: ("{}", "AK" + "IA" + drawn(s, 16, BASE32)),
    "aws-secret-key": lambda s: ("aws_secret_access_key = {}", drawn(s, 40, STANDARD)),
    "github-token": lambda s: ("{}", "gh" + "pousr"[s % 5] + "_" + drawn(s, 36)),
    "github-token fine": lambda s: ("{}", "github" + "_pat_" + drawn(s, 22) + "_" + drawn(s, 59)),
    "gitlab-token": lambda s: ("{}", "gl" + "pat-" + drawn(s, 20, URL_SAFE)),
    "slack-token": lambda s: (
        "{}",
        "xo" + "x" + "abposr"[s % 6] + "-" + drawn(s, 12, string.digits) + "-" + drawn(s, 24),
    ),
    "slack-webhook": lambda s: ("https://hooks.slack.com/services/{}", f"T{drawn(s, 8)}/B{drawn(s, 9)}/{drawn(s, 24)}"),
    "stripe-key": lambda s: ("{}", "srp"[s % 3] + "k_" + "live_" + drawn(s, 24)),
    "openai-key": lambda s: ("{}", "s" + "k-" + drawn(s, 48)),
    "openai-key project": lambda s: ("{}", "s" + "k-proj-" + drawn(s, 120, URL_SAFE)),
    "openai-key hex": lambda s: ("{}", "s" + "k-" + drawn(s, 32, HEX)),
    "anthropic-key": lambda s: ("{}", "s" + "k-ant-api03-" + drawn(s, 93, URL_SAFE)),
    "google-key": lambda s: ("{}", "AI" + "za" + drawn(s, 35, URL_SAFE)),
    "google-token": lambda s: ("{}", "ya" + "29." + drawn(s, 80, URL_SAFE)),
    "azure-key": lambda s: ("AccountName=a;AccountKey={};EndpointSuffix=b", drawn(s, 86, STANDARD) + "=="),
    "sendgrid-key": lambda s: ("{}", "S" + "G." + drawn(s, 22, URL_SAFE) + "." + drawn(s, 43, URL_SAFE)),
    "twilio-key": lambda s: ("{}", "S" + "K" + drawn(s, 32, HEX)),
    "npm-token": lambda s: ("{}", "np" + "m_" + drawn(s, 36)),
    "pypi-token": lambda s: ("{}", "py" + "pi-AgEI" + drawn(s, 150, URL_SAFE)),
    "huggingface-token": lambda s: ("{}", "h" + "f_" + drawn(s, 34)),
    "discord-token": lambda s: ("{}", f"M{drawn(s, 23)}.{drawn(s, 6)}.{drawn(s, 38)}"),
    "discord-webhook": lambda s: ("https://discord.com/api/webhooks/123456/{}", drawn(s, 68, URL_SAFE)),
    "telegram-token": lambda s: ("{}", drawn(s, 10, "123456789") + ":A" + "A" + drawn(s, 33, URL_SAFE)),
    "service-key": lambda s: ("{}", "gs" + "k_" + drawn(s, 52)),
    "jwt": lambda s: ("{}", ".".join([coded({"alg": "HS256"}), coded({"sub": s}), drawn(s, 43, URL_SAFE)])),
    "private-key": lambda s: ("{}", _pem(s, "RSA PRIVATE " + "KEY")),
    "private-key escaped": lambda s: ("{}", _pem(s, "PRIVATE " + "KEY", "\\n")),
    "authorization": lambda s: ("Authorization: Bearer {}", drawn(s, 31) + "7"),
    "authorization basic": lambda s: (
        "authorization: basic {}",
        base64.b64encode(f"u:{drawn(s, 9)}".encode()).decode(),
    ),
    "url-password": lambda s: ("postgresql://app:{}@db.example:5432/x", drawn(s, 10) + "!$"),
    "netrc-password": lambda s: ("machine example.org\n  login me\n  password {}", drawn(s, 9) + "7"),
    "cookie": lambda s: ("Set-Cookie: session={}; Path=/; HttpOnly", drawn(s, 32)),
    "password": lambda s: ('{"password": "{}"}', drawn(s, 8) + "1"),
    "password env": lambda s: ("DB_PASSWORD={}", drawn(s, 7) + "1"),
    "password yaml": lambda s: ("db:\n  password: {}\n", drawn(s, 7) + "1"),
    "password flag": lambda s: ("mysql -u root --password {} shop", drawn(s, 9) + "1"),
    "password said": lambda s: ("The password is {}, by the way.", drawn(s, 9) + "1"),
    "password phrase": lambda s: ('passphrase = "{}"', f"four plain words {s % 97}"),
    "token": lambda s: ("export DEPLOY_TOKEN={}", drawn(s, 16)),
    "api-key": lambda s: ("api_key: '{}'", drawn(s, 24, HEX)),
    "api-key kubernetes": lambda s: ("    client-key-data: {}", drawn(s, 299, STANDARD) + "1="),
}
"""The key of each is the kind it is taken for, and a word that tells it from others of the kind."""

keys = st.sampled_from(sorted(FORMATS)).flatmap(lambda name: seeds.map(lambda seed: (name, *FORMATS[name](seed))))
