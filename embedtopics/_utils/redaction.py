"""Remove a secret from text that a server sent, however the server spells it.

A server may repeat the key of a request in an answer, an error or a header: as it is, in JSON, in
an address, in HTML, or in base64, as in an encoded header. Whatever may be written or shown is
therefore redacted first, and cut only afterwards, because a cut key is no longer recognized.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

SHORTEST_SECRET = 8
"""Characters of the shortest key that is redacted. Shorter ones, such as "x" and "EMPTY", are
placeholders for local servers, and ordinary words of answers."""

REDACTED = "[API key]"

_ENTITIES = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}


def redactor(secret: str) -> Callable[[str], str]:
    """Return a function that replaces a secret in a text by `REDACTED`."""
    if len(secret) < SHORTEST_SECRET:
        return str

    encoded = secret.encode()
    spellings = [r"\s*".join(map(_character_pattern, secret)), encoded.hex()]
    for shift in range(3):  # base64 depends on the place of the secret in what is encoded
        for encode in (base64.standard_b64encode, base64.urlsafe_b64encode):
            digits = encode(b"\0" * shift + encoded).decode()
            first = -(-shift * 8 // 6)
            end = (shift + len(encoded)) * 8 // 6
            spellings.append(re.escape(digits[first:end]))
    pattern = re.compile("|".join(spellings), re.IGNORECASE)
    return lambda text: pattern.sub(REDACTED, text)


def _character_pattern(character: str) -> str:
    """Return a pattern of one character, plain or escaped as in JSON, an address or HTML."""
    code = ord(character)
    escapes = [
        rf"\\*{re.escape(character)}",
        f"%(?:25)*{code:02x}",
        rf"\\+u00{code:02x}",
        rf"\\+x{code:02x}",
        f"&#0*{code};",
        f"&#x0*{code:x};",
    ]
    if character in _ENTITIES:
        escapes.append(f"&{_ENTITIES[character]};")
    return f"(?:{'|'.join(escapes)})"


def redact_all(value: Any, redact: Callable[[str], str]) -> Any:
    """Redact every string of a JSON value, the names of fields too."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {redact(name): redact_all(content, redact) for name, content in value.items()}
    if isinstance(value, list | tuple):
        return [redact_all(element, redact) for element in value]
    return value
