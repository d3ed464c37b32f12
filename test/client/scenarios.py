"""The scenes that are played with every client, and what must be seen. `play(globals(), CLIENT, ...)` in a test file
makes a test of each scene for that client.

Figures are those of the design: one load per cold key and per expiry; where the client's own set-up blocks its leader,
one release after `blocked_after` and plain behaviour on cold keys from then on; nobody stuck, nothing out of step.
"""

from clients import begin_together, start
from gear import Connection, eventually, herd_counters, patient

GRACELESS = 'gate "k:*" { grace = 0s }'
GRACE = 'gate "k:*" { grace = 10s }'
QUICK_LEASE = 'gate "k:*" { grace = 0s  lease_first = 300ms  unfilled_after = 600ms  wait = 4s }'


class Client:
    """A client's name, its options, and by what its set-up differs from the ideal.

    askers, every_ms   how many ask, and how often, where it is asked steadily
    cold_loads         loads of a cold herd (1; 2 for a connection per command; None where cold keys are not protected)
    usual_ms           more than what a command usually takes in this client; the slower, the longer a scene lasts
    closes             1 where an asker hangs up when it is done, which hands the first flight over once
    """

    def __init__(self, name, askers=40, every_ms=20, cold_loads=1, usual_ms=60, closes=0):
        self.name, self.askers, self.every_ms = name, askers, every_ms
        self.cold_loads, self.usual_ms, self.closes = cold_loads, usual_ms, closes

    def start(self, server, **options):
        return start(self.name, server, **{"askers": self.askers, **options})


def nobody_stuck(told):
    """What holds in every scene: each ask had an end, none failed, and no answer was another key's."""
    assert told.stuck == 0, told
    assert told.errors == 0, told
    assert told.order == 0 and told.other["wrong"] == 0, told
    assert told.asks == told.ok > 0, told


def prepare(daemon):
    """An unrelated key for the programs to ask beside."""
    assert daemon.ask("SET", "other", "other|0|0") == "OK"


def cold_herd(client, daemon):
    """Everybody asks for a key that nobody has, in the same instant: one loads, the others get that value."""
    prepare(daemon)
    told = client.start(daemon, keys="k:1", load_ms=300, other="other").result()
    nobody_stuck(told)
    if client.cold_loads is None:
        return
    assert told.loads == client.cold_loads, told
    assert told.max_ms < patient(300 * client.cold_loads + 300 + 2 * client.usual_ms), told
    counters = herd_counters(daemon)
    assert counters["led"] == client.cold_loads or client.cold_loads == 2, counters


def loads_follow_expiries(client, told, ttl_ms, load_ms):
    """One load per expiry: but for the first flight none overlap, and each begins a whole life after the last."""
    spans = told.spans_of()
    if client.cold_loads is None:
        first_end = min(end for _, end in spans)
        spans = [span for span in spans if span[0] > first_end + ttl_ms * 0.9]
    elif client.cold_loads > 1:
        spans = spans[client.cold_loads - 1:]
    assert len(spans) >= 9, told
    early = [round(begin - spans[0][0]) for (_, end), (begin, _) in zip(spans, spans[1:])
             if begin - end < ttl_ms * 0.9]
    # A leader that hangs up behind its nil is waited for 1.25 x the slowest recent fill: a busy machine may be slower.
    assert len(early) <= (2 if client.cold_loads == 2 else 0), f"loads in the life of a value, at {early} ms; {told}"


def expiries_without_grace(client, daemon):
    """A steady rate over nine expiries, no stale value to give: each expiry is one load, the others wait for it."""
    prepare(daemon)
    told = client.start(daemon, keys="k:1", rounds=0, every_ms=client.every_ms,
                        for_ms=3700 + 9 * client.usual_ms, load_ms=100, ttl_ms=250, other="other").result()
    nobody_stuck(told)
    if client.cold_loads is not None:
        loads_follow_expiries(client, told, 250, 100)


def expiries_with_grace(client, daemon):
    """The same with a stale value to give: each expiry is one load, and nobody waits, whatever the client."""
    prepare(daemon)
    told = client.start(daemon, keys="k:1", rounds=0, every_ms=client.every_ms,
                        for_ms=4000 + 9 * client.usual_ms, load_ms=200, ttl_ms=200, other="other").result()
    nobody_stuck(told)
    loads_follow_expiries(client, told, 200, 200)
    assert told.p50_ms < patient(client.usual_ms), told


def leader_killed(client, daemon):
    """The one who loads is killed in the middle of it: one of those who wait takes over, at once."""
    dying = client.start(daemon, keys="k:1", askers=1, load_ms=800, die_in_load=True)
    others = client.start(daemon, keys="k:1", load_ms=200)
    begin_together(dying, (others, 150))
    dying.killed()
    told = others.result()
    nobody_stuck(told)
    if client.cold_loads == 1:
        assert told.loads == 1, told
        assert told.max_ms < patient(250 + 200 + 500), told


def never_set(client, daemon):
    """The row does not exist and the program stores nothing. Two leases lapse (0.3 s, then 0.6 s), each with one load;
    then the key is known as never filled and everybody is answered. Who comes after that waits for nothing."""
    told = client.start(daemon, keys="k:1", load_ms=20, no_set=True).result()
    nobody_stuck(told)
    assert told.nils == told.asks == told.loads, told
    begins = [begin - told.spans_of()[0][0] for begin, _ in told.spans_of()]
    assert begins[-1] < patient(2500), begins
    if client.cold_loads == 1:
        assert sum(begin < 250 for begin in begins) <= 1 + client.closes, begins
        assert sum(begin < 800 for begin in begins) <= 2 + client.closes, begins
    again = client.start(daemon, keys="k:1", load_ms=20, no_set=True).result()
    nobody_stuck(again)
    assert again.spans_of()[-1][0] - again.spans_of()[0][0] < patient(1200), again


def invalidated_in_mid_load(client, daemon):
    """DEL while a slow load runs; a quicker one follows. The slow one's SET, of what it read before the DEL, must not
    stay: it is dropped, or lives no longer than a usual fill."""
    slow = client.start(daemon, keys="k:1", askers=1, load_ms=900)
    quick = client.start(daemon, keys="k:1", askers=4, load_ms=100)
    begin_together(slow, (quick, 300))
    slow.wait_until(200)
    assert daemon.ask("DEL", "k:1") in (0, 1)
    told, old = quick.result(), slow.result()
    nobody_stuck(told)
    nobody_stuck(old)
    if client.cold_loads == 1:
        assert told.loads == 1, told
    slow_pid = str(slow.process.pid).encode()
    with Connection(daemon.port) as reader:
        def settled():
            """MULTI, so that the look itself is never held and leads nothing."""
            value = reader.pipeline(("MULTI",), ("GET", "k:1"), ("EXEC",))[2][0]
            return value is None or value.split(b"|")[2] != slow_pid
        eventually(settled, 1.5)


def slow_down(client, daemon):
    """The load becomes forty times slower. At no time more than 1 + log2(40) loads run for the key: a lease that lapsed
    is doubled. (That the loads of two leaders go on side by side is right: each SET lives for 250 ms, and each expiry
    is one load.) It takes no more loads than there are values, but for those."""
    told = client.start(daemon, keys="k:1", rounds=0, every_ms=client.every_ms, for_ms=9000, load_ms=50, ttl_ms=250,
                        slow_after_ms=1500, slow_load_ms=2000).result()
    nobody_stuck(told)
    if client.cold_loads is None:
        return
    assert told.loads_at_once() <= 6, told
    slow = [span for span in told.spans_of() if span[1] - span[0] > 1500]
    assert len(slow) >= 4, told
    assert told.loads < 1500 / 250 + 6 * 9000 / 2250, told


SCENES = [(cold_herd, GRACELESS), (expiries_without_grace, GRACELESS), (expiries_with_grace, GRACE),
          (leader_killed, GRACELESS), (never_set, QUICK_LEASE), (invalidated_in_mid_load, GRACELESS),
          (slow_down, GRACELESS)]


def test_of(scene, client):
    def test(daemon):
        scene(client, daemon)
    return test


def play(namespace, client, always, never=()):
    """Puts a test of each scene for this client into the module: those named in `always` are in `make check`, the
    others in `make check-long`, those in `never` do not apply to it."""
    for scene, config in SCENES:
        if scene.__name__ in never:
            continue

        test = test_of(scene, client)
        test.__name__ = f"test_{client.name}__{scene.__name__}"
        test.__doc__ = scene.__doc__
        test.__module__ = namespace["__name__"]
        test.config = config
        test.long = scene.__name__ not in always
        namespace[test.__name__] = test
