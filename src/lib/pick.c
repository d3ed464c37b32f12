/* pick.c - values on their way to the caller. */
#include "lib/pick.h"

#include "base/blob.h"
#include "base/sat.h"

#include <string.h>

void pick_entry(struct pick *pick, const struct entry *entry, const struct hg_answer *answer, int64_t now_us)
{
	struct hg_bytes value = entry_value(entry);
	void *to = pick->small;

	pick->outcome = entry->flags & ENTRY_ABSENCE ? HG_ABSENT : value.len > 0 ? HG_VALUE : HG_EMPTY;
	pick->fresh_us = sat_max(sat_sub(entry->fresh_until_us, now_us), 0);
	pick->len = value.len;
	pick->at = to;
	pick->blob = entry_blob(entry);
	if (pick->blob != NULL) {
		(void)blob_ref(pick->blob, 1);
		return;
	}
	if (value.len <= answer->room_bytes && answer->room != NULL)
		pick->at = to = answer->room;
	if (value.len > 0)
		memcpy(to, value.at, value.len);
}

void pick_shared(struct pick *pick, const struct shared *shared)
{
	pick->outcome = shared->outcome;
	pick->fresh_us = shared->fresh_us;
	pick->blob = shared->blob != NULL ? blob_ref(shared->blob, 1) : NULL;
	pick->len = shared->blob != NULL ? shared->blob->len : 0;
	pick->at = pick->small;
}

void pick_drop(struct pick *pick)
{
	blob_unref(pick->blob);
	pick->blob = NULL;
}

/* Gives the value itself: the counted one, or a copy of the small one. */
static enum hg_err give_counted(struct pick *pick, const struct hg_allocator *allocator, struct hg_answer *answer)
{
	struct blob *blob = pick->blob;

	if (blob == NULL) {
		blob = blob_create(allocator, pick->len);
		if (blob == NULL)
			return HG_ERR_MEMORY;
		memcpy(blob->at, pick->at, pick->len);
	}
	pick->blob = NULL;
	answer->given = (struct hg_value *)blob;
	answer->value = blob_bytes(blob);
	return HG_OK;
}

enum hg_err pick_give(struct pick *pick, enum hg_how how, const struct hg_allocator *allocator,
		      struct hg_answer *answer)
{
	if (pick->len == 0) {
		answer->given = NULL;
		answer->value = (struct hg_bytes){NULL, 0};
	} else if (pick->blob == NULL && pick->at == answer->room) {
		answer->given = NULL;
		answer->value = (struct hg_bytes){answer->room, pick->len};
	} else if (answer->room != NULL && pick->len <= answer->room_bytes) {
		memcpy(answer->room, pick->blob != NULL ? pick->blob->at : pick->at, pick->len);
		answer->given = NULL;
		answer->value = (struct hg_bytes){answer->room, pick->len};
	} else if (give_counted(pick, allocator, answer) != HG_OK) {
		return HG_ERR_MEMORY;
	}
	pick_drop(pick);
	answer->outcome = pick->outcome;
	answer->how = how;
	answer->fresh_us = pick->fresh_us;
	return HG_OK;
}

void hg_value_release(struct hg_value *value)
{
	blob_unref((struct blob *)value);
}

struct hg_bytes hg_value_bytes(const struct hg_value *value)
{
	return blob_bytes((const struct blob *)value);
}
