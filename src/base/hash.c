#include "base/hash.h"

#include <xxhash.h>

uint64_t hash_key(struct hg_bytes key, uint8_t space, uint64_t seed)
{
	return XXH3_64bits_withSeed(key.at, key.len, seed ^ (space * UINT64_C(0x9E3779B97F4A7C15)));
}
