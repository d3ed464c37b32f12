#!/usr/bin/python3
"""redis-py's asyncio client with its default pool: every task a connection of its own while it waits."""

import asyncio
import os
import signal
import time

import redis.asyncio

from cache_aside import Tally, arguments


async def load(tally, client, key):
    options = tally.options
    number, span = tally.begin_load(key)
    seconds = tally.load_ms() / 1000
    await asyncio.sleep(seconds / 2)
    if options.die_in_load:
        os.kill(os.getpid(), signal.SIGKILL)
    if options.load_reads:
        await client.get(options.load_reads)
    await asyncio.sleep(seconds / 2)
    tally.end_load(span)
    return None if options.no_set else tally.value(key, number)


async def ask(tally, client, key):
    begin = time.monotonic()
    loaded = False
    tally.asks += 1
    try:
        value = await client.get(key)
        if value is None:
            loaded = True
            value = await load(tally, client, key)
            if value is not None:
                await client.set(key, value, px=tally.options.ttl_ms)
        tally.answered(key, value, (time.monotonic() - begin) * 1000, loaded)
    except Exception as fault:
        tally.failed(fault)


async def asker(tally, client, keys, number):
    options = tally.options
    if options.every_ms:
        await asyncio.sleep(options.every_ms / 1000 * number / options.askers)
    done = 0
    while not tally.over() and (not options.rounds or done < options.rounds):
        await ask(tally, client, keys[(number + done) % len(keys)])
        done += 1
        if options.every_ms:
            await asyncio.sleep(options.every_ms / 1000)


async def ask_other(tally, client):
    key = tally.options.other
    while key:
        begin = time.monotonic()
        tally.other(key, await client.get(key), (time.monotonic() - begin) * 1000)
        await asyncio.sleep(0.02)


async def main():
    options = arguments(__doc__).parse_args()
    tally = Tally(options, "redis_py_asyncio")
    client = redis.asyncio.Redis.from_url(options.url, socket_timeout=options.timeout_ms / 1000 or None)
    await client.ping()
    tally.start()
    other = asyncio.create_task(ask_other(tally, client))
    tasks = [asyncio.create_task(asker(tally, client, options.keys.split(","), number))
             for number in range(options.askers)]
    await asyncio.wait(tasks, timeout=options.limit_ms / 1000)
    other.cancel()
    tally.tell()


if __name__ == "__main__":
    asyncio.run(main())
