"""doc/herd.md says of every field of HERD's maps what it means: neither side has one that the other lacks."""

import re

from gear import *

GATES = """
gate "k:*" { grace = 0 }
"""


def documented(heading):
    """The names in the first column of the tables under one heading."""
    with open(f"{ROOT}/doc/herd.md", encoding="utf-8") as file:
        text = file.read()
    part = re.search(rf"^### {heading}\b.*?(?=^##|\Z)", text, re.M | re.S).group(0)
    rows = [line.split("|")[1] for line in part.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def fields(reply):
    return {name.decode() for name in reply}


@with_config(GATES)
def test_every_field_is_documented(daemon):
    client, other = daemon.connect(protocol=3), daemon.connect(protocol=3)
    assert client.ask("GET", "k:1") is None
    assert fields(other.ask("HERD", "EXPLAIN", "k:1")) == documented("HERD EXPLAIN")
    assert fields(other.ask("HERD", "GATES")[0]) == documented("HERD GATES")
    assert fields(other.ask("HERD", "FLIGHTS")[0]) == documented("HERD FLIGHTS")
    assert client.ask("SET", "k:1", "v") == "OK"
    assert fields(other.ask("HERD", "RECENT")[0]) == documented("HERD RECENT")


@with_config(GATES)
def test_every_subcommand_is_documented(daemon):
    with open(f"{ROOT}/doc/herd.md", encoding="utf-8") as file:
        text = file.read()
    for line in daemon.connect().ask("HERD", "HELP"):
        word = re.match(r"([A-Z]+)\b", str(line))
        if word and word.group(1) != "HERD":
            assert f"HERD {word.group(1)}" in text, line
