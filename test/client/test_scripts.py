"""phpredis (a process for each asker), a connection for each command, and redis-cli in a shell script's manner."""

from scenarios import Client, play

SHORT = ["cold_herd", "expiries_without_grace", "expiries_with_grace"]

play(globals(), Client("phpredis", askers=20, every_ms=60, closes=1), always=SHORT + ["leader_killed"])
# The leader's connection is closed behind its nil. The first flight, of which no length is known, is handed over once;
# from then on a leader that hangs up is waited for as long as a fill usually takes.
play(globals(), Client("connect_per_command", askers=20, every_ms=60, cold_loads=2), always=SHORT,
     never=["invalidated_in_mid_load"])
play(globals(), Client("redis_cli", askers=5, every_ms=150, cold_loads=2, usual_ms=500),
     always=["cold_herd"],
     never=["invalidated_in_mid_load"])
