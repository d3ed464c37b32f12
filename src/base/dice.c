/* dice.c - xoshiro256** seeded by splitmix64 (Blackman, Vigna: Scrambled Linear Pseudorandom Number Generators, 2018;
 * bounded numbers after Lemire: Fast Random Integer Generation in an Interval, 2019). */
#include "base/dice.h"

static uint64_t spread(uint64_t *state)
{
	uint64_t word = (*state += UINT64_C(0x9E3779B97F4A7C15));

	word = (word ^ (word >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	word = (word ^ (word >> 27)) * UINT64_C(0x94D049BB133111EB);
	return word ^ (word >> 31);
}

void dice_init(struct dice *dice, uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		dice->state[i] = spread(&seed);
}

static uint64_t rotate(uint64_t word, int by)
{
	return (word << by) | (word >> (64 - by));
}

uint64_t dice_u64(struct dice *dice)
{
	uint64_t *state = dice->state;
	uint64_t result = rotate(state[1] * 5, 7) * 9;
	uint64_t shifted = state[1] << 17;

	state[2] ^= state[0];
	state[3] ^= state[1];
	state[1] ^= state[2];
	state[0] ^= state[3];
	state[2] ^= shifted;
	state[3] = rotate(state[3], 45);
	return result;
}

uint64_t dice_below(struct dice *dice, uint64_t below)
{
	if (below == 0)
		return 0;
	for (;;) {
		unsigned __int128 product = (unsigned __int128)dice_u64(dice) * below;

		if ((uint64_t)product >= (0 - below) % below)
			return (uint64_t)(product >> 64);
	}
}

double dice_unit(struct dice *dice)
{
	return (double)((dice_u64(dice) >> 32) + 1) * 0x1p-32;
}
