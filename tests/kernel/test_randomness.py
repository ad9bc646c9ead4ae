from __future__ import annotations

import errno
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats

import polyseme as ps
from polyseme.kernel.errors import InvalidInput
from polyseme.kernel.randomness import RecordStream, StickyStream, StreamKey, SystemStream, _order, new_key, read_key

KEY = bytes(range(32))


def sticky(keys: list[bytes], codes: list[int], attribute: str = "a", secret: bytes = KEY) -> np.ndarray:
    return StickyStream(secret, attribute, keys, np.array(codes)).uniforms(3, len(keys))


def test_system_streams_differ_and_seeded_ones_repeat() -> None:
    assert not np.array_equal(SystemStream().words(8), SystemStream().words(8))
    assert np.array_equal(SystemStream.seeded(7).words(100), SystemStream.seeded(7).words(100))
    assert not np.array_equal(SystemStream.seeded(7).words(100), SystemStream.seeded(8).words(100))


def test_words_do_not_depend_on_how_they_are_asked_for() -> None:
    whole = SystemStream.seeded(1).words(300_000)
    stream = SystemStream.seeded(1)
    parts = np.concatenate([stream.words(count) for count in (1, 7, 131_072, 168_920)])
    assert np.array_equal(whole, parts)


def test_a_seed_draws_what_it_always_drew() -> None:
    assert SystemStream.seeded("5 decoys").words(2).tolist() == [1628983835500324785, 7054601153665384537]
    assert StreamKey.seeded("5 decoys").derive(0).words(2).tolist() == [1628983835500324785, 7054601153665384537]


@pytest.mark.usefixtures("real_keys")
def test_fresh_keys_come_from_the_operating_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len({StreamKey.fresh().key for _ in range(100)}) == 100
    assert not np.array_equal(SystemStream().words(8), SystemStream().words(8))
    monkeypatch.setattr(os, "urandom", lambda count: b"u" * count)
    assert StreamKey.fresh().key == b"u" * 32
    assert np.array_equal(SystemStream().words(8), SystemStream(b"u" * 32).words(8))
    new_key(tmp_path / "key")
    assert read_key(tmp_path / "key") == b"u" * 32


def test_what_tests_draw_is_the_same_in_every_run(same_keys_again: Callable[[], None]) -> None:
    """Nothing that a release draws escapes `conftest.py`: a red test is then red for a reason, not by chance."""
    people = pl.DataFrame({"ill": [f"i{n % 6}" for n in range(500)]})
    policy = ps.Policy.loads(
        "attributes:\n  ill: {role: sensitive, domain: [i0, i1, i2, i3, i4, i5], distance: {line: rank},"
        " protect: {semantic-diversity: {l: 3, d: 1}}}\n"
    )
    first, other = (ps.anonymize(people, policy).table for _ in range(2))
    same_keys_again()
    again = ps.anonymize(people, policy).table
    assert again is not None
    assert again.equals(first)
    assert not again.equals(other)


def test_partitions_have_streams_of_their_own() -> None:
    key = pickle.loads(pickle.dumps(StreamKey.seeded(3)))  # noqa: S301 - our own
    streams = [key.derive(number) for number in (0, 1, 2, 255, 256, 2**32, 2**64 - 1)]
    words = np.array([stream.words(50_000) for stream in streams])
    assert np.array_equal(key.derive(256).words(50_000), words[4]), "however often it is asked for"
    assert len(np.unique(words)) == words.size, "they do not overlap"
    uniforms = (words >> np.uint64(11)) * 2.0**-53
    assert np.abs(np.corrcoef(uniforms) - np.eye(len(streams))).max() < 5 / np.sqrt(50_000)
    assert key.key.hex() not in repr(key)
    assert repr(key.key) not in repr(key)
    for number in (-1, 2**64):
        with pytest.raises(OverflowError):
            key.derive(number)


def test_uniforms_are_uniform() -> None:
    uniforms = SystemStream.seeded(3).uniforms(4, 50_000)
    assert uniforms.min() >= 0.0
    assert uniforms.max() < 1.0
    for row in uniforms:
        assert stats.kstest(row, "uniform").pvalue > 1e-4
    assert stats.kstest(uniforms[0] ** 1.02, "uniform").pvalue < 1e-4, "the test must notice a 2% distortion"


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 2**32 + 1, 2**63])
def test_integers_stay_below_their_bound(bound: int) -> None:
    drawn = SystemStream.seeded(bound).integers(bound, 10_000)
    assert drawn.min() >= 0
    assert drawn.max() < bound


def test_integers_are_unbiased() -> None:
    counts = np.bincount(SystemStream.seeded(5).integers(6, 600_000), minlength=6)
    assert stats.chisquare(counts).pvalue > 1e-4


def test_permutations_are_uniform() -> None:
    stream = SystemStream.seeded(11)
    seen = [tuple(stream.permutation(4)) for _ in range(24_000)]
    _, counts = np.unique(seen, axis=0, return_counts=True)
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("shared", [0, 16, 32, 44])
def test_a_permutation_is_the_order_of_its_words_also_where_their_leading_bits_are_the_same(shared: int) -> None:
    for count in (0, 1, 2, 700):
        rng = np.random.default_rng(count)
        words = rng.permutation(np.unique(rng.integers(0, 1 << 64 - shared, count, dtype=np.uint64)))
        assert np.array_equal(_order(words), np.argsort(words))


@pytest.mark.parametrize("size", [1, 3, 16])
def test_bits_are_uniform(size: int) -> None:
    drawn = SystemStream.seeded(size).bits(size, 40_001)
    assert len(drawn) == 40_001
    assert int(drawn.max()) < 1 << size
    assert stats.chisquare(np.bincount(drawn >> max(size - 3, 0), minlength=1 << min(size, 3))).pvalue > 1e-3


def test_sticky_numbers_depend_on_key_record_attribute_and_value_only() -> None:
    keys = [b"anna", b"bob", b"", b"a much longer record key than one block of the cipher", b"exactly-16-bytes"]
    whole = sticky(keys, [0, 1, 2, 3, 4])
    for place in range(5):
        alone = sticky([keys[place]], [place])
        assert np.array_equal(whole[:, [place]], alone)
    assert not np.array_equal(sticky([b"anna"], [0]), sticky([b"anna"], [1]))
    assert not np.array_equal(sticky([b"anna"], [0]), sticky([b"anna"], [0], attribute="b"))
    assert not np.array_equal(sticky([b"anna"], [0]), sticky([b"anna"], [0], secret=bytes(32)))
    assert not np.array_equal(sticky([b"anna"], [0]), sticky([b"anna\0"], [0])), "padding is not part of a key"


def test_sticky_numbers_are_uniform_and_independent() -> None:
    keys = [str(number).encode() for number in range(40_000)]
    uniforms = StickyStream(KEY, "a", keys, np.zeros(len(keys), dtype=np.int64)).uniforms(5, len(keys))
    for row in uniforms:
        assert stats.kstest(row, "uniform").pvalue > 1e-4
    correlation = np.corrcoef(uniforms) - np.eye(5)
    assert np.abs(correlation).max() < 5 / np.sqrt(len(keys))


def test_a_stream_does_not_show_its_secret() -> None:
    stream = StickyStream(KEY, "a", [b"anna"], np.array([0]))
    assert "anna" not in repr(stream)
    assert KEY.hex() not in repr(stream)
    assert "hidden" in repr(SystemStream())


def test_key_files(tmp_path) -> None:
    path = tmp_path / "secret.key"
    new_key(path)
    assert len(read_key(path)) == 32
    assert path.stat().st_mode & 0o077 == 0
    with pytest.raises(InvalidInput, match="already"):
        new_key(path)
    path.chmod(0o644)
    with pytest.raises(InvalidInput, match="other users"):
        read_key(path)
    with pytest.raises(InvalidInput, match="no such key"):
        read_key(tmp_path / "other")
    (tmp_path / "bad").write_text("not hexadecimal")
    with pytest.raises(InvalidInput, match="not a key file"):
        read_key(tmp_path / "bad")
    (tmp_path / "short").write_text("abcd")
    with pytest.raises(InvalidInput, match="32 bytes"):
        read_key(tmp_path / "short")


def test_sticky_numbers_stay_as_they_are_from_version_to_version() -> None:
    keys, codes = [b"anna", b"a much longer record key than one block"], np.array([3, 70_000])
    uniforms = StickyStream(KEY, "ill", keys, codes).uniforms(600, 2)
    assert uniforms[0].tolist() == [0.14782681301522527, 0.3310516924712188]
    assert uniforms[599].tolist() == [0.20210256338507793, 0.06594091776352984]


def test_lanes_are_independent_of_each_other_and_of_the_company() -> None:
    keys = [b"%d" % number for number in range(20_000)]
    stream = StickyStream(KEY, "a", keys, np.zeros(len(keys), dtype=np.int64))
    rows = np.arange(len(keys))
    lanes = [stream, stream.lane(b"x", rows), stream.lane(b"y", rows), stream.lane(b"x", rows, rows * 0 + 7)]
    uniforms = np.concatenate([lane.uniforms(2, len(keys)) for lane in lanes])
    for row in uniforms:
        assert stats.kstest(row, "uniform").pvalue > 1e-4
    assert np.abs(np.corrcoef(uniforms) - np.eye(8)).max() < 5 / np.sqrt(len(keys))
    some, numbers = np.array([5, 5, 2]), np.array([7, 0, 7])
    mine = stream.lane(b"x", some, numbers).uniforms(2, 3)
    assert np.array_equal(mine[:, [0, 2]], uniforms[6:, [5, 2]])
    assert np.array_equal(mine[:, 1], uniforms[2:4, 5])
    assert np.array_equal(stream.take(some).uniforms(2, 3), uniforms[:2, some])


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_key_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def full(_: int) -> None:
        raise error

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(type(error)):
        new_key(tmp_path / "secret.key")
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    new_key(tmp_path / "secret.key")
    assert len(read_key(tmp_path / "secret.key")) == 32


def test_a_new_key_never_follows_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidInput, match="already"):
        new_key(tmp_path / "link")
    assert not (tmp_path / "elsewhere").exists()
    assert (tmp_path / "link").is_symlink()


KEY_OF_RECORDS = StreamKey.seeded("records")


def test_numbers_of_a_record_depend_on_its_row_only() -> None:
    whole = KEY_OF_RECORDS.records(np.arange(1_000)).uniforms(5, 1_000)
    order = np.random.default_rng(1).permutation(1_000)
    assert np.array_equal(KEY_OF_RECORDS.records(order).uniforms(5, 1_000), whole[:, order]), "in any order"
    assert np.array_equal(KEY_OF_RECORDS.records(np.arange(400, 1_000)).uniforms(5, 600), whole[:, 400:]), (
        "from any row"
    )
    assert np.array_equal(KEY_OF_RECORDS.records(np.arange(1_000)).take(order[:7]).uniforms(3, 7), whole[:3, order[:7]])
    assert np.array_equal(KEY_OF_RECORDS.records(np.arange(1_000)).uniforms(5, 1_000), whole), "however often"


def test_words_of_records_are_blocks_of_aes() -> None:
    # Computed apart from our code: AES-256 of (lane, pair, row), each block two little-endian words.
    key, row, lane = bytes(range(32)), 2**40 + 3, 6
    encryptor = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305
    block = encryptor.update(lane.to_bytes(4, "big") + (1).to_bytes(4, "big") + row.to_bytes(8, "big"))
    for rows in ([row], [row, row + 1], [row, 5]):
        words = RecordStream(key, np.array(rows), lane).words(4)
        assert words[2:, 0].tolist() == [int.from_bytes(block[:8], "little"), int.from_bytes(block[8:], "little")]


def test_rows_lanes_and_draws_of_records_are_independent() -> None:
    rows = np.arange(20_000)
    numbers = np.concatenate([KEY_OF_RECORDS.records(rows).lane(lane).uniforms(3, len(rows)) for lane in range(3)])
    assert np.abs(np.corrcoef(numbers)[np.triu_indices(9, 1)]).max() < 0.03
    assert np.abs(np.corrcoef(numbers[0, 1:], numbers[0, :-1])[0, 1]) < 0.03
    assert abs(numbers.mean() - 0.5) < 0.005
    assert len(np.unique(numbers)) == numbers.size


def test_a_stream_of_records_serves_its_own_records() -> None:
    with pytest.raises(ValueError, match="exactly its own"):
        KEY_OF_RECORDS.records(np.arange(4)).uniforms(1, 3)
    assert KEY_OF_RECORDS.records(np.arange(0)).uniforms(3, 0).shape == (3, 0)
    assert "hidden" in repr(KEY_OF_RECORDS.records(np.arange(2)))
