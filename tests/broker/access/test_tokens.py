"""Tokens: only what the issuer signed, for this broker, and as long as it holds."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import logging
from pathlib import Path
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mqtt5 import ConnAckReasonCode, DisconnectPacket, DisconnectReasonCode
from tests.broker.access.minting import AUDIENCE, ISSUER, NOW, Issuer, written
from tests.broker.talker import Talker, broker

from nearcast.broker.access import Access, Peer
from nearcast.broker.access.tokens import LONGEST_TOKEN, Tokens
from nearcast.broker.access.users import add_user
from nearcast.broker.server import Server
from nearcast.broker.settings import AccessSettings, BrokerSettings, JwtSettings, RuleSettings
from nearcast.errors import Denied, InvalidSettings, NotAuthenticated
from nearcast.model.subscription import Subscription
from nearcast.settings_files import Duration

THERE = Peer("203.0.113.7", 50_000, tls=True)
CLAIMS = {"iss": ISSUER, "aud": AUDIENCE, "exp": NOW + 60, "sub": "ada"}


def at(seconds: float) -> Any:
    return lambda: int(seconds * 1_000_000)


@pytest.fixture(params=["EdDSA", "ES256", "ES384", "ES512", "RS256", "PS384"])
def issuer(request: pytest.FixtureRequest) -> Issuer:
    return Issuer(request.param)


def refused(tokens: Tokens, token: str | bytes) -> None:
    with pytest.raises(NotAuthenticated, match=r"^wrong user name or password$") as refusal:
        tokens.holder(token.encode() if isinstance(token, str) else token)
    assert refusal.value.reason == 0x86


def test_what_the_issuer_signed_names_the_user(issuer: Issuer, tmp_path: Path) -> None:
    tokens = Tokens(issuer.settings(tmp_path), at(NOW))
    holder = tokens.holder(issuer.token().encode())
    assert (holder.user, holder.groups, holder.until) == ("ada", frozenset(), (NOW + 90) * 1_000_000)


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://evil.example"},
        {"aud": "another-broker"},
        {"aud": ["another-broker", "a-third"]},
        {"exp": NOW - 31},
        {"exp": "tomorrow"},
        {"exp": 1e300},
        {"exp": True},
        {"nbf": NOW + 31},
        {"iat": NOW + 31},
        {"sub": "a/b"},
        {"sub": ""},
        {"sub": "#"},
        {"sub": "*"},
        {"sub": 7},
        {"sub": ["ada"]},
        {"drop": ("exp",)},
        {"drop": ("iss",)},
        {"drop": ("aud",)},
        {"drop": ("sub",)},
    ],
    ids=str,
)
def test_claims_that_are_not_right_are_refused_alike(claims: dict[str, Any], tmp_path: Path) -> None:
    issuer = Issuer()
    tokens = Tokens(issuer.settings(tmp_path), at(NOW))
    refused(tokens, issuer.token(**claims) if "sub" not in claims else issuer.token(claims["sub"]))
    assert tokens.statistics().refused == 1


def test_clocks_may_differ_by_the_leeway_and_no_more(tmp_path: Path) -> None:
    issuer = Issuer()
    settings = issuer.settings(tmp_path, leeway=Duration.of("10s"))
    token = issuer.token(exp=NOW, nbf=NOW - 60).encode()
    Tokens(settings, at(NOW + 9.9)).holder(token)
    Tokens(settings, at(NOW - 69.9)).holder(token)
    refused(Tokens(settings, at(NOW + 10)), token)
    refused(Tokens(settings, at(NOW - 70.1)), token)


def test_no_signature_and_foreign_signatures_are_refused(issuer: Issuer, tmp_path: Path) -> None:
    tokens = Tokens(issuer.settings(tmp_path), at(NOW))
    stranger = Issuer(issuer.algorithm)
    refused(tokens, stranger.token())
    head, body, signature = issuer.token().split(".")
    for none in ("none", "None", "NONE", "nOnE", "", None, ["EdDSA"], {"a": 1}):
        refused(tokens, written({"alg": none, "typ": "JWT"}, CLAIMS))
        refused(tokens, f"{written({'alg': none}, CLAIMS).rpartition('.')[0]}.{signature}")
    refused(tokens, f"{head}.{body}.")
    other = written({}, CLAIMS | {"sub": "root"}).split(".")[1]
    refused(tokens, f"{head}.{other}.{signature}")


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_a_public_key_is_never_taken_for_a_secret(algorithm: str, tmp_path: Path) -> None:
    """The classic confusion: sign with the public key, which everybody has, as if it were the shared secret."""
    issuer = Issuer("RS256")
    tokens = Tokens(issuer.settings(tmp_path), at(NOW))
    signed = written({"alg": algorithm, "typ": "JWT"}, CLAIMS).rpartition(".")[0]
    for secret in (issuer.public, issuer.public.strip(), b""):
        digest = hmac.new(secret, signed.encode(), getattr(hashlib, f"sha{algorithm[2:]}")).digest()
        refused(tokens, f"{signed}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}")


def test_an_algorithm_that_is_not_listed_is_refused_although_the_key_would_fit(tmp_path: Path) -> None:
    issuer = Issuer("RS256")
    tokens = Tokens(issuer.settings(tmp_path, algorithms=("PS256",)), at(NOW))
    refused(tokens, issuer.token())
    tokens.holder(jwt.encode(CLAIMS, issuer.key, "PS256").encode())


def test_what_a_token_says_of_its_key_brings_no_key_of_its_own(tmp_path: Path) -> None:
    issuer, stranger = Issuer("RS256"), Issuer("RS256")
    tokens = Tokens(issuer.settings(tmp_path), at(NOW))
    own = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(stranger.key.public_key()))
    for header in (
        {"jwk": own},
        {"jku": "http://127.0.0.1:9/keys"},
        {"x5u": "http://127.0.0.1:9/"},
        {"kid": "../../x"},
    ):
        refused(tokens, jwt.encode(CLAIMS, stranger.key, "RS256", headers=header))
    refused(tokens, jwt.encode(CLAIMS, issuer.key, "RS256", headers={"crit": ["exp2"], "exp2": 1}))


@given(data=st.binary(max_size=200))
def test_rubbish_is_refused_and_nothing_else_happens(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    issuer = Issuer()
    tokens = Tokens(issuer.settings(tmp_path_factory.mktemp("keys")), at(NOW))
    refused(tokens, data)
    token = issuer.token().encode()
    cut = len(data) % token.rindex(b".")  # the signature itself can be written in several ways
    changed = token[:cut] + data + token[cut + 1 :]
    refused(tokens, changed if changed != token else token[1:])


def test_a_token_is_not_longer_than_it_may_be(tmp_path: Path) -> None:
    issuer = Issuer()
    tokens = Tokens(issuer.settings(tmp_path), at(NOW))
    refused(tokens, issuer.token(more="x" * LONGEST_TOKEN))


def test_keys_of_a_jwks_are_chosen_by_name_and_changed_while_it_runs(tmp_path: Path) -> None:
    first, second = Issuer("ES256"), Issuer("ES256")
    path = tmp_path / "keys.json"

    def keep(**issuers: Issuer) -> None:
        keys = [
            json.loads(jwt.algorithms.ECAlgorithm.to_jwk(each.key.public_key())) | {"kid": name, "use": "sig"}
            for name, each in issuers.items()
        ]
        path.write_text(json.dumps({"keys": keys}))

    keep(one=first)
    tokens = Tokens(first.settings(tmp_path, keys=path), at(NOW))
    tokens.holder(first.token(name="one").encode())
    refused(tokens, first.token(name="two"))
    keep(one=first, two=second)
    for each, name in ((first, "one"), (second, "two"), (second, None)):
        tokens.holder(each.token(name=name).encode())
    refused(tokens, second.token(name="one"))
    keep(two=second)
    refused(tokens, first.token(name="one"))
    path.write_text("{broken")
    tokens.holder(second.token(name="two").encode())
    assert tokens.statistics().unreadable == 1


def test_a_shared_secret(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s" * 32 + "\n")
    given: dict[str, Any] = {"secret": secret, "issuer": ISSUER, "audience": AUDIENCE}
    tokens = Tokens(JwtSettings(algorithms=("HS256",), **given), at(NOW))
    tokens.holder(jwt.encode(CLAIMS, "s" * 32, "HS256").encode())
    refused(tokens, jwt.encode(CLAIMS, "t" * 32, "HS256"))
    with pytest.raises(InvalidSettings, match="48 at least") as refusal:
        Tokens(JwtSettings(algorithms=("HS256", "HS384"), **given), at(NOW))
    assert "sss" not in str(refusal.value)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"keys": None}, "give keys, or a secret"),
        ({"secret": Path("secret")}, "not both"),
        ({"algorithms": ()}, "list the algorithms"),
        ({"algorithms": ("EdDSA", "HS256")}, "HS256 goes with a secret"),
        ({"audience": ""}, "issuer and audience"),
        ({"leeway": Duration.of("1h")}, "set the clock"),
    ],
)
def test_settings_that_are_not_safe_are_refused(changes: dict[str, Any], problem: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match=problem):
        Issuer().settings(tmp_path, **changes)


def test_files_of_keys_that_cannot_be_used_are_refused_without_quoting_them(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric import rsa

    issuer = Issuer()
    private = issuer.key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    weak = rsa.generate_private_key(65_537, 1_024).public_key()  # noqa: S505 - to be refused
    short = weak.public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    symmetric = json.dumps({"keys": [{"kty": "oct", "k": "cGxhbnRlZA", "kid": "x"}]}).encode()
    for content, problem in (
        (private, "private key"),
        (short, "1024 bits"),
        (symmetric, "public keys only"),
        (b"planted", "holds 0"),
        (b"{}", "no JWKS"),
        (issuer.public * 17, "holds 17"),
    ):
        settings = issuer.settings(tmp_path)
        settings.file.write_bytes(content)
        with pytest.raises(InvalidSettings, match=problem) as refusal:
            Tokens(settings, at(NOW))
        assert "cGxhbnRlZA" not in str(refusal.value)
        assert "planted" not in str(refusal.value)


def test_the_log_says_what_was_wrong_and_nothing_of_the_token(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    issuer = Issuer()
    tokens = Tokens(issuer.settings(tmp_path), at(NOW))
    logging.getLogger("nearcast").propagate = True
    with caplog.at_level(logging.DEBUG):
        for token in (issuer.token(iss="https://planted.example"), issuer.token("planted/user"), Issuer().token()):
            refused(tokens, token)
            assert token.split(".")[1] not in caplog.text
    assert "another issuer" in caplog.text
    assert "signature is wrong" in caplog.text
    assert "planted" not in caplog.text


# In a broker


def access_with(folder: Path, jwt_settings: JwtSettings, *rules: RuleSettings) -> Access:
    add_user(folder / "users", "bob", "bob's secret")
    access = AccessSettings(anonymous="never", jwt=jwt_settings, rules=rules)
    return Access(BrokerSettings(data=folder, access=access), at(NOW))


def test_beside_passwords_and_never_for_somebody_else(tmp_path: Path) -> None:
    issuer = Issuer()
    access = access_with(tmp_path, issuer.settings(tmp_path))

    def let_in(user: str | None, password: str) -> str | None:
        return asyncio.run(access.authenticate("phone", user, password.encode(), THERE)).user

    assert let_in(None, issuer.token()) == let_in("ada", issuer.token()) == "ada"
    assert let_in("bob", "bob's secret") == "bob"
    for user, password in (("bob", issuer.token()), ("ada", "bob's secret"), (None, Issuer().token())):
        with pytest.raises(NotAuthenticated, match=r"^wrong user name or password$"):
            let_in(user, password)
    access.close()


def test_groups_of_a_token_give_the_rights_of_these_groups(tmp_path: Path) -> None:
    issuer = Issuer()
    rule = RuleSettings(groups=("medics",), subscribe=("medical/#",))
    access = access_with(tmp_path, issuer.settings(tmp_path, groups_claim="groups"), rule)

    def may(groups: object) -> bool:
        token = issuer.token(groups=groups).encode()
        return asyncio.run(access.authenticate("phone", None, token, THERE)).may_subscribe("medical/x")

    assert may(["medics", "more"])
    assert may("more medics")
    assert not may(["drivers"])
    assert not may([])
    with pytest.raises(NotAuthenticated):
        may([7])
    with pytest.raises(NotAuthenticated):
        may(["x"] * 257)
    access.close()


def test_a_connection_ends_when_its_token_expires(tmp_path: Path) -> None:
    issuer = Issuer()

    async def scenario(server: Server) -> None:
        now = server.broker.clock.now() / 1_000_000
        talker = await Talker.open(server)
        token = issuer.token(exp=now + 3_600)
        answer = await talker.connect("phone", password=token.encode())
        assert answer.reason_code is ConnAckReasonCode.SUCCESS
        (conversation,) = server.broker.services.open
        conversation._connection.heard_at = int((now + 3_629) * 1_000_000)
        conversation.look_after(int((now + 3_629) * 1_000_000))
        assert conversation.session is not None
        conversation._connection.heard_at = int((now + 3_631) * 1_000_000)
        conversation.look_after(int((now + 3_631) * 1_000_000))
        assert (await talker.next(DisconnectPacket)).reason_code is DisconnectReasonCode.MAX_CONNECT_TIME

    broker(tmp_path, scenario, access={"jwt": issuer.settings(tmp_path), "anonymous": "never"})


def test_rights_without_the_group_are_denied(tmp_path: Path) -> None:
    issuer = Issuer()
    access = access_with(tmp_path, issuer.settings(tmp_path), RuleSettings(users=("root",), subscribe=("#",)))
    principal = asyncio.run(access.authenticate("phone", None, issuer.token().encode(), THERE))
    with pytest.raises(Denied):
        principal.check_subscription(Subscription("a"), 0)
    access.close()


def test_over_http_as_a_bearer(tmp_path: Path) -> None:
    issuer = Issuer()

    async def story(server: Server) -> None:
        from tests.broker.test_http import asking

        async with asking(server) as client:
            token = issuer.token("root", exp=server.broker.clock.now() / 1_000_000 + 60)
            assert (await client.get("/status", headers={"authorization": f"Bearer {token}"})).status_code == 200
            assert (await client.get("/dashboard/api/me")).status_code == 404
            for wrong in (issuer.token("root", exp=1), Issuer().token("root", exp=9e9), "x", token[:-9]):
                answer = await client.get("/status", headers={"authorization": f"Bearer {wrong}"})
                assert answer.status_code == 401
                assert answer.json()["detail"] == "wrong user name or password"

    settings = {"jwt": issuer.settings(tmp_path), "anonymous": "never"}
    broker(tmp_path, story, access=settings, listen={"http_port": "any"})
