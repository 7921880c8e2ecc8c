/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the way to a replica is full. Where it is, everybody waits for bytes,
 * and a get that asks for one row instead of two is served sooner on average,
 * though some then need a second look. A look that takes twice as long as the
 * best may have been unlucky, as on a machine with more threads than
 * processors; when of many not one was quick, others have filled the way.
 */
#include "kv_priv.h"

enum {
	WINDOW = 32,	     /* looks, of which one must be quick */
	FORGET_LOOKS = 4096, /* the best is not for ever: ways change */
	FORGET_SHARE = 8,
};

void kv_pace_best(struct kv_pace *p, uint64_t ns)
{
	if (!p->best_ns || ns < p->best_ns)
		p->best_ns = ns;
}

void kv_pace_note(struct kv_pace *p, uint64_t ns)
{
	kv_pace_best(p, ns);
	if (p->looks % WINDOW == 0 || ns < p->least_ns)
		p->least_ns = ns;
	p->looks++;
	if (p->looks % WINDOW == 0)
		p->is_busy = p->least_ns > 2 * p->best_ns;
	if (p->looks % FORGET_LOOKS == 0)
		p->best_ns += p->best_ns / FORGET_SHARE;
}
