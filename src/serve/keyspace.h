/* keyspace.h - the keys as commands see them: the memory store, and on each change the gates and the watchers.
 *
 * Every function here that takes a call is called with the lock of the key's shard held (call->held). To a command a
 * stale entry does not exist. Every command that leaves a key with a string value goes through keyspace_write() and so
 * ends the key's flight; every command that takes a key away goes through keyspace_remove() and so voids its lease.
 */
#ifndef SERVE_KEYSPACE_H
#define SERVE_KEYSPACE_H

#include "serve/command.h"
#include "store/memory.h"

/* What kind of write: the fence after an invalidation (design 4) treats plain ones alone. */
enum write_kind {
	WRITE_PLAIN, /* SET without NX, XX, GET, KEEPTTL; SETEX, PSETEX, an MSET member; not in EXEC */
	WRITE_OTHER,
};

enum write_life {
	LIFE_NONE,  /* no TTL */
	LIFE_AT,    /* ends at `at_us`, monotonic */
	LIFE_KEEP,  /* KEEPTTL, INCR, APPEND: the one it has */
	LIFE_MOVED, /* RENAME, COPY: as LIFE_AT, and no gate's jitter shortens it */
};

/* The end of a life that microseconds cannot say (beyond 292,000 years). Such an entry keeps its wall-clock
 * milliseconds where an early window would stand, so that even these come back exactly from PEXPIRETIME. */
#define KEYSPACE_FAR (HG_NEVER - 1)

struct write {
	struct hg_bytes value; /* copied */
	struct blob *blob;     /* or NULL; shared instead of copied where given (RENAME, COPY of large values) */
	enum write_kind kind;
	enum write_life life;
	int64_t at_us;
	int64_t wall_ms; /* the same end on the wall clock; looked at only where `at_us` is KEYSPACE_FAR */
};

struct key keyspace_key(const struct call *call, struct hg_bytes name);
struct key keyspace_key_in(const struct call *call, struct hg_bytes name, uint8_t db);

/* The fresh entry or NULL. Borrowed until the lock is given back or any key is written (which may evict this one). */
const struct entry *keyspace_look(struct call *call, const struct key *key);

/* As keyspace_look, counting a hit or a miss: for commands that only read, as in Redis. */
const struct entry *keyspace_read(struct call *call, const struct key *key);

/* What a command may see: fresh, of this database, and no remembered absence. For visits of the whole key space. */
bool keyspace_visible(const struct call *call, const struct entry *entry);

/* Are name and value within the limits (limits: key, value; the latter is Redis' proto-max-bulk-len)? Where not, the
 * error has been written and counted. */
bool keyspace_fits(struct call *call, struct hg_bytes name, uint64_t value_bytes) HG_MUST_USE;

/* Writes and counts the error of a write that found no room. */
void keyspace_refuse_memory(struct call *call);

/* Stores. On failure (value or memory limit) the error reply has been written and false is returned; nothing changed.
 * A life that ends now or earlier removes the key instead, as Redis does (SET with a past EXAT). A fenced write returns
 * true and stores nothing. */
bool keyspace_write(struct call *call, const struct key *key, const struct write *write) HG_MUST_USE;

/* Removes. `command_del`: a DEL or UNLINK (which `del = soft` turns into a purge). Returns whether a fresh value was
 * there. */
bool keyspace_remove(struct call *call, const struct key *key, bool command_del);

/* Makes a fresh value stale, to be served for what its gate's grace allows; without grace it is removed. Returns
 * whether a fresh value was there. */
bool keyspace_purge(struct call *call, const struct key *key);

/* Changes only the life: HG_NEVER for PERSIST. `entry` is the fresh one that keyspace_look() gave; `wall_ms` as in
 * struct write. A life that ends now or earlier is an invalidation. Returns false with the error reply written where
 * memory fails. */
bool keyspace_expire(struct call *call, const struct key *key, const struct entry *entry, int64_t at_us,
		     int64_t wall_ms) HG_MUST_USE;

/* `db` or STORE_SPACE_ALL; under all locks. */
void keyspace_flush(struct call *call, uint8_t db);

/* Monotonic microseconds of an absolute wall-clock time in ms, saturating, and back. One offset for the daemon's life,
 * so EXPIREAT's argument comes back exactly from EXPIRETIME. */
int64_t keyspace_from_wall_ms(const struct server *server, int64_t wall_ms);
int64_t keyspace_to_wall_ms(const struct server *server, int64_t at_us);
/* The wall-clock end of an entry's fresh life; -1: it has no TTL. */
int64_t keyspace_ends_ms(const struct server *server, const struct entry *entry);

/* A value kept for a reply, or for another key, while the entry it came from is written: shared where it is a blob,
 * copied where it is small. Take, use, drop, in one command. */
struct snapshot {
	bool found;
	struct blob *blob; /* a reference, or NULL */
	size_t len;        /* of `small` */
	int64_t fresh_until_us, wall_ms;
	unsigned char small[MEMORY_INLINE_MAX];
};
/* An empty one, which may be dropped. Leaves `small` as it is: four kilobytes need no zeroing for each SET. */
static inline void snapshot_init(struct snapshot *snapshot)
{
	snapshot->found = false;
	snapshot->blob = NULL;
}
/* `entry` may be NULL: nothing was found. */
void snapshot_take(struct snapshot *snapshot, const struct server *server, const struct entry *entry);
void snapshot_drop(struct snapshot *snapshot);
/* The value as a bulk string, or the null of the connection's version. */
void snapshot_reply(struct call *call, const struct snapshot *snapshot);

/* ---- WATCH ---------------------------------------------------------------------------------------------------- */

struct watch;

/* The registry, server->watches. Open before the first connection, close after the last one. */
enum hg_err keyspace_open(struct server *server) HG_MUST_USE;
void keyspace_close(struct server *server);

/* The key has changed: connections that watch it are told so at EXEC. Under its lock. The functions above do it; this
 * is for values that come past them, from an origin. Costs a load where nobody watches. */
void keyspace_changed(struct server *server, const struct key *key);

/* Under all locks, before keys of `db` (or STORE_SPACE_ALL) are flushed: breaks the watches of those that are there. */
void keyspace_flushing(struct call *call, uint8_t db);

/* Watches `key` for the connection (its shard's lock held); HG_ERR_MEMORY where that fails. */
enum hg_err keyspace_watch(struct call *call, const struct key *key) HG_MUST_USE;
/* Forgets all watches of the connection. `held`: 0, and it takes the locks by itself, or a mask with all of theirs. */
void keyspace_unwatch(struct server *server, struct conn *conn, uint64_t held);
/* Under the locks of all watched keys: has any of them changed, or expired, since it was watched? */
bool keyspace_watch_broken(struct call *call);
/* The shards of the connection's watched keys. */
uint64_t keyspace_watch_mask(const struct conn *conn);

#endif
