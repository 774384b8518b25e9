r"""Stored text made fit for a terminal: nothing in it moves the cursor, hides or reverses.

In: text as an agent's log gave it. Out: text in which every control and format character that a terminal
might act on is a visible sign: C0 and DEL as control pictures (``␛`` for escape), all others as ``\u202e``.
"""


def _escaped(code: int) -> str:
    """Return the JSON escape of a character, a surrogate pair where it needs one."""
    units = chr(code).encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


_FORMAT = (
    (0x80, 0x9F),  # C1: CSI and friends in one character
    (0x61C, 0x61C),
    (0x200B, 0x200B),
    (0x200E, 0x200F),
    (0x2028, 0x202E),  # line and paragraph separator, bidirectional overrides
    (0x2060, 0x206F),
    (0xFEFF, 0xFEFF),
    (0xFFF9, 0xFFFB),
    (0xE0000, 0xE007F),  # tags: ASCII that nobody sees
)
_PICTURES = {code: chr(0x2400 + code) for code in range(32)} | {0x7F: "\u2421"}
_HIDDEN = {
    code: (f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    for low, high in _FORMAT
    for code in range(low, high + 1)
}
_LINE = _PICTURES | _HIDDEN
_TEXT = {code: sign for code, sign in _LINE.items() if chr(code) not in "\n\t"}
_JSON = {code: _escaped(code) for code in (0x7F, *_HIDDEN)}


def line(text: str) -> str:
    """Return `text` as one line: runs of blanks, tabs and line ends become one blank."""
    return " ".join(
        text.replace("\t", " ").replace("\r\n", "\n").replace("\n", " ").translate(_LINE).split()
    )


def text(stored: str) -> str:
    """Return `stored` with its line ends and tabs kept."""
    return stored.replace("\r\n", "\n").translate(_TEXT)


def json_line(encoded: str) -> str:
    """Return a line of JSON that means the same and holds no character a terminal acts on.

    JSON itself escapes C0; the others can stand only inside strings, where an escape means the same.
    """
    return encoded.translate(_JSON)
