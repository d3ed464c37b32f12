/* futex.h - sleeping on a word, and waking one sleeper (Linux futex(2), private to the process). */
#ifndef LIB_FUTEX_H
#define LIB_FUTEX_H

#include "herdgate.h"

#include <stdatomic.h>

/* Sleeps while `*word` is `expected`, at most until `until_us` of the system's monotonic clock. May return early. */
void futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t until_us);

/* Wakes one. Only the address counts: the word may be gone already, where its sleeper has seen the new value. */
void futex_wake(_Atomic uint32_t *word);

#endif
