"""Ways of writing values: which are the same value, and which are not."""

from __future__ import annotations

SAME = [
    ["30", "30.0", "30.00", "30.", " 30", "30 ", "30\r", "+30", "3e+01", "3.0E1"],
    ["0", "-0", "0.0", "-0.00", "+0"],
    ["0.5", ".5", "0.50", "+.5", "5e-1", "5E-01"],
    ["-7.25", "-7.250", "\u00a0-7.25"],
    ["true", "True", "TRUE", " True"],
    ["false", "False", "FALSE"],
    ["2024-01-31", "2024-01-31T00:00:00", "2024-01-31 00:00", "2024-01-31 00:00:00.000000"],
    ["2024-01-31 10:30:00", "2024-01-31T10:30", "2024-01-31T10:30:00.000"],
    ["2024-01-31 10:30:00+00:00", "2024-01-31T10:30:00Z", "2024-01-31T10:30:00.0+0000"],
    ["male", "male ", " male"],
    ["caf\u00e9", "cafe\u0301"],
]
"""Ways of writing one value, a row for each; texts of different rows are different values."""
OTHERS = [
    *("007", "07", "7", "007.0", "1e3", "1000", "0e12", "0e34", "yes", "1", "Male", "tRUE", "1,5", "1.5", "15"),
    *(
        "2024-01-31 10:30:00+01:00",
        "2024-01-31 10:30:00.5",
        "31.01.2024",
        "",
        "\tx",
        "x",
        "+",
        "-",
        ".",
        "e",
        "1e+9999",
    ),
]
"""Each of them is a value by itself."""
VALUES = [*SAME, *([text] for text in OTHERS)]
TEXTS = [text for row in VALUES for text in row]
