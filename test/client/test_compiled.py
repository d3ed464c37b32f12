"""hiredis' asynchronous interface (C, one connection for all) and redigo (Go, a pool)."""

from clients import start
from gear import with_config
from scenarios import GRACELESS, Client, nobody_stuck, play, prepare

SHORT = ["cold_herd", "expiries_without_grace", "expiries_with_grace", "leader_killed"]

play(globals(), Client("hiredis_async"), always=SHORT)
play(globals(), Client("redigo", askers=100, every_ms=100), always=SHORT)


@with_config(GRACELESS)
def test_hiredis_async__many_cold_keys_on_one_connection_each_load_once(daemon):
    """Asks for eight keys interleave on one connection; behind a held reply nothing leads, and still each key is loaded
    once and every answer is that of its key."""
    prepare(daemon)
    keys = ",".join(f"k:{number}" for number in range(8))
    told = start("hiredis_async", daemon, askers=80, keys=keys, load_ms=200, other="other").result()
    nobody_stuck(told)
    assert told.loads_of == {f"k:{number}": 1 for number in range(8)}, told


@with_config(GRACELESS)
def test_redigo__many_cold_keys_each_load_once_and_side_by_side(daemon):
    """With a connection for each asker the loads of different keys run at the same time."""
    keys = ",".join(f"k:{number}" for number in range(8))
    told = start("redigo", daemon, askers=80, keys=keys, load_ms=300).result()
    nobody_stuck(told)
    assert told.loads_of == {f"k:{number}": 1 for number in range(8)}, told
    assert told.loads_at_once() == 8, told
