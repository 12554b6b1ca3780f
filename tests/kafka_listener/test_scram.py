"""SCRAM: the example of RFC 7677, both sides against each other, and messages that were altered."""

from base64 import b64decode

import pytest

from fairlead.runtime.security.kafka import scram
from fairlead.runtime.security.kafka.scram import (
    DIGESTS,
    LEAST_ITERATIONS,
    ClientFirst,
    ScramClient,
    ScramError,
    ScramServer,
    derive_keys,
    read_client_first,
)

SHA_256 = "SCRAM-SHA-256"
SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT_NONCE, SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FIRST = f"n,,n=user,r={CLIENT_NONCE}"
CHALLENGE = f"r={CLIENT_NONCE}{SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
FINAL = f"c=biws,r={CLIENT_NONCE}{SERVER_NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
VERIFIER = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
KEYS = derive_keys(SHA_256, "pencil", SALT, 4_096)


def server_of_the_example() -> ScramServer:
    server = ScramServer(SHA_256, read_client_first(FIRST.encode()), KEYS)
    server._nonce = CLIENT_NONCE + SERVER_NONCE
    server.challenge = CHALLENGE.encode()
    return server


def test_the_server_answers_as_in_the_rfc() -> None:
    assert server_of_the_example().finish(FINAL.encode()) == VERIFIER.encode()


def test_the_client_answers_as_in_the_rfc() -> None:
    client = ScramClient(SHA_256, "user", "pencil")
    client._nonce, client._bare = CLIENT_NONCE, FIRST.removeprefix("n,,")
    assert client.prove(CHALLENGE.encode()) == FINAL.encode()
    client.verify(VERIFIER.encode())


@pytest.mark.parametrize("mechanism", DIGESTS)
@pytest.mark.parametrize("name", ["ann", "a,b=c", "=2C", "ünï", "x" * 255])
def test_both_sides_agree_for_every_name(mechanism: str, name: str) -> None:
    client = ScramClient(mechanism, name, "pässword")
    first = read_client_first(client.first)
    assert first.name == name
    server = ScramServer(mechanism, first, derive_keys(mechanism, "pässword"))
    client.verify(server.finish(client.prove(server.challenge)))


@pytest.mark.parametrize("at", range(len(FINAL)))
def test_a_last_message_with_another_character_is_refused(at: int) -> None:
    other = "A" if FINAL[at] != "A" else "B"
    with pytest.raises(ScramError):
        server_of_the_example().finish(f"{FINAL[:at]}{other}{FINAL[at + 1 :]}".encode())


@pytest.mark.parametrize("size", range(len(FINAL)))
def test_a_last_message_that_is_cut_off_is_refused(size: int) -> None:
    with pytest.raises(ScramError):
        server_of_the_example().finish(FINAL[:size].encode())


@pytest.mark.parametrize("size", range(len(VERIFIER)))
def test_a_client_believes_no_part_of_the_proof_of_its_server(size: int) -> None:
    client = ScramClient(SHA_256, "user", "pencil")
    client._nonce, client._bare = CLIENT_NONCE, FIRST.removeprefix("n,,")
    with pytest.raises(ScramError, match="the server does not have the user's keys"):
        client.verify(b"")  # before its own proof
    client.prove(CHALLENGE.encode())
    with pytest.raises(ScramError, match="the server does not have the user's keys"):
        client.verify(VERIFIER[:size].encode())


@pytest.mark.parametrize(
    "message",
    [
        "",
        "n,,",
        "p=tls-unique,,n=user,r=abc",
        "n,a=root,n=user,r=abc",
        "n,,m=must,n=user,r=abc",
        "n,,n=us=er,r=abc",
        "n,,n=,r=abc",
        "n,,n=user,r=",
        "n,,n=user,r=a b",
        "n,,n=user,r=abc,",
        "n,,n=us\0er,r=abc",
        "n,,n=user,r=" + "x" * 5_000,
        "n,,n=user,r=abc" + ",a=x" * 1_000 + "\0",  # at which no matcher may try all ways
    ],
)
def test_a_malformed_first_message_is_refused(message: str) -> None:
    with pytest.raises(ScramError):
        read_client_first(message.encode())


def test_a_first_message_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(ScramError):
        read_client_first(b"n,,n=us\xff,r=abc")


def test_a_user_may_name_itself_twice_and_may_know_of_channel_binding() -> None:
    wanted = ClientFirst("a,b", "x", "y,a=a=2Cb,", "n=a=2Cb,r=x,tokenauth=true", ",tokenauth=true")
    assert read_client_first(b"y,a=a=2Cb,n=a=2Cb,r=x,tokenauth=true") == wanted


@pytest.mark.parametrize(
    "challenge",
    [
        "r=other,s=c2FsdA==,i=4096",
        "r={nonce},s=c2FsdA==,i=4096",
        "r={nonce}x,s=c2FsdA==,i=4095",
        "r={nonce}x,s=c2FsdA==,i=1000001",
        "r={nonce}x,s=!,i=4096",
        "r={nonce}x,i=4096",
        "e=other-error",
    ],
)
def test_a_client_does_not_answer_a_weak_or_foreign_challenge(challenge: str) -> None:
    client = ScramClient(SHA_256, "user", "pencil")
    with pytest.raises(ScramError):
        client.prove(challenge.replace("{nonce}", client._nonce).encode())


def test_new_keys_have_a_salt_of_their_own_and_enough_iterations() -> None:
    first, second = (derive_keys(SHA_256, "pencil") for _ in range(2))
    assert first.salt != second.salt
    assert len(first.salt) == scram.SALT_BYTES
    assert first.iterations == scram.ITERATIONS > LEAST_ITERATIONS
