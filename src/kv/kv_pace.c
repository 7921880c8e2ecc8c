/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the way to a leaf is full. A look that takes twice as long as the
 * best has waited for others; one may have been unlucky, several one after the
 * other have not. Where the way is full everybody waits for bytes, and a get
 * that asks for one row instead of two is served sooner on average, though some
 * then need a second look.
 */
#include "kv_priv.h"

enum {
	IN_ROW = 8,	     /* looks that change the mind */
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
	bool is_slow;

	kv_pace_best(p, ns);
	if (++p->looks % FORGET_LOOKS == 0)
		p->best_ns += p->best_ns / FORGET_SHARE;
	is_slow = ns > 2 * p->best_ns;
	if (is_slow == p->is_busy) {
		p->in_row = 0;
		return;
	}
	if (++p->in_row < IN_ROW)
		return;
	p->in_row = 0;
	p->is_busy = is_slow;
}
