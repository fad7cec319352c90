from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.secret_keys import FORMATS, coded, drawn, keys, seeds
from windowsill.secrets import find, redact

pytestmark = pytest.mark.unit

AROUND = ["{}", "before {} after", "({})", '"{}"', "`{}`,", "key={}", "\n{}\n", "日本語 {} です", "x: {}."]


@pytest.mark.parametrize("name", sorted(FORMATS))
@given(seed=seeds)
def test_key_of_a_format_is_taken_out_whole(name, seed):
    """Nothing of it is left, what stands around it is, and the sign says its kind."""
    around, key = FORMATS[name](seed)
    clean = redact(around.replace("{}", key))
    assert clean == around.replace("{}", f"[secret: {name.partition(' ')[0]}]")


@given(key=keys, around=st.sampled_from(AROUND))
def test_key_is_found_wherever_it_stands(key, around):
    """In a sentence, in brackets and quotes, after an equals sign, between characters of other scripts."""
    _, frame, secret = key
    assert secret not in redact(around.replace("{}", frame.replace("{}", secret)))


@given(key=keys)
def test_key_is_found_in_text_that_is_spelled_as_json(key):
    """The letter of an escape before it is not taken for a part of it."""
    _, frame, secret = key
    spelled = frame.replace("{}", secret).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    assert secret.split("\n")[1 if "\n" in secret else 0] not in redact(f'{{"command": "ls\\n{spelled}\\nls"}}')


@given(seed=seeds)
def test_half_a_private_key_is_taken_out(seed):
    """A block that was cut off before its end is a secret as far as it goes."""
    _, key = FORMATS["private-key"](seed)
    lines = key.split("\n")
    clean = redact("\n".join([*lines[:4], "Permission denied, see the manual."]))
    assert clean == "[secret: private-key]\nPermission denied, see the manual."


def test_a_private_key_that_is_only_spoken_of_stays():
    """Labels without a key between them are words."""
    dashes = "-" * 5
    text = f"It begins with {dashes}BEGIN PRIVATE KEY{dashes} and ends with {dashes}END PRIVATE KEY{dashes}."
    assert find(text) == []


@given(seed=seeds)
def test_certificates_and_public_keys_stay(seed):
    """They are made to be shown."""
    _, key = FORMATS["private-key"](seed)
    certificate = key.replace("RSA PRIVATE " + "KEY", "CERTIFICATE")
    assert redact(certificate) == certificate


@given(seed=seeds)
def test_three_parts_with_dots_are_no_token_by_themselves(seed):
    """A token has a header that can be read."""
    text = f"eyJ{drawn(seed, 12, 'xyz')}.module_name.attribute_name"
    assert redact(text) == text


def test_encoded_object_is_no_token_by_itself():
    """A header says how the token is signed; the place where a list goes on does not."""
    text = coded({"page": 2}) + ".next_page.json"
    assert redact(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "import sk-learn-contrib-lightning-extension",
        "https://example.org:8080/path@2x.png",
        "postgres://app:${DB_PASSWORD}@db/x",
        "postgres://app:<password>@db/x",
        "Authorization: Bearer <token>",
        "The bearer of this letter understands",
        "hf_hub_download(repo_id)",
        "npm_config_registry=https://example.org",
        "glob pattern: gl_FragColor",
        "document.cookie: string",
    ],
)
def test_what_only_begins_like_a_key_stays(text):
    """Names, addresses and references to a secret are none."""
    assert redact(text) == text


@pytest.mark.parametrize("before", ["", "+", "-", " ", "    ", "> ", "# ", "// ", " * ", "12: ", "    12\t", "   12→"])
def test_a_private_key_is_taken_out_whatever_stands_before_its_lines(before):
    """In a diff, a quotation, a comment, or with the numbers that a reading tool puts there."""
    body = [drawn(number, 64) for number in range(8)]
    key = ["-----BEGIN RSA PRIVATE KEY-----", *body, "-----END RSA PRIVATE KEY-----"]
    clean = redact("".join(f"{before}{line}\n" for line in key))
    assert [line for line in body if line[:24] in clean] == []


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("curl -s -u ann:hunter2 https://a.example", "curl -s -u ann:[secret: password] https://a.example"),
        ("curl --user 'ann:hunter2' a.example", "curl --user 'ann:[secret: password]' a.example"),
        ("sshpass -p hunter2 ssh a", "sshpass -p [secret: password] ssh a"),
        ("mysqldump -u root -phunter2 shop", "mysqldump -u root -p[secret: password] shop"),
        ("curl -u ann:$PASS a.example", "curl -u ann:$PASS a.example"),
        ("docker run -u 1000:1000 image", "docker run -u 1000:1000 image"),
        ("mysql -p shop", "mysql -p shop"),
    ],
)
def test_programs_that_take_a_password_without_a_name_are_known(text, clean):
    """References to one stay, and so does what other programs mean by the same letters."""
    assert redact(text) == clean
