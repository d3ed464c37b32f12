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
};

struct write {
	struct hg_bytes value;  /* copied */
	struct blob *blob;      /* or NULL; shared instead of copied where given (RENAME, COPY of large values) */
	enum write_kind kind;
	enum write_life life;
	int64_t at_us;
};

struct key keyspace_key(const struct call *call, struct hg_bytes name);
struct key keyspace_key_in(const struct call *call, struct hg_bytes name, uint8_t db);

/* The fresh entry or NULL. Borrowed until the lock is given back or the key is written. */
const struct entry *keyspace_look(struct call *call, const struct key *key);

/* Stores. On failure (value or memory limit) the error reply has been written and false is returned; nothing changed.
 * A life that ends now or earlier removes the key instead, as Redis does (SET with a past EXAT). A fenced write returns
 * true and stores nothing. */
bool keyspace_write(struct call *call, const struct key *key, const struct write *write) HG_MUST_USE;

/* Removes. `command_del`: a DEL or UNLINK (which `del = soft` turns into a purge). Returns whether a fresh value was
 * there. */
bool keyspace_remove(struct call *call, const struct key *key, bool command_del);

/* Changes only the life: HG_NEVER for PERSIST. `entry` is the fresh one that keyspace_look() gave. A life that ends now
 * or earlier is an invalidation. Returns false with the error reply written where memory fails. */
bool keyspace_expire(struct call *call, const struct key *key, const struct entry *entry, int64_t at_us) HG_MUST_USE;

/* `db` or STORE_SPACE_ALL; under all locks. */
void keyspace_flush(struct call *call, uint8_t db);

/* Monotonic microseconds of an absolute wall-clock time in ms, saturating, and back. One offset for the daemon's life,
 * so EXPIREAT's argument comes back exactly from EXPIRETIME. */
int64_t keyspace_from_wall_ms(const struct server *server, int64_t wall_ms);
int64_t keyspace_to_wall_ms(const struct server *server, int64_t at_us);

/* ---- WATCH ---------------------------------------------------------------------------------------------------- */

struct watch;
/* Watches `key` for the connection (its shard's lock held); HG_ERR_MEMORY where that fails. */
enum hg_err keyspace_watch(struct call *call, const struct key *key) HG_MUST_USE;
/* Forgets all watches of the connection; takes the locks by itself, but for those in `held`. */
void keyspace_unwatch(struct server *server, struct conn *conn, uint64_t held);
/* Under the locks of all watched keys: has any of them changed, or expired, since it was watched? */
bool keyspace_watch_broken(struct call *call);
/* The shards of the connection's watched keys. */
uint64_t keyspace_watch_mask(const struct conn *conn);

#endif
