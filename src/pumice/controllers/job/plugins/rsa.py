"""RSA key pairs as ssh reads them; the random bits come from the caller."""

import base64
import math
from collections.abc import Callable
from typing import Final

Bits = Callable[[int], int]
"""Draws a number of so many random bits."""

KEY_BITS: Final = 2048
_EXPONENT: Final = 65537
_ROUNDS: Final = 8  # of Miller and Rabin; a wrong answer is less likely than a broken machine
_SMALL: Final = tuple(
    number
    for number in range(3, 2000, 2)
    if all(number % odd for odd in range(3, 45, 2) if odd < number)
)


def key_pair(bits: Bits, size: int = KEY_BITS) -> tuple[str, str]:
    """Make a private key (PEM, PKCS #1) and its public key (one line of authorized_keys)."""
    first, second = _prime(bits, size // 2), _prime(bits, size // 2)
    while first == second or (first * second).bit_length() != size:
        second = _prime(bits, size // 2)
    modulus = first * second
    private = pow(_EXPONENT, -1, math.lcm(first - 1, second - 1))
    numbers = (
        0, modulus, _EXPONENT, private, first, second,
        private % (first - 1), private % (second - 1), pow(second, -1, first),
    )  # fmt: skip
    body = base64.encodebytes(_sequence(numbers)).decode().replace("\n", "")
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    pem = ["-----BEGIN RSA PRIVATE KEY-----", *lines, "-----END RSA PRIVATE KEY-----", ""]
    return "\n".join(pem), _public(modulus)


def _public(modulus: int) -> str:
    """Write a public key for authorized_keys."""
    parts = (b"ssh-rsa", _whole(_EXPONENT), _whole(modulus))
    blob = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return f"ssh-rsa {base64.b64encode(blob).decode()}\n"


def _whole(number: int) -> bytes:
    """Write a number that is not negative, with room for its sign."""
    return number.to_bytes(number.bit_length() // 8 + 1, "big")


def _sequence(numbers: tuple[int, ...]) -> bytes:
    """Write numbers as an ASN.1 sequence."""
    return _tagged(0x30, b"".join(_tagged(0x02, _whole(number)) for number in numbers))


def _tagged(tag: int, body: bytes) -> bytes:
    """Write a tag, the length and the body."""
    length = len(body)
    if length < 0x80:
        return bytes([tag, length]) + body
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(size)]) + size + body


def _prime(bits: Bits, size: int) -> int:
    """Draw a prime whose two highest bits are set and that suits the exponent."""
    while True:
        number = bits(size) | (3 << (size - 2)) | 1
        suits = number % _EXPONENT != 1 and all(number % small for small in _SMALL)
        if suits and _probably_prime(number, bits):
            return number


def _probably_prime(number: int, bits: Bits) -> bool:
    """Ask Miller and Rabin."""
    odd, halvings = number - 1, 0
    while odd % 2 == 0:
        odd, halvings = odd // 2, halvings + 1
    for _ in range(_ROUNDS):
        power = pow(2 + bits(number.bit_length()) % (number - 3), odd, number)
        if power in (1, number - 1):
            continue
        for _ in range(halvings - 1):
            power = power * power % number
            if power == number - 1:
                break
        else:
            return False
    return True
