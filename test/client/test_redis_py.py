"""redis-py: its default pool, a bounded pool, asyncio, and pipeline(), which is MULTI."""

from clients import start
from gear import herd_counters, patient, with_config
from scenarios import GRACE, GRACELESS, Client, loads_follow_expiries, nobody_stuck, play, prepare

SHORT = ["cold_herd", "expiries_without_grace", "expiries_with_grace", "leader_killed"]

play(globals(), Client("redis_py_pool", askers=200, every_ms=200),
     always=SHORT + ["never_set", "invalidated_in_mid_load"])
play(globals(), Client("redis_py_asyncio"), always=SHORT)
# In MULTI an absent key is nil for everybody, without a lease; only over a stale value there is one who leads.
play(globals(), Client("redis_py_pipeline", cold_loads=None), always=["cold_herd", "expiries_with_grace"],
     never=["expiries_without_grace", "leader_killed", "never_set", "invalidated_in_mid_load", "slow_down"])


@with_config(GRACELESS)
def test_bounded_pool__cold_herd_is_released_once_and_the_peer_remembered(daemon):
    """64 threads share 8 connections. The waiting GETs take all of them, and the leader finds none for its SET: after
    blocked_after (1 s) all are answered nil at once, and from then on cold keys are as without a gate."""
    prepare(daemon)
    told = start("redis_py_blocking", daemon, askers=64, pool=8, keys="k:1", load_ms=300).result()
    nobody_stuck(told)
    spans = told.spans_of()
    assert all(end < spans[0][0] + patient(2400) for _, end in spans), told
    assert herd_counters(daemon)["released_blocked"] >= 1
    again = start("redis_py_blocking", daemon, askers=64, pool=8, keys="k:2", load_ms=300).result()
    nobody_stuck(again)
    assert all(end - begin < patient(800) for begin, end in again.spans_of()), "held again: the peer was forgotten"


@with_config(GRACE)
def test_bounded_pool__with_a_stale_value_nobody_is_held(daemon):
    """The cure: with grace a bounded pool sees one load per expiry and no waiting."""
    daemon.ask("SET", "k:1", "k:1|0|0", "PX", "1")
    told = start("redis_py_blocking", daemon, askers=64, pool=8, keys="k:1", rounds=0, every_ms=64, for_ms=4200,
                 load_ms=200, ttl_ms=200).result()
    nobody_stuck(told)
    loads_follow_expiries(Client("redis_py_blocking"), told, 200, 200)
    assert herd_counters(daemon)["released_blocked"] == 0


@with_config(GRACELESS)
def test_pool__a_time_out_shorter_than_the_load_fails_only_those_who_wait(daemon):
    """Waiters give up after 0.3 s and ask again; the leader's load goes on. One of them may have the connection that
    the leader gave back to the pool, and closes it: that hands the first flight over once, and no more than once."""
    told = start("redis_py_pool", daemon, askers=20, keys="k:1", rounds=0, every_ms=100, for_ms=2500, load_ms=900,
                 timeout_ms=300).result()
    assert told.stuck == 0 and told.order == 0, told
    assert 1 <= told.loads <= 2, told
    assert set(told.words) <= {"TimeoutError"}, told
    assert told.ok >= 20, told
