<?php
// phpredis as under php-fpm: every asker is a process of its own with a connection of its own. See cache_aside.py for
// the parameters and the JSON object. A child writes a line to a pipe for each thing that happens; the parent counts.

$options = ['url' => '', 'keys' => 'k', 'askers' => 50, 'rounds' => 1, 'every-ms' => 0, 'for-ms' => 0,
    'limit-ms' => 30000, 'wait-for-start' => false, 'start-at-ms' => 0, 'load-ms' => 50, 'slow-after-ms' => 0,
    'slow-load-ms' => 0,
    'ttl-ms' => 10000, 'no-set' => false, 'die-in-load' => false, 'load-reads' => '', 'other' => '',
    'timeout-ms' => 0, 'pool' => 0];
for ($i = 1; $i < $argc; $i++) {
    $name = substr($argv[$i], 2);
    if (!array_key_exists($name, $options)) {
        fwrite(STDERR, "no such parameter: $argv[$i]\n");
        exit(2);
    }
    $options[$name] = $options[$name] === false ? true : $argv[++$i];
}

function now_ms(): float
{
    return microtime(true) * 1000;
}

function pause(float $ms): void
{
    if ($ms > 0) {
        usleep((int)($ms * 1000));
    }
}

function connect(array $options): Redis
{
    $where = parse_url($options['url']);
    $redis = new Redis();
    $redis->connect($where['host'], $where['port'], 5, null, 0, $options['timeout-ms'] / 1000);
    return $redis;
}

/** One line to the parent; short enough to be written in one piece. */
function say(...$words): void
{
    global $pipe;
    fwrite($pipe, json_encode($words) . "\n");
}

function load(array $options, Redis $redis, string $key, float $begin): ?string
{
    $slow = $options['slow-after-ms'] > 0 && now_ms() - $begin > $options['slow-after-ms'];
    $ms = $slow ? $options['slow-load-ms'] : $options['load-ms'];
    $from = now_ms();
    say('load', $key, $from);
    pause($ms / 2);
    if ($options['die-in-load']) {
        posix_kill(posix_getppid(), SIGKILL);
        posix_kill(getmypid(), SIGKILL);
    }
    if ($options['load-reads'] !== '') {
        $redis->get($options['load-reads']);
    }
    pause($ms / 2);
    say('loaded', $key, $from, now_ms());
    return $options['no-set'] ? null : "$key|" . (int)$from . '|' . getmypid();
}

function ask(array $options, Redis $redis, string $key, float $begin): void
{
    $from = now_ms();
    $loaded = false;
    say('ask');
    try {
        $value = $redis->get($key);
        if ($value === false && $redis->getLastError() !== null) {
            $fault = $redis->getLastError();
            $redis->clearLastError();
            throw new RedisException($fault);
        }
        if ($value === false) {
            $loaded = true;
            $value = load($options, $redis, $key, $begin);
            if ($value !== null) {
                $redis->set($key, $value, ['px' => (int)$options['ttl-ms']]);
            }
        }
        $wrong = $value !== null && explode('|', $value)[0] !== $key;
        say('ok', $value === null, $wrong, $loaded, now_ms() - $from);
    } catch (RedisException $fault) {
        say('error', explode(' ', $fault->getMessage())[0]);
        $redis->close();
    }
}

function asker(array $options, int $number): void
{
    $redis = connect($options);
    $keys = explode(',', $options['keys']);
    $begin = max((float)$options['start-at-ms'], now_ms());
    pause($begin - now_ms());
    if ($options['every-ms']) {
        pause($options['every-ms'] * $number / $options['askers']);
    }
    for ($done = 0; !$options['for-ms'] || now_ms() - $begin < $options['for-ms']; $done++) {
        if ($options['rounds'] && $done >= $options['rounds']) {
            break;
        }
        ask($options, $redis, $keys[($number + $done) % count($keys)], $begin);
        pause((float)$options['every-ms']);
    }
    say('done');
}

function ask_other(array $options): void
{
    $redis = connect($options);
    pause($options['start-at-ms'] - now_ms());
    while (true) {
        $from = now_ms();
        $value = $redis->get($options['other']);
        say('other', is_string($value) && explode('|', $value)[0] !== $options['other'], now_ms() - $from);
        pause(20);
    }
}

function spread(array $waits): array
{
    sort($waits);
    $count = count($waits);
    return ['p50_ms' => $count ? round($waits[intdiv($count, 2)], 2) : 0,
        'max_ms' => $count ? round($waits[$count - 1], 2) : 0];
}

/** Runs the function in a child process; its pid. */
function child(callable $function): int
{
    $pid = pcntl_fork();
    if ($pid === 0) {
        $function();
        posix_kill(getmypid(), SIGKILL);
    }
    return $pid;
}

/** Counts what the children say, one line each, until none is asking any more or the time is over. */
function count_lines($reading, int $asking, float $end): array
{
    $result = ['client' => 'phpredis', 'asks' => 0, 'ok' => 0, 'errors' => 0, 'words' => [], 'nils' => 0, 'loads' => 0,
        'loads_of' => [], 'spans' => [], 'order' => 0, 'other' => ['wrong' => 0]];
    $waits = $other = [];
    stream_set_blocking($reading, false);
    $buffer = '';
    while ($asking > 0 && now_ms() < $end) {
        $read = [$reading];
        $none = null;
        stream_select($read, $none, $none, 0, 100000);
        $buffer .= stream_get_contents($reading);
        while (($at = strpos($buffer, "\n")) !== false) {
            $said = json_decode(substr($buffer, 0, $at), true);
            $buffer = substr($buffer, $at + 1);
            if ($said[0] === 'ask') {
                $result['asks']++;
            } elseif ($said[0] === 'ok') {
                $result['ok']++;
                $result['nils'] += $said[1] ? 1 : 0;
                $result['order'] += $said[2] ? 1 : 0;
                if (!$said[3]) {
                    $waits[] = $said[4];
                }
            } elseif ($said[0] === 'error') {
                $result['errors']++;
                $result['words'][$said[1]] = ($result['words'][$said[1]] ?? 0) + 1;
            } elseif ($said[0] === 'load') {
                $result['loads']++;
                $result['loads_of'][$said[1]] = ($result['loads_of'][$said[1]] ?? 0) + 1;
            } elseif ($said[0] === 'loaded') {
                $result['spans'][] = [$said[1], $said[2], $said[3]];
            } elseif ($said[0] === 'other') {
                $result['other']['wrong'] += $said[1] ? 1 : 0;
                $other[] = $said[2];
            } elseif ($said[0] === 'done') {
                $asking--;
            }
        }
    }
    $result['other'] += ['asks' => count($other)] + spread($other);
    $result['words'] = (object)$result['words'];
    $result['loads_of'] = (object)$result['loads_of'];
    return $result + spread($waits) + ['stuck' => $result['asks'] - $result['ok'] - $result['errors']];
}

if ($options['wait-for-start']) {
    echo "ready\n";
    $options['start-at-ms'] = (float)fgets(STDIN);
}
[$reading, $pipe] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
$children = [];
for ($number = 0; $number < $options['askers']; $number++) {
    $children[] = child(fn() => asker($options, $number));
}
$beside = $options['other'] !== '' ? child(fn() => ask_other($options)) : 0;
$result = count_lines($reading, (int)$options['askers'], now_ms() + $options['limit-ms']);
foreach (array_filter([...$children, $beside]) as $pid) {
    posix_kill($pid, SIGKILL);
    pcntl_waitpid($pid, $status);
}
echo json_encode($result), "\n";
