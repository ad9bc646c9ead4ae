"""An unprepared hospital table: 23 columns as they come out of such systems, generated from a seed."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import polars as pl

_FIRST = ["Anna", "Ben", "Clara", "David", "Eva", "Frank", "Greta", "Hans", "Ida", "Jonas", "Karin", "Lukas"]
_LAST = ["Adler", "Becker", "Conrad", "Dietz", "Ernst", "Fuchs", "Gross", "Hahn", "Imhof", "Jung", "Kern", "Lang"]
_ICD = """
I10 I25.1 I48.9 I50.0 I63.9 J18.9 J44.1 J45.0 K35.8 K80.2 K21.0 E11.9 E78.5 E66.0 F32.1 F10.2 N39.0 N18.4 C34.1 C50.9
C61 M16.1 M54.5 S72.0 S06.0 A41.9 B99 O80 G40.9 R07.4"""
_PROCEDURES = "0DTJ4ZZ 0SRC0J9 027034Z 10E0XZZ 0FT44ZZ 4A023N7 0SR90J9 5A1955Z 30233N1 B2111ZZ 0DB98ZX 3E03317"
_COUNTRIES = ["DE", "TR", "PL", "IT", "SY", "RO", "GR", "FR", "US", "AT"]
_WARDS = ["cardiology", "surgery", "internal", "neurology", "maternity", "oncology"]


def patients(rows: int = 3_000, seed: int = 17) -> pl.DataFrame:
    """One row a stay."""
    draw = np.random.default_rng(seed)
    codes = _ICD.split()
    ages = np.clip(draw.normal(58, 19, rows), 0, 99).astype(int)
    admitted = [date(2023, 1, 1) + timedelta(days=int(day)) for day in draw.integers(0, 730, rows)]
    stays = 1 + draw.poisson(4, rows)
    regions = draw.choice(["80", "81", "82", "86", "01"], rows, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    names = [f"{first} {last}" for first, last in zip(draw.choice(_FIRST, rows), draw.choice(_LAST, rows))]
    return pl.DataFrame(
        {
            "PatientID": [f"P{number:07d}" for number in draw.permutation(9_000_000)[:rows]],
            "patient_name": names,
            "contact": [f"{name.replace(' ', '.').lower()}{number}@mail.example" for number, name in enumerate(names)],
            "reach": [f"+49 89 {number}" for number in draw.integers(1_000_000, 9_999_999, rows)],
            "insured": [f"{number}" for number in draw.integers(100_000_000, 999_999_999, rows)],
            "birth_date": [day - timedelta(days=int(365.25 * age)) for day, age in zip(admitted, ages)],
            "age": ages,
            "sex": draw.choice(["f", "m"], rows),
            "zip": [f"{region}{number:03d}" for region, number in zip(regions, draw.integers(0, 60, rows))],
            "origin": draw.choice(_COUNTRIES, rows, p=[0.7, 0.08, 0.05, 0.04, 0.03, 0.03, 0.02, 0.02, 0.02, 0.01]),
            "marital_status": draw.choice(["single", "married", "divorced", "widowed", None], rows),
            "admitted": admitted,
            "discharged": [day + timedelta(days=int(stay)) for day, stay in zip(admitted, stays)],
            "ward": draw.choice(_WARDS, rows),
            "main_diagnosis": draw.choice(codes, rows, p=_weights(len(codes))),
            "second": draw.choice([*codes, None], rows, p=_weights(len(codes) + 1)),
            "procedure": draw.choice(_PROCEDURES.split(), rows),
            "drg": draw.choice([f"{letter}{number:02d}Z" for letter in "FGIO" for number in range(5)], rows),
            "nights": stays,
            "charges": np.round(draw.lognormal(8.5, 0.9, rows), 2),
            "payer": draw.choice(["statutory", "private", "self"], rows, p=[0.85, 0.13, 0.02]),
            "bmi": np.round(draw.normal(27, 5, rows), 1),
            "letter": [f"{name} was seen on {day} and sent home well" for name, day in zip(names, admitted)],
        }
    )


def _weights(count: int) -> np.ndarray:
    weights = 1.0 / np.arange(2, count + 2)
    return weights / weights.sum()
