"""Mend JSON text that was cut in the middle of a character, so that it can be decoded.

In: bytes of JSON text. Out: the same, with every half of a surrogate pair replaced. Programs that count
UTF-16 units cut a string between the two halves of a pair and write one of them as an escape, which no
strict decoder takes; to leave such a line out would lose a result, and with it a rise of the label.
"""

import re

_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a whole pair
    rb"|(u[dD][89a-fA-F][0-9a-fA-F]{2})"  # half of one
    rb"|.)",  # any other escape, so that in `\\ud800` the second backslash escapes nothing
    re.DOTALL,
)
_REPLACEMENT = rb"\ufffd"


def mend_surrogates(data: bytes) -> bytes:
    r"""Return JSON text in which each half of a surrogate pair is ``\ufffd``; pairs stay as they are."""
    return _ESCAPE.sub(lambda found: _REPLACEMENT if found[1] else found[0], data)
