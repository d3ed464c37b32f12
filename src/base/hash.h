/* hash.h - XXH3 (64 bits) with a secret seed, so that nobody outside can choose colliding keys. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/bytes.h"

/* The hash of `key` in the key space `space` (a database number) under `seed`. */
uint64_t hash_key(struct hg_bytes key, uint8_t space, uint64_t seed);

#endif
