"""The invented patients of the tutorial, and the statistics of an invented country; run it to write both files.

A diagnosis is drawn with probability proportional to

    often * exp(ages * (age - 50) / 30) * (women if sex is f)

where `often`, `ages` and `women` stand in the table below. The statistics come from this law, not from the patients.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

DOCS = Path(__file__).resolve().parents[1]
DIAGNOSES = {
    # code: how often at 50, how it goes with age, how much likelier for women
    "B20": (1.0, -0.6, 0.4),
    "C18.0": (2.0, 0.9, 0.8),
    "E11.9": (9.0, 0.6, 0.8),
    "F32.1": (7.0, -0.5, 1.7),
    "G40.9": (3.0, -0.3, 1.0),
    "I10": (14.0, 0.8, 1.0),
    "J45.0": (6.0, -0.9, 1.2),
    "K02.1": (5.0, -0.4, 1.0),
    "K35.8": (4.0, -0.8, 0.9),
    "M54.5": (11.0, 0.2, 1.1),
    "N39.0": (5.0, 0.4, 2.2),
    "S72.0": (2.0, 1.3, 1.4),
}
AGES = np.arange(18, 90)
POSTCODES = [f"{area}{street}" for area in ("41", "42", "47", "58") for street in ("03", "17", "26", "54")]
RECORDS = 5_000


def law() -> np.ndarray:
    """The probability of each diagnosis, by age and sex (women first)."""
    often, ages, women = (np.array(column) for column in zip(*DIAGNOSES.values(), strict=True))
    weight = often * np.exp(ages * (AGES[:, None] - 50) / 30)
    both = np.stack([weight * women, weight], axis=1)
    return both / both.sum(axis=2, keepdims=True)


def patients(records: int = RECORDS, seed: int = 42) -> list[str]:
    draw = np.random.default_rng(seed)
    chances, codes = law(), list(DIAGNOSES)
    lines = ["patient,age,sex,postcode,diagnosis"]
    for number in range(records):
        age = int(np.clip(draw.normal(52, 18), AGES[0], AGES[-1]))
        sex = int(draw.integers(2))
        place = draw.choice(POSTCODES, p=[0.1] * 8 + [0.025] * 8)
        code = draw.choice(codes, p=chances[age - AGES[0], sex])
        lines.append(f"P{100_000 + number},{age},{'fm'[sex]},{place},{code}")
    return lines


def statistics() -> list[str]:
    """How often each diagnosis is among 10,000 patients of the country, whose ages are spread as in the table."""
    weight = np.exp(-(((AGES - 52) / 18) ** 2) / 2)
    shares = (law().mean(axis=1) * weight[:, None]).sum(axis=0) / weight.sum()
    lines = ["# Patients of 10,000, by main diagnosis (invented)", "diagnosis,patients"]
    return lines + [f"{code},{10_000 * share:.0f}" for code, share in zip(DIAGNOSES, shares, strict=True)]


def main() -> None:
    for name, lines in (("patients.csv", patients()), ("statistics.csv", statistics())):
        (DOCS / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
