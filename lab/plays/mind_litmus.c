/* SPDX-License-Identifier: Apache-2.0 */
/* Litmus shapes, and which ends sequential consistency allows them. */
#include "mind_litmus.h"

#include <string.h>

const struct mind_litmus_shape mind_litmus_shapes[] = {
	{"MP", {"Wx1 Wy1", "Ry Rx"}},
	{"SB", {"Wx1 Ry", "Wy1 Rx"}},
	{"LB", {"Rx Wy1", "Ry Wx1"}},
	{"WRC", {"Wx1", "Rx Wy1", "Ry Rx"}},
	{"IRIW", {"Wx1", "Wy1", "Rx Ry", "Ry Rx"}},
	{"2+2W", {"Wx1 Wy2", "Wy1 Wx2"}},
	{"R", {"Wx1 Wy1", "Wy2 Rx"}},
	{"S", {"Wx2 Wy1", "Ry Wx1"}},
	{"WWC", {"Wx2", "Rx Wy1", "Ry Wx1"}},
	{"3SB", {"Wx1 Ry", "Wy1 Rz", "Wz1 Rx"}},
	{.name = NULL},
};

unsigned mind_litmus_threads(const struct mind_litmus_shape *s)
{
	unsigned n = 0;

	while (n < MIND_LITMUS_THREADS && s->threads[n])
		n++;
	return n;
}

unsigned mind_litmus_steps(const char *text, struct mind_litmus_step *out)
{
	unsigned n = 0;

	for (; *text; text += strcspn(text, " ") + (strchr(text, ' ') != NULL))
		out[n++] = (struct mind_litmus_step){
			.is_store = text[0] == 'W',
			.var = (uint8_t)(text[1] - 'x'),
			.value = (uint8_t)(text[0] == 'W' ? text[2] - '0' : 0)};
	return n;
}

struct search {
	unsigned threads, count[MIND_LITMUS_THREADS];
	struct mind_litmus_step step[MIND_LITMUS_THREADS][MIND_LITMUS_STEPS];
	const uint8_t *want;
};

/* All orders from here on. */
static bool search(const struct search *s, const unsigned at[],
		   const uint8_t regs[])
{
	bool ended = true;

	for (unsigned t = 0; t < s->threads; t++) {
		uint8_t r[MIND_LITMUS_REGS];
		unsigned next[MIND_LITMUS_THREADS];
		const struct mind_litmus_step *step = &s->step[t][at[t]];
		uint8_t *var;

		if (at[t] == s->count[t])
			continue;
		ended = false;
		memcpy(r, regs, sizeof(r));
		memcpy(next, at, sizeof(next));
		var = &r[MIND_LITMUS_REGS - MIND_LITMUS_VARS + step->var];
		if (step->is_store)
			*var = step->value;
		else
			r[t * MIND_LITMUS_STEPS + at[t]] = *var;
		next[t]++;
		if (search(s, next, r))
			return true;
	}
	return ended && memcmp(regs, s->want, MIND_LITMUS_REGS) == 0;
}

bool mind_litmus_allows(const struct mind_litmus_shape *shape,
			const uint8_t end[MIND_LITMUS_REGS])
{
	const unsigned at[MIND_LITMUS_THREADS] = {0};
	const uint8_t regs[MIND_LITMUS_REGS] = {0};
	struct search s = {.threads = mind_litmus_threads(shape), .want = end};

	for (unsigned t = 0; t < s.threads; t++)
		s.count[t] = mind_litmus_steps(shape->threads[t], s.step[t]);
	return search(&s, at, regs);
}
