/* herdgate.h - get a value from a cache or load it once.
 *
 * This is the only public header. It includes nothing but the C library and compiles as C11 and as C++.
 *
 * Ownership is told with four words: a function **borrows** a pointer (until the time that is named), **copies**
 * what is behind it, **takes** it over, or **gives** one to the caller. A returned pointer is borrowed; an `out_x`
 * pointer is given.
 *
 * Times are signed 64-bit microseconds. Instants are of a monotonic clock; HG_NEVER is the one sentinel.
 */
#ifndef HERDGATE_H
#define HERDGATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HG_EXPORT __attribute__((visibility("default")))
#define HG_MUST_USE __attribute__((warn_unused_result))
#else
#define HG_EXPORT
#define HG_MUST_USE
#endif

/* "No end": an instant that never comes, a span without limit. */
#define HG_NEVER INT64_MAX

/* A byte string. Any byte may occur in it; nothing terminates it. Passed by value. */
struct hg_bytes {
	const void *at;
	size_t len;
};

/* What can go wrong, with the cause and what the caller should do. A verdict is not an error. */
enum hg_err {
	HG_OK = 0,
	HG_ERR_ARGUMENT, /* a value outside its documented range: mend the call */
	HG_ERR_MEMORY,   /* the allocator gave nothing: free some, try again */
	HG_ERR_LIMIT,    /* a configured limit was reached; the fault names it: try later or raise it */
	HG_ERR_TIMEOUT,  /* the caller's deadline passed; the load goes on: ask again later */
	HG_ERR_LOAD,     /* the loader reported an error; the fault has its words */
	HG_ERR_BACKOFF,  /* the last load failed and the back-off lasts: ask after the time in the fault */
	HG_ERR_NESTED,   /* a loader asked for a key whose load waits for it: restructure the loader */
	HG_ERR_CLOSED,   /* the cache is being closed: ask no more */
	HG_ERR_FENCED,   /* a fill came with a token that is no longer the live one: drop the value */
	HG_ERR_CONFIG,   /* the configuration has a fault; the fault names file, line and option */
	HG_ERR_IO,       /* the operating system refused; the fault has its words */
};

/* The human sentence of a failure. The caller gives the struct; a failing function fills it. */
struct hg_fault {
	enum hg_err err;
	int64_t retry_after_us; /* 0 where it has no meaning */
	char text[240];         /* a terminated sentence, never with bytes of a key or a value in it */
};

/* Where memory comes from. `resize` with size 0 frees; with `at` NULL it allocates; it returns NULL on failure (or
 * when freeing) and then leaves the old block as it was. Called from any thread that calls into the cache. */
struct hg_allocator {
	void *(*resize)(void *self, void *at, size_t size);
	void *self;
};

#ifdef __cplusplus
}
#endif
#endif
