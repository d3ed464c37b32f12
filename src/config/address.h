/* address.h - where to listen, as it is written. */
#ifndef CONFIG_ADDRESS_H
#define CONFIG_ADDRESS_H

#include "config/arena.h"
#include "config/config.h"

/* Reads "HOST:PORT", "[V6]:PORT" or "unix:PATH". Texts are copied into `arena`. Names are not resolved here. On failure
 * `out_why` says why; memory shows in arena_failed(). */
bool address_read(struct arena *arena, struct hg_bytes text, struct config_listener *out_listener,
		  char (*out_why)[200]);

/* Can only this machine reach it? */
bool address_local(const struct config_listener *listener);

#endif
