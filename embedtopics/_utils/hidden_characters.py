"""Characters that people do not see and programs read.

Words can be hidden from people in them: spelled in tags (U+E0000 to U+E007F) or in variation
selectors (U+FE00 to U+FE0F, U+E0100 to U+E01EF), or turned around by marks of direction. What a
language model or an assistant reads must be what people see.

Some belong to what people see, and stay where they do, one at a time: joiners between letters of
scripts that join letters (Persian, Hindi), and the selectors and joiners of an emoji. Those of
typography, such as soft hyphens and marks of direction in Hebrew, are removed without a sign; so is
the selector of a Chinese character. All others are replaced by a sign.
"""

from __future__ import annotations

import re
import unicodedata

SIGN = "\ufffd"

_HIDDEN = re.compile(
    "["
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # controls, without tabs and ends of lines
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\ud800-\udfff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "]+"
)

# Soft hyphen, joiners, marks of direction, zero-width spaces and selectors of emoji.
_TYPOGRAPHY = frozenset("\u00ad\u034f\u061c\u200b\u200c\u200d\u200e\u200f\u2060\ufe0e\ufe0f\ufeff")

_JOINERS = "\u200c\u200d"
_EMOJI_SELECTORS = "\ufe0e\ufe0f"

# Letters of Arabic, Syriac, the scripts of India and South East Asia, and Mongolian.
_JOINED_LETTER = re.compile("[\u0600-\u109f\u1780-\u18af\ufb50-\ufdff\ufe70-\ufefc]")
_IDEOGRAPH = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_KEYCAP = re.compile("[0-9#*]")
_EMOJI_OF_OTHER_KINDS = "\u203c\u2049\u2139\u3030"  # two punctuation marks, a letter and a dash


def without_hidden(text: str, sign: str = SIGN) -> str:
    """Return what people see of a text; `sign` stands for characters that hide something."""
    if text.isascii() and text.isprintable():
        return text

    def shown(run: re.Match[str]) -> str:
        before = text[max(run.start() - 1, 0) : run.start()]
        after = text[run.end() : run.end() + 1]
        if _belongs(run[0], before, after):
            return run[0]
        is_selected = len(run[0]) == 1 and run[0] >= "\U000e0100" and _IDEOGRAPH.match(before)
        if is_selected or _TYPOGRAPHY.issuperset(run[0]):
            return ""
        return sign

    return _HIDDEN.sub(shown, text)


def first_hidden(text: str) -> str | None:
    """Return the first character that `without_hidden` removes, None if there is none."""
    for run in _HIDDEN.finditer(text):
        before = text[max(run.start() - 1, 0) : run.start()]
        if not _belongs(run[0], before, text[run.end() : run.end() + 1]):
            return run[0][0]
    return None


def _belongs(run: str, before: str, after: str) -> bool:
    """Return whether hidden characters are part of the letters or the emoji around them."""
    if len(run) == 1 and (run in _JOINERS or "\u180b" <= run <= "\u180f"):
        return bool(_JOINED_LETTER.match(before)) or _is_emoji_joined(run, before, after)
    if len(run) == 1 and run in _EMOJI_SELECTORS:
        return _is_emoji(before) or bool(_KEYCAP.match(before) and after == "\u20e3")
    return _is_emoji_joined(run, before, after)


def _is_emoji_joined(run: str, before: str, after: str) -> bool:
    """Return whether a run joins two emoji, as in a family or a burning heart."""
    return run in ("\u200d", "\ufe0f\u200d") and _is_emoji(before) and _is_emoji(after)


def _is_emoji(character: str) -> bool:
    if not character or character.isascii() or character == SIGN:
        return False
    is_symbol = unicodedata.category(character) in ("So", "Sm", "Sk")
    return is_symbol or character in _EMOJI_OF_OTHER_KINDS
