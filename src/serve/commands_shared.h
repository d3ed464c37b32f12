/* commands_shared.h - command functions that stand in another file than their table. The tables are commands_string (in
 * commands_string.c) and commands_key (in commands_key.c). Each is a `run` of struct command. */
#ifndef SERVE_COMMANDS_SHARED_H
#define SERVE_COMMANDS_SHARED_H

#include "serve/command.h"

/* commands_many.c: several keys in one step */
void command_mget(struct call *call);
void command_mset(struct call *call);
void command_msetnx(struct call *call);

/* commands_update.c: the new value is made of the old one */
void command_incr(struct call *call);
void command_decr(struct call *call);
void command_incrby(struct call *call);
void command_decrby(struct call *call);
void command_append(struct call *call);

/* commands_life.c: the time a key has left */
void command_expire(struct call *call);
void command_pexpire(struct call *call);
void command_expireat(struct call *call);
void command_pexpireat(struct call *call);
void command_ttl(struct call *call);
void command_pttl(struct call *call);
void command_expiretime(struct call *call);
void command_pexpiretime(struct call *call);
void command_persist(struct call *call);

/* commands_scan.c: the whole key space */
void command_keys(struct call *call);
void command_scan(struct call *call);
void command_randomkey(struct call *call);

/* commands_move.c: from one key to another */
void command_rename(struct call *call);
void command_copy(struct call *call);

#endif
