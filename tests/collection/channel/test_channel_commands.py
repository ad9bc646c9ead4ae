"""The commands for relays, gateways, invitations and issuers."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from polyseme.cli.channel import gateway, issuer, relay
from polyseme.collection.credentials import code_hash, read_hashes, read_issuer_key
from polyseme.collection.gateway import read_gateway
from polyseme.device.ohttp import read_configurations
from polyseme.device.tokens import from_text
from polyseme.kernel.errors import ChannelError

CAMPAIGN = "A" * 43
SRC = Path(__file__).resolve().parents[3] / "src"


def run(command: click.Command, *arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def test_invitations(tmp_path: Path) -> None:
    codes, hashes = tmp_path / "codes.txt", tmp_path / "hashes.txt"
    assert run(issuer, "invite", "--campaign", CAMPAIGN, 25, "--out", codes, "--hashes", hashes).exit_code == 0
    assert stat.S_IMODE(codes.stat().st_mode) == 0o600
    made = codes.read_text().split()
    assert len(made) == 25
    assert set(read_hashes(hashes)) == {code_hash(CAMPAIGN, code) for code in made}
    again = run(issuer, "invite", "--campaign", CAMPAIGN, 25, "--out", codes, "--hashes", tmp_path / "other.txt")
    assert isinstance(again.exception, ChannelError)
    assert codes.read_text().split() == made


def test_the_keys_of_a_gateway(tmp_path: Path) -> None:
    file = tmp_path / "gateway.json"
    assert run(gateway, "new", file).exit_code == 0
    assert run(gateway, "add", file).exit_code == 0
    shown = run(gateway, "show", file)
    assert read_configurations(from_text(shown.stdout.strip())) == (read_gateway(file).keys[0].configuration(),)
    assert run(gateway, "drop", file, 1).exit_code == 0
    assert [key.number for key in read_gateway(file).keys] == [2]


def test_the_key_of_an_issuer(tmp_path: Path) -> None:
    file = tmp_path / "issuer.pem"
    shown = run(issuer, "key", file)
    assert from_text(shown.stdout.strip()) == read_issuer_key(file).public()


def test_a_relay_only_hands_on_to_encrypted_places() -> None:
    result = run(relay, "--gateway", "http://collect.example.org/v1/gateway")
    assert isinstance(result.exception, ChannelError)


@pytest.mark.parametrize("command", ["relay", "issuer"])
def test_a_server_starts_and_stops(command: str, tmp_path: Path) -> None:
    run(
        issuer,
        "invite",
        "--campaign",
        CAMPAIGN,
        3,
        "--out",
        tmp_path / "codes.txt",
        "--hashes",
        tmp_path / "hashes.txt",
    )
    run(issuer, "key", tmp_path / "issuer.pem")
    files = ["--key", "issuer.pem", "--invitations", "hashes.txt", "--store", "issued.db"]
    arguments = {
        "relay": ["--gateway", "http://127.0.0.1:9/v1/gateway", "--port", "0"],
        "issuer": ["serve", "--campaign", CAMPAIGN, *files, "--port", "0"],
    }[command]
    code = f"import sys; from polyseme.cli.channel import {command}; {command}(sys.argv[1:])"
    started = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], cwd=tmp_path, env={"PYTHONPATH": str(SRC)}, stderr=subprocess.PIPE
    )
    assert started.stderr is not None
    line = started.stderr.readline()
    if command == "issuer":
        assert line == b"3 invited, 0 of them have a token.\n"
        line = started.stderr.readline()
    assert b"at http://127.0.0.1:" in line
    started.terminate()
    started.communicate(timeout=10)


def test_a_device_needs_no_arrays_for_any_of_it() -> None:
    code = (
        "import sys\n"
        "import polyseme.device.ohttp, polyseme.device.ohttp, polyseme.device.tokens\n"
        "heavy = {'numpy', 'polars', 'pyarrow', 'scipy'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(SRC)}, capture_output=True, check=False
    )
    assert result.returncode == 0, result.stderr
