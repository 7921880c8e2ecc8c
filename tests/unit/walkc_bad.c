/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cannot be a walk. The comment says where it is refused; test_walkc.c has
 * the words. It is compiled for bpf only.
 */
#include <aquifer/walk_prog.h>

struct node {
	uint64_t key, value, next;
	uint32_t count;
	uint64_t keys[64];
};

struct pad {
	uint64_t key, value;
	uint32_t index;
	uint64_t keys[8];
};

void *memmove(void *to, const void *from, size_t bytes);
uint64_t elsewhere(uint64_t value);

AQ_WALK(loop, const struct node *n, struct pad *p)
{
	uint64_t sum = p->key;

	for (uint32_t i = 0; i < n->count; i++)
		sum ^= n->keys[i & 63] * sum; /* refused: loop */
	return sum;
}

static __attribute__((noinline)) uint64_t helper(const struct node *n)
{
	return n->key * n->value;
}

AQ_WALK(call, const struct node *n, struct pad *p)
{
	return helper(n); /* refused: call */
}

AQ_WALK(external, const struct node *n, struct pad *p)
{
	return elsewhere(n->key); /* refused: external */
}

AQ_WALK(follow, const struct node *n, struct pad *p)
{
	const struct node *next = (const struct node *)n->next;

	return next->key; /* refused: follow */
}

static const uint64_t table[8] = {3, 1, 4, 1, 5, 9, 2, 6};

AQ_WALK(data, const struct node *n, struct pad *p)
{
	return table[n->count & 7]; /* refused: data */
}

AQ_WALK(outside, const struct node *n, struct pad *p)
{
	return n[1].value; /* refused: outside */
}

AQ_WALK(pad_outside, const struct node *n, struct pad *p)
{
	p[1].key = n->key; /* refused: pad_outside */
	return AQ_WALK_DONE;
}

AQ_WALK(stored, const struct node *n, struct pad *p)
{
	p->value = (uint64_t)n; /* refused: stored */
	return AQ_WALK_DONE;
}

AQ_WALK(returned, const struct node *n, struct pad *p)
{
	return (uint64_t)&n->value; /* refused: returned */
}

AQ_WALK(compared, const struct node *n, struct pad *p)
{
	return (uint64_t)n > p->key ? 1 : n->next; /* refused: compared */
}

AQ_WALK(mixed, const struct node *n, struct pad *p)
{
	uint64_t from = n->key & 1 ? (uint64_t)n : p->key;

	return from == p->value ? 1 : n->next; /* refused: mixed */
}

AQ_WALK(computed, const struct node *n, struct pad *p)
{
	p->key = (uint64_t)n * 3; /* refused: computed */
	return AQ_WALK_DONE;
}

AQ_WALK(local, const struct node *n, struct pad *p)
{
	volatile uint64_t kept[8];

	AQ_WALK_EACH (i, 8)
		kept[i] = n->keys[i];
	return kept[p->index & 7]; /* refused: local */
}

AQ_WALK(stack, const struct node *n, struct pad *p)
{
	uint64_t kept[60];

	__asm__ volatile("" : : "r"(kept) : "memory");
	kept[0] = n->key; /* refused: stack */
	__asm__ volatile("" : : "r"(kept) : "memory");
	return kept[59];
}

AQ_WALK(atomic_pad, const struct node *n, struct pad *p)
{
	__sync_fetch_and_add(&p->key, 1); /* refused: atomic_pad */
	return AQ_WALK_DONE;
}

AQ_WALK(atomic_half, struct node *n, struct pad *p)
{
	__sync_fetch_and_add(&n->count, 1); /* refused: atomic_half */
	return AQ_WALK_DONE;
}

AQ_WALK(atomic_index, struct node *n, struct pad *p)
{
	__sync_fetch_and_add(&n->keys[p->index], 1); /* refused: atomic_index */
	return AQ_WALK_DONE;
}

AQ_WALK(same_window, const struct node *n, struct pad *p)
{
	return memcmp(n->keys, n->keys + 8, 40); /* refused: same_window */
}

AQ_WALK(overlap, const struct node *n, struct pad *p)
{
	memmove(p->keys, p->keys + 1, 40); /* refused: overlap */
	return AQ_WALK_DONE;
}

AQ_WALK(length, const struct node *n, struct pad *p)
{
	memcpy(p->keys, p->keys + 4, n->count); /* refused: length */
	return AQ_WALK_DONE;
}

struct wide {
	uint64_t first;
	uint8_t between[5000];
	uint64_t last;
};

AQ_WALK(window, const struct wide *n, struct pad *p)
{
	return n->first + n->last; /* refused: window */
}

AQ_WALK(wide_pad, const struct node *n, struct wide *p)
{
	p->first = n->key; /* refused: wide_pad */
	return AQ_WALK_DONE;
}

AQ_WALK(longest, const struct node *n, struct pad *p)
{
	uint64_t sum = p->key; /* refused: longest */

	AQ_WALK_EACH (round, 16)
		AQ_WALK_EACH (i, 64)
			sum = (sum ^ n->keys[i]) * 0x9e3779b97f4a7c15;
	return sum;
}
