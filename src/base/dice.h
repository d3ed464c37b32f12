/* dice.h - a seeded generator (xoshiro256**, Blackman and Vigna 2018). Same seed, same numbers, on every machine.
 * Not for secrets. */
#ifndef BASE_DICE_H
#define BASE_DICE_H

#include <stdint.h>

struct dice {
	uint64_t state[4];
};

/* Any seed will do, 0 too: it is spread by splitmix64. */
void dice_init(struct dice *dice, uint64_t seed);

uint64_t dice_u64(struct dice *dice);

/* Uniform in [0, below); 0 where `below` is 0. Without modulo bias. */
uint64_t dice_below(struct dice *dice, uint64_t below);

/* Uniform in (0, 1], a multiple of 2^-32: never 0, so its logarithm is finite (22.18 at the most, negated). */
double dice_unit(struct dice *dice);

#endif
