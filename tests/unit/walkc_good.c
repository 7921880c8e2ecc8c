/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks of all kinds. test_walkc.c has them twice: compiled for this machine,
 * and as an object file for bpf, which it translates; both must do the same.
 */
#include <aquifer/walk_prog.h>

struct record {
	uint64_t a, b, c, d;
};

struct node {
	uint64_t key, value, next;
	uint8_t name[44];
	uint16_t count;
	int16_t delta;
	uint64_t keys[9];
	uint32_t links[9];
	int32_t rank;
	struct record record;
};

struct pad {
	uint64_t key, value;
	uint32_t found;
	int32_t sum;
	uint8_t name[44];
	uint32_t index;
	uint64_t best;
	struct record record;
};

AQ_WALK(find, const struct node *n, struct pad *p)
{
	if (n->key == p->key) {
		p->value = n->value;
		p->found = 1;
		return AQ_WALK_DONE;
	}
	return n->next;
}

AQ_WALK_INLINE int is_found(const struct node *n, struct pad *p)
{
	p->found++;
	return n->key == p->key;
}

AQ_WALK_INLINE uint64_t onward(const struct node *n, struct pad *p)
{
	return n->key < p->key ? n->next : n->keys[0];
}

AQ_WALK_ITERATOR(iterate, is_found, onward)

AQ_WALK(tree, const struct node *n, struct pad *p)
{
	uint64_t next = 0, key = p->key;
	unsigned count = n->count & 15;

	AQ_WALK_EACH (i, 9) {
		if (i >= count || key < n->keys[i])
			break;
		next = n->links[i];
	}
	return next;
}

AQ_WALK(reduce, const struct node *n, struct pad *p)
{
	uint64_t best = p->best;
	uint32_t sum = (uint32_t)p->sum;

	AQ_WALK_EACH (i, 9) {
		if ((n->links[i] & 3) == 3)
			continue;
		if (n->keys[i] > best)
			best = n->keys[i];
		sum += (uint32_t)n->links[i] - (uint32_t)n->delta;
	}
	p->best = best;
	p->sum = (int32_t)sum;
	return (int32_t)sum < 0 ? AQ_WALK_FAIL(7) : n->next;
}

AQ_WALK(copy, const struct node *n, struct pad *p)
{
	if (memcmp(p->name, n->name, 4) == 0) {
		memcpy(p->name, n->name, 44);
		return AQ_WALK_DONE;
	}
	if (memcmp(n->name, p->name, 44) < 0)
		return AQ_WALK_FAIL(3);
	p->record.a = n->record.a;
	p->record.b = n->record.b;
	p->record.c = n->record.c;
	p->record.d = n->record.d;
	memset(&p->key, 0x11, 20);
	return n->keys[p->index % 9];
}

AQ_WALK(assign, const struct node *n, struct pad *p)
{
	struct node local;

	memcpy(&local.record, &n->record, sizeof(local.record));
	if (p->index & 1)
		local.record.b = p->key;
	memcpy(&p->record, &local.record, sizeof(local.record));
	memcpy(p->name, p->name + 22, 22);
	return local.record.a;
}

/* clang copies it from its end to its beginning. */
AQ_WALK(whole, const struct node *n, struct pad *p)
{
	p->record = n->record;
	return n->next;
}

/* How large an index can be depends on the way. */
AQ_WALK(joined, const struct node *n, struct pad *p)
{
	uint64_t i = 3;

	if (n->key & 1) {
		i = p->index;
		p->found = 1;
	}
	return n->keys[i];
}

/* Numbers of all widths. */
AQ_WALK(numbers, const struct node *n, struct pad *p)
{
	uint64_t x = n->key;
	uint32_t w = (uint32_t)n->value;

	x = x * 0x9e3779b97f4a7c15 ^ x >> 29;
	x -= n->keys[1] << (w & 63);
	x += (uint64_t)((int64_t)n->keys[2] >> (w & 31));
	w = w / (p->index | 1) + w % (p->index | 3);
	w ^= w << 7 | w >> 25;
	p->sum = (int32_t)w >> 3;
	p->value = x;
	p->best = __builtin_bswap64(x) + __builtin_bswap32(w) +
		  __builtin_bswap16((uint16_t)w);
	if ((int32_t)w < -5 || n->rank > (int32_t)p->index)
		return x & 0xffff;
	if (w > 0x80000000u || n->delta < -300)
		return -x;
	if (p->key == 0xffffffffffffffff || n->rank == -1)
		return 0x123456789abcdef0;
	return n->delta;
}

AQ_WALK(choose, const struct node *n, struct pad *p)
{
	const uint64_t *from = n->key & 1 ? &n->value : &n->keys[4];

	switch (n->count & 7) {
	case 0:
		return n->next;
	case 1:
		return n->keys[3];
	case 2:
		p->found = 5;
		break;
	case 3:
		return AQ_WALK_FAIL(200);
	case 4:
		p->value = *from;
		return AQ_WALK_DONE;
	default:
		p->value++;
	}
	return *from;
}

/* More variables than registers of bpf. */
AQ_WALK(spill, const struct node *n, struct pad *p)
{
	uint64_t a = n->keys[0], b = n->keys[1], c = n->keys[2], d = n->keys[3];
	uint64_t e = n->keys[4], f = n->keys[5], g = n->keys[6], h = n->keys[7];
	uint64_t i = n->keys[8], j = p->key, k = p->value;
	volatile uint32_t kept[4];

	kept[0] = n->links[0];
	kept[1] = 7;
	kept[2] = (uint32_t)n->next;
	*(volatile uint8_t *)&kept[3] = n->name[0];
	*((volatile uint8_t *)&kept[3] + 1) = 0;
	*((volatile uint16_t *)&kept[3] + 1) = n->count;
	AQ_WALK_EACH (round, 2) {
		a += b ^ i;
		b += c ^ j;
		c += d ^ k;
		d += e ^ a;
		e += f ^ b;
		f += g ^ c;
		g += h ^ d;
		h += i ^ e;
		i += j ^ f;
		j += k ^ g;
		k += a ^ h;
	}
	p->key = a ^ b ^ c;
	p->value = d ^ e ^ f ^ g;
	p->best = h ^ i ^ j ^ k;
	return (kept[0] + kept[1] + kept[2] + kept[3]) & 0x7fffffff;
}

AQ_WALK(change, struct node *n, struct pad *p)
{
	n->value = p->value;
	n->count++;
	n->name[p->index & 7] = 9;
	p->best = __sync_val_compare_and_swap(&n->key, p->key, p->value);
	__sync_fetch_and_add(&n->next, 3);
	p->value = __sync_fetch_and_add(&n->keys[2], p->key);
	memcpy(n->name + 8, p->name, 12);
	return n->keys[1];
}

/* The pointer leads to the middle of the node. */
struct linked {
	uint64_t before[2];
	uint64_t link;
	uint64_t behind[3];
};

AQ_WALK_WINDOW(middle, -(int)offsetof(struct linked, link),
	       sizeof(struct linked))

AQ_WALK(middle, const uint64_t *link, struct pad *p)
{
	const struct linked *l =
		(const struct linked *)((const char *)link -
					offsetof(struct linked, link));

	p->value += l->before[1] + l->behind[p->index % 3];
	return l->link;
}

/* Indexes and lengths that may be too large end the walk. */
AQ_WALK(bounded, const struct node *n, struct pad *p)
{
	memcpy(p->name, n->name, n->count);
	p->name[n->delta] = 1;
	return n->keys[p->index];
}
