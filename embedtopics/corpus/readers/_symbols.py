"""The characters of the font Symbol, which numbers letters and signs in its own order."""

# ruff: noqa: RUF001

SYMBOL_FONT: dict[int, str] = dict(
    zip(
        (*range(0x21, 0x7F), *range(0xA1, 0xF0), *range(0xF1, 0xFF)),
        "!∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾"
        "αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼"
        "ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵"
        "ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓"
        "◊〈®©™∑⎛⎜⎝⎡⎢⎣⎧⎨⎩⎪〉∫⌠⎮⌡⎞⎟⎠⎤⎥⎦⎫⎬⎭",
        strict=True,
    )
)
"""Characters by their codes in the font."""
