/* pick.h - a value on its way from the store, or from a load, to the caller.
 *
 * Inside a reader's section or under a lock nothing may be allocated and nothing large copied: there a value is picked
 * up (a small one is copied, a large one counted), and given to the caller afterwards.
 */
#ifndef LIB_PICK_H
#define LIB_PICK_H

#include "lib/lane.h"
#include "store/memory.h"

struct pick {
	enum hg_outcome outcome;
	int64_t fresh_us;
	size_t len;
	struct blob *blob; /* counted; NULL: the bytes are at `at` */
	const void *at;    /* in `small`, or in the caller's room */
	unsigned char small[MEMORY_INLINE_MAX];
};

/* What is in the store. Inside a section or under the shard's lock. */
void pick_entry(struct pick *pick, const struct entry *entry, const struct hg_answer *answer, int64_t now_us);
/* What a load gave; takes a reference to its blob. */
void pick_shared(struct pick *pick, const struct shared *shared);
/* Throws it away. */
void pick_drop(struct pick *pick);

/* Outside. Fills in the answer; the pick is spent, also on failure: HG_ERR_MEMORY. */
enum hg_err pick_give(struct pick *pick, enum hg_how how, const struct hg_allocator *allocator,
		      struct hg_answer *answer) HG_MUST_USE;

#endif
