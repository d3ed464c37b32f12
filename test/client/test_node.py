"""ioredis and node-redis: all callers of a process share one connection, so replies wait behind a held one."""

from clients import begin_together, start
from gear import herd_counters, patient, with_config
from scenarios import GRACE, GRACELESS, Client, loads_follow_expiries, nobody_stuck, play, prepare

SHORT = ["cold_herd", "expiries_without_grace", "expiries_with_grace", "leader_killed"]

play(globals(), Client("ioredis"), always=SHORT + ["never_set", "invalidated_in_mid_load", "slow_down"])
play(globals(), Client("node_redis"), always=SHORT)


def released_once(daemon, name, **options):
    """The client's own set-up blocks its leader. One release after blocked_after, and then as without a gate."""
    prepare(daemon)
    told = start(name, daemon, askers=30, keys="k:1", load_ms=200, other="other", **options).result()
    nobody_stuck(told)
    first = told.spans_of()[0]
    assert all(end < first[0] + patient(2400) for _, end in told.spans_of()), told
    assert herd_counters(daemon)["released_blocked"] >= 1
    return told


def remembered(daemon, name, **options):
    """Another cold key from a connection that lives on is not held: played as a second key of the same program."""
    told = start(name, daemon, askers=30, keys="k:1,k:2,k:3", rounds=3, every_ms=1500, load_ms=200, **options).result()
    nobody_stuck(told)
    late = [span for span in told.spans_of() if span[0] > told.spans_of()[0][0] + 1400]
    assert all(end - begin < patient(900) for begin, end in late), f"held again: {late}"


@with_config(GRACELESS)
def test_ioredis__a_loader_that_reads_through_the_same_connection_is_released(daemon):
    """The leader's own read waits behind the held replies of its connection, for ever but for the release."""
    released_once(daemon, "ioredis", load_reads="other")
    remembered(daemon, "ioredis", load_reads="other")


@with_config(GRACELESS)
def test_node_redis__a_loader_that_reads_through_the_same_connection_is_released(daemon):
    released_once(daemon, "node_redis", load_reads="other")


@with_config(GRACELESS)
def test_ioredis__auto_pipelining_is_released(daemon):
    """A pipeline of ioredis is answered as a whole: the leader's nil reaches it only with the last reply."""
    released_once(daemon, "ioredis", auto_pipelining=True)


@with_config(GRACE)
def test_ioredis__with_grace_neither_reading_loaders_nor_auto_pipelining_wait(daemon):
    """The cure for both: over a stale value nobody is held."""
    daemon.ask("SET", "other", "other|0|0")
    daemon.ask("SET", "k:1", "k:1|0|0", "PX", "1")
    told = start("ioredis", daemon, askers=30, keys="k:1", rounds=0, every_ms=30, for_ms=4200, load_ms=200, ttl_ms=200,
                 load_reads="other", auto_pipelining=True, other="other").result()
    nobody_stuck(told)
    loads_follow_expiries(Client("ioredis"), told, 200, 200)
    assert told.other["p50_ms"] < patient(60), told
    assert herd_counters(daemon)["released_blocked"] == 0


@with_config(GRACELESS)
def test_ioredis__two_processes_crosswise(daemon):
    """Each leads the key that the other waits for (askers begin 50 ms apart, the first of each process with another
    key). A SET is executed though its reply is behind a held one, so both end with one load a key."""
    one = start("ioredis", daemon, askers=10, keys="k:1,k:2", rounds=2, every_ms=500, load_ms=300)
    two = start("ioredis", daemon, askers=10, keys="k:2,k:1", rounds=2, every_ms=500, load_ms=300)
    begin_together(one, two)
    told = one.result(), two.result()
    for each in told:
        nobody_stuck(each)
        assert each.loads == 1, told


@with_config(GRACELESS)
def test_ioredis__two_processes_crosswise_whose_loaders_read_are_released(daemon):
    """The same where each loader reads through its own connection, behind what that connection waits for."""
    prepare(daemon)
    same = {"askers": 10, "rounds": 2, "every_ms": 500, "load_ms": 300, "load_reads": "other"}
    one = start("ioredis", daemon, keys="k:1,k:2", **same)
    two = start("ioredis", daemon, keys="k:2,k:1", **same)
    begin_together(one, two)
    told = one.result(), two.result()
    for each in told:
        nobody_stuck(each)
    spans = sorted(span for each in told for span in each.spans_of())
    assert all(end < spans[0][0] + patient(4000) for _, end in spans), told
    assert herd_counters(daemon)["released_blocked"] >= 1


@with_config(GRACELESS)
def test_ioredis__a_time_out_shorter_than_the_load_fails_only_those_who_wait(daemon):
    """commandTimeout of 0.3 s over a load of 0.9 s: the callers give up, the connection stays in step, one load."""
    told = start("ioredis", daemon, askers=20, keys="k:1", rounds=0, every_ms=100, for_ms=2500, load_ms=900,
                 timeout_ms=300).result()
    assert told.stuck == 0 and told.order == 0, told
    assert told.loads == 1, told
    assert told.ok >= 20, told


@with_config(GRACELESS)
def test_node_redis__a_pool_smaller_than_its_askers_is_released(daemon):
    """node-redis' own pool of 4 connections, all of them held: the leader's SET finds none, so after blocked_after the
    others are let go, once. Until then there is one load."""
    told = start("node_redis", daemon, askers=40, pool=4, keys="k:1", load_ms=300).result()
    nobody_stuck(told)
    begins = sorted(begin for begin, _ in told.spans_of())
    assert begins[1] - begins[0] > 900, told
    assert herd_counters(daemon)["released_blocked"] > 0
    assert all(end < begins[0] + patient(2400) for _, end in told.spans_of()), told
