// redigo with its Pool: every asker is a goroutine that takes a connection for each command and gives it back. --pool
// bounds the pool, and then Get waits for a connection. See cache_aside.py for the parameters and the JSON object.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

var (
	url        = flag.String("url", "", "")
	keyList    = flag.String("keys", "k", "")
	askers     = flag.Int("askers", 50, "")
	rounds     = flag.Int("rounds", 1, "")
	everyMs    = flag.Float64("every-ms", 0, "")
	forMs      = flag.Float64("for-ms", 0, "")
	limitMs    = flag.Float64("limit-ms", 30000, "")
	waitFirst  = flag.Bool("wait-for-start", false, "")
	loadMs     = flag.Float64("load-ms", 50, "")
	slowAfter  = flag.Float64("slow-after-ms", 0, "")
	slowLoadMs = flag.Float64("slow-load-ms", 0, "")
	ttlMs      = flag.Int("ttl-ms", 10000, "")
	noSet      = flag.Bool("no-set", false, "")
	dieInLoad  = flag.Bool("die-in-load", false, "")
	loadReads  = flag.String("load-reads", "", "")
	other      = flag.String("other", "", "")
	timeoutMs  = flag.Float64("timeout-ms", 0, "")
	poolSize   = flag.Int("pool", 0, "")
)

type span struct {
	key        string
	begin, end float64
}

// tally counts what happens, under its lock.
type tally struct {
	sync.Mutex
	asks, ok, errors, nils, order, otherWrong int
	words, loadsOf                            map[string]int
	spans                                     []*span
	waits, otherWaits                         []float64
	begin                                     time.Time
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
func duration(ms float64) time.Duration {
	return time.Duration(ms * float64(time.Millisecond))
}
func epochMs() float64 { return float64(time.Now().UnixNano()) / 1e6 }

func get(pool *redis.Pool, key string) (string, bool, error) {
	connection := pool.Get()
	defer connection.Close()
	value, err := redis.String(connection.Do("GET", key))
	if err == redis.ErrNil {
		return "", false, nil
	}
	return value, err == nil, err
}

func set(pool *redis.Pool, key, value string) error {
	connection := pool.Get()
	defer connection.Close()
	_, err := connection.Do("SET", key, value, "PX", *ttlMs)
	return err
}

func (t *tally) load(pool *redis.Pool, key string) string {
	t.Lock()
	t.loadsOf[key]++
	number := len(t.spans) + 1
	s := &span{key: key, begin: epochMs()}
	t.spans = append(t.spans, s)
	t.Unlock()
	length := *loadMs
	if *slowAfter > 0 && ms(time.Since(t.begin)) > *slowAfter {
		length = *slowLoadMs
	}
	time.Sleep(duration(length / 2))
	if *dieInLoad {
		process, _ := os.FindProcess(os.Getpid())
		process.Kill()
	}
	if *loadReads != "" {
		get(pool, *loadReads)
	}
	time.Sleep(duration(length / 2))
	t.Lock()
	s.end = epochMs()
	t.Unlock()
	return fmt.Sprintf("%s|%d|%d", key, number, os.Getpid())
}

func (t *tally) ask(pool *redis.Pool, key string) {
	begin := time.Now()
	t.Lock()
	t.asks++
	t.Unlock()
	value, found, err := get(pool, key)
	loaded := false
	if err == nil && !found {
		loaded = true
		value = t.load(pool, key)
		if !*noSet {
			found = true
			err = set(pool, key, value)
		}
	}
	t.Lock()
	defer t.Unlock()
	if err != nil {
		t.errors++
		t.words[strings.SplitN(err.Error(), " ", 2)[0]]++
		return
	}
	t.ok++
	if !found {
		t.nils++
	} else if strings.SplitN(value, "|", 2)[0] != key {
		t.order++
	}
	if !loaded {
		t.waits = append(t.waits, ms(time.Since(begin)))
	}
}

func (t *tally) over() bool { return *forMs > 0 && ms(time.Since(t.begin)) > *forMs }

func (t *tally) asker(pool *redis.Pool, keys []string, number int) {
	time.Sleep(duration(*everyMs * float64(number) / float64(*askers)))
	for done := 0; !t.over() && (*rounds == 0 || done < *rounds); done++ {
		t.ask(pool, keys[(number+done)%len(keys)])
		time.Sleep(duration(*everyMs))
	}
}

func (t *tally) askOther(pool *redis.Pool) {
	for ; ; time.Sleep(20 * time.Millisecond) {
		begin := time.Now()
		value, found, _ := get(pool, *other)
		t.Lock()
		t.otherWaits = append(t.otherWaits, ms(time.Since(begin)))
		if found && strings.SplitN(value, "|", 2)[0] != *other {
			t.otherWrong++
		}
		t.Unlock()
	}
}

func spread(waits []float64) (float64, float64) {
	if len(waits) == 0 {
		return 0, 0
	}
	sort.Float64s(waits)
	return waits[len(waits)/2], waits[len(waits)-1]
}

func (t *tally) tell() {
	t.Lock()
	spans := [][]interface{}{}
	for _, s := range t.spans {
		spans = append(spans, []interface{}{s.key, s.begin, s.end})
	}
	p50, max := spread(t.waits)
	otherP50, otherMax := spread(t.otherWaits)
	json.NewEncoder(os.Stdout).Encode(map[string]interface{}{
		"client": "redigo", "asks": t.asks, "ok": t.ok, "errors": t.errors, "words": t.words,
		"stuck": t.asks - t.ok - t.errors, "nils": t.nils, "loads": len(t.spans), "loads_of": t.loadsOf,
		"spans": spans, "p50_ms": p50, "max_ms": max, "order": t.order,
		"other": map[string]interface{}{"asks": len(t.otherWaits), "p50_ms": otherP50, "max_ms": otherMax,
			"wrong": t.otherWrong},
	})
	os.Exit(0)
}

func main() {
	flag.Parse()
	pool := &redis.Pool{
		MaxIdle: 1000, MaxActive: *poolSize, Wait: *poolSize > 0,
		Dial: func() (redis.Conn, error) {
			return redis.DialURL(*url, redis.DialReadTimeout(duration(*timeoutMs)))
		},
	}
	t := &tally{words: map[string]int{}, loadsOf: map[string]int{}}
	if *waitFirst {
		var startAtMs float64
		fmt.Println("ready")
		fmt.Scanln(&startAtMs)
		time.Sleep(duration(startAtMs - epochMs()))
	}
	t.begin = time.Now()
	time.AfterFunc(duration(*limitMs), t.tell)
	if *other != "" {
		go t.askOther(pool)
	}
	var group sync.WaitGroup
	for number := 0; number < *askers; number++ {
		group.Add(1)
		go func(number int) {
			defer group.Done()
			t.asker(pool, strings.Split(*keyList, ","), number)
		}(number)
	}
	group.Wait()
	t.tell()
}
