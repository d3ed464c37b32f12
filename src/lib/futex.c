/* futex.c - the two system calls. */
#include "lib/futex.h"

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(_Atomic uint32_t) == sizeof(uint32_t), "the kernel reads the word as it is");

void futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t until_us)
{
	struct timespec until = {.tv_sec = until_us / HG_SECOND, .tv_nsec = until_us % HG_SECOND * 1000};

	if (until_us < 0)
		until = (struct timespec){0, 0};
	/* FUTEX_WAIT_BITSET takes an instant of the monotonic clock, plain FUTEX_WAIT a span. */
	(void)syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected,
		      until_us == HG_NEVER ? NULL : &until, NULL, FUTEX_BITSET_MATCH_ANY);
}

void futex_wake(_Atomic uint32_t *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
}
