'use strict';
// The plain cache-aside program for a Node.js client: see ../cache_aside.py for the parameters and the JSON object. A
// program gives `run` a function that connects and returns { get(key), set(key, value, ttlMs) }, promises of both.

const DEFAULTS = {
  url: '', keys: 'k', askers: 50, rounds: 1, everyMs: 0, forMs: 0, limitMs: 30000, loadMs: 50,
  slowAfterMs: 0, slowLoadMs: 0, ttlMs: 10000, noSet: false, dieInLoad: false, loadReads: '', other: '', timeoutMs: 0,
  pool: 0,
  autoPipelining: false, waitForStart: false,
};

function readArguments(words) {
  const options = { ...DEFAULTS };
  for (let i = 0; i < words.length; i++) {
    const name = words[i].replace(/^--/, '').replace(/-(.)/g, (_, letter) => letter.toUpperCase());
    if (!(name in DEFAULTS)) throw new Error(`no such parameter: ${words[i]}`);
    if (typeof DEFAULTS[name] === 'boolean') options[name] = true;
    else if (typeof DEFAULTS[name] === 'number') options[name] = Number(words[++i]);
    else options[name] = words[++i];
  }
  return options;
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));

function spread(waits) {
  const sorted = [...waits].sort((a, b) => a - b);
  const round = (x) => Math.round(x * 100) / 100;
  return sorted.length ? { p50_ms: round(sorted[sorted.length >> 1]), max_ms: round(sorted[sorted.length - 1]) }
    : { p50_ms: 0, max_ms: 0 };
}

class Program {
  constructor(name, options, cache) {
    Object.assign(this, { name, options, cache, asks: 0, ok: 0, errors: 0, order: 0, nils: 0, words: {}, loadsOf: {} });
    Object.assign(this, { spans: [], waits: [], otherAsks: 0, otherWaits: [], otherWrong: 0 });
    this.begin = performance.now();
  }

  elapsed() {
    return performance.now() - this.begin;
  }

  over() {
    return this.options.forMs > 0 && this.elapsed() > this.options.forMs;
  }

  failed(fault) {
    this.errors++;
    const said = String(fault && fault.message);
    const word = said.startsWith('HERD') ? said.split(' ')[0] : said.slice(0, 40);
    this.words[word] = (this.words[word] || 0) + 1;
  }

  async load(key) {
    const { options } = this;
    const number = this.spans.length + 1;
    this.loadsOf[key] = (this.loadsOf[key] || 0) + 1;
    const span = [key, Date.now(), null];
    this.spans.push(span);
    const slow = options.slowAfterMs > 0 && this.elapsed() > options.slowAfterMs;
    const ms = slow ? options.slowLoadMs : options.loadMs;
    await pause(ms / 2);
    if (options.dieInLoad) process.kill(process.pid, 'SIGKILL');
    if (options.loadReads) await this.cache.get(options.loadReads);
    await pause(ms / 2);
    span[2] = Date.now();
    return options.noSet ? null : `${key}|${number}|${process.pid}`;
  }

  async ask(key) {
    const begin = performance.now();
    let loaded = false;
    this.asks++;
    try {
      let value = await this.cache.get(key);
      if (value === null) {
        loaded = true;
        value = await this.load(key);
        if (value !== null) await this.cache.set(key, value, this.options.ttlMs);
      }
      this.ok++;
      if (value === null) this.nils++;
      else if (String(value).split('|')[0] !== key) this.order++;
      if (!loaded) this.waits.push(performance.now() - begin);
    } catch (fault) {
      this.failed(fault);
    }
  }

  async asker(keys, number) {
    const { options } = this;
    if (options.everyMs) await pause((options.everyMs * number) / options.askers);
    for (let done = 0; !this.over() && (!options.rounds || done < options.rounds); done++) {
      await this.ask(keys[(number + done) % keys.length]);
      if (options.everyMs) await pause(options.everyMs);
    }
  }

  // Asked every 20 ms whether or not the last one was answered: on one connection that shows a wait behind others.
  askOther() {
    const begin = performance.now();
    const key = this.options.other;
    this.otherAsks++;
    this.cache.get(key).then((value) => {
      this.otherWaits.push(performance.now() - begin);
      if (value !== null && String(value).split('|')[0] !== key) this.otherWrong++;
    }, (fault) => {
      this.asks++;
      this.failed(fault);
    });
  }

  tell() {
    console.log(JSON.stringify({
      client: this.name, asks: this.asks, ok: this.ok, errors: this.errors, words: this.words,
      stuck: this.asks - this.ok - this.errors, nils: this.nils, loads: this.spans.length, loads_of: this.loadsOf,
      spans: this.spans, ...spread(this.waits), order: this.order,
      other: { asks: this.otherWaits.length, ...spread(this.otherWaits), wrong: this.otherWrong },
    }));
    process.exit(0);
  }
}

async function run(name, connect) {
  const options = readArguments(process.argv.slice(2));
  const program = new Program(name, options, await connect(options));
  if (options.waitForStart) {
    console.log('ready');
    const line = await new Promise((resolve) => process.stdin.once('data', resolve));
    await pause(Number(line) - Date.now());
  }
  program.begin = performance.now();
  setTimeout(() => program.tell(), options.limitMs);
  if (options.other) setInterval(() => program.askOther(), 20);
  const keys = options.keys.split(',');
  await Promise.all(Array.from({ length: options.askers }, (_, number) => program.asker(keys, number)));
  program.tell();
}

module.exports = { run };
