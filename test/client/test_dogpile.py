"""The real dogpile.cache: it takes a lock of its own and looks again under it, so its leader would wait for itself."""

from clients import begin_together, start
from gear import herd_counters, patient, with_config
from scenarios import nobody_stuck

OWN_LOCK = 'gate "k:*" { grace = 0s  own_lock = yes }'
FORGOTTEN = 'gate "k:*" { grace = 0s }'


def two_processes(daemon, **options):
    """Two processes with names of their own, so that each is a peer, ask for a cold key at the same instant."""
    one = start("dogpile_cache", daemon, askers=10, keys="k:1", load_ms=300, client_name="one", **options)
    two = start("dogpile_cache", daemon, askers=10, keys="k:1", load_ms=300, client_name="two", **options)
    begin_together(one, two)
    return one.result(), two.result()


@with_config(OWN_LOCK)
def test_own_lock__the_leader_looks_again_and_is_not_held(daemon):
    """own_lock = yes: the leading process gets nil again under its own lock, the other waits: one load between them."""
    told = two_processes(daemon)
    for each in told:
        nobody_stuck(each)
        assert each.max_ms < patient(300 + 500), each
    assert sum(each.loads for each in told) == 1, told


@with_config(OWN_LOCK)
def test_own_lock__four_expiries_are_four_loads(daemon):
    """At a steady rate: dogpile counts its times in seconds."""
    one = start("dogpile_cache", daemon, askers=4, keys="k:1", load_ms=100, ttl_ms=1000, rounds=0, every_ms=40,
                for_ms=5000, client_name="one")
    two = start("dogpile_cache", daemon, askers=4, keys="k:1", load_ms=100, ttl_ms=1000, rounds=0, every_ms=40,
                for_ms=5000, client_name="two")
    begin_together(one, two)
    told = one.result(), two.result()
    for each in told:
        nobody_stuck(each)
    begins = sorted(begin for each in told for begin, _ in each.spans_of())
    assert len(begins) >= 4, told
    assert all(later - begin > 900 for begin, later in zip(begins, begins[1:])), begins


@with_config(FORGOTTEN)
def test_without_own_lock__the_leader_waits_for_itself_and_is_released(daemon):
    """The same without the option: held by its own lease, released after blocked_after, nobody stuck."""
    told = two_processes(daemon)
    for each in told:
        nobody_stuck(each)
    assert sum(each.loads for each in told) <= 2, told
    assert herd_counters(daemon)["released_blocked"] >= 1
