/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in a sorted array. */
#include "ledger_mem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/plant.h"

struct row {
	char *kind, *key, *value;
};

struct ledger_store {
	struct row *row;
	size_t count;
	size_t room;
	uint64_t term;
	uint64_t lease_ns;
	uint64_t now_ns;
	uint64_t kept_ns; /* when the leader was last heard of */
	char who[LEDGER_WHO_MAX];
};

struct handle {
	struct ledger base;
	struct ledger_store *store;
	bool owns_store;
	uint64_t term; /* that it led in last */
};

static struct ledger_store *store_of(struct ledger *l)
{
	return container_of(l, struct handle, base)->store;
}

int ledger_store_create(struct ledger_store **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : error_set(-ENOMEM, "no memory for a ledger");
}

static void row_free(struct row *r)
{
	free(r->kind);
	free(r->key);
	free(r->value);
}

void ledger_store_destroy(struct ledger_store *s)
{
	for (size_t i = 0; i < s->count; i++)
		row_free(&s->row[i]);
	free(s->row);
	free(s);
}

void ledger_store_set_lease(struct ledger_store *s, uint64_t lease_ns)
{
	s->lease_ns = lease_ns;
}

void ledger_store_set_now(struct ledger_store *s, uint64_t now_ns)
{
	s->now_ns = now_ns;
}

uint64_t ledger_store_term(const struct ledger_store *s)
{
	return s->term;
}

/* ---- leading ------------------------------------------------------------ */

static bool has_leader(const struct ledger_store *s)
{
	return s->who[0] &&
	       (!s->lease_ns || s->now_ns - s->kept_ns <= s->lease_ns);
}

static int mem_lead(struct ledger *l, const char *who, uint64_t *term)
{
	struct handle *h = container_of(l, struct handle, base);
	struct ledger_store *s = h->store;

	if (has_leader(s) && strcmp(s->who, who) != 0 && h->term != s->term)
		return error_set(-EBUSY, "%s leads", s->who);
	s->term++;
	s->kept_ns = s->now_ns;
	(void)snprintf(s->who, sizeof(s->who), "%s", who);
	*term = h->term = s->term;
	return 0;
}

static int check_term(const struct ledger_store *s, uint64_t term)
{
	if (term == s->term || PLANTED(ctl_no_guard))
		return 0;
	return error_set(-ESTALE, "another controller leads, in term %llu",
			 (unsigned long long)s->term);
}

static int mem_keep(struct ledger *l, uint64_t term)
{
	struct ledger_store *s = store_of(l);
	int err = check_term(s, term);

	if (!err && has_leader(s))
		s->kept_ns = s->now_ns;
	return err;
}

static int mem_leader(struct ledger *l, char who[LEDGER_WHO_MAX])
{
	const struct ledger_store *s = store_of(l);

	if (!has_leader(s))
		return error_set(-ENOENT, "nobody leads");
	(void)snprintf(who, LEDGER_WHO_MAX, "%s", s->who);
	return 0;
}

static int mem_term(struct ledger *l, uint64_t *term)
{
	*term = store_of(l)->term;
	return 0;
}

static int mem_raise(struct ledger *l, uint64_t term)
{
	struct ledger_store *s = store_of(l);

	if (has_leader(s))
		return error_set(-EBUSY, "%s leads", s->who);
	s->term = u64_max(s->term, term);
	return 0;
}

/* ---- rows --------------------------------------------------------------- */

static int compare(const struct row *r, const char *kind, const char *key)
{
	int c = strcmp(r->kind, kind);

	return c ? c : strcmp(r->key, key);
}

/* Where the row is or would be. */
static size_t place_of(const struct ledger_store *s, const char *kind,
		       const char *key, bool *is_there)
{
	size_t low = 0, high = s->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (compare(&s->row[mid], kind, key) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	*is_there = low < s->count && compare(&s->row[low], kind, key) == 0;
	return low;
}

static int mem_read(struct ledger *l, ledger_row_fn each, void *user)
{
	const struct ledger_store *s = store_of(l);
	int err = 0;

	for (size_t i = 0; i < s->count && !err; i++)
		err = each(user, s->row[i].kind, s->row[i].key,
			   s->row[i].value);
	return err;
}

/* Room for all changes before the first of them is made. */
static int reserve(struct ledger_store *s, size_t more)
{
	size_t room = s->count + more;
	struct row *row;

	if (room <= s->room)
		return 0;
	row = realloc(s->row, 2 * room * sizeof(*row));
	if (!row)
		return error_set(-ENOMEM, "no memory for rows");
	s->row = row;
	s->room = 2 * room;
	return 0;
}

static void put(struct ledger_store *s, struct row *fresh)
{
	bool is_there;
	size_t at = place_of(s, fresh->kind, fresh->key, &is_there);

	if (is_there) {
		row_free(&s->row[at]);
	} else if (fresh->value) {
		memmove(&s->row[at + 1], &s->row[at],
			(s->count - at) * sizeof(*fresh));
		s->count++;
	}
	if (fresh->value) {
		s->row[at] = *fresh;
		return;
	}
	row_free(fresh);
	if (is_there)
		memmove(&s->row[at], &s->row[at + 1],
			(--s->count - at) * sizeof(*fresh));
}

static int mem_commit(struct ledger *l, uint64_t term,
		      const struct ledger_change *change, unsigned count)
{
	struct row fresh[LEDGER_CHANGES_MAX] = {{0}};
	struct ledger_store *s = store_of(l);
	int err = check_term(s, term);

	if (!err)
		err = reserve(s, count);
	for (unsigned i = 0; i < count && !err; i++) {
		fresh[i].kind = strdup(change[i].kind);
		fresh[i].key = strdup(change[i].key);
		if (change[i].value)
			fresh[i].value = strdup(change[i].value);
		if (!fresh[i].kind || !fresh[i].key ||
		    (change[i].value && !fresh[i].value))
			err = error_set(-ENOMEM, "no memory for rows");
	}
	for (unsigned i = 0; i < count; i++)
		if (err)
			row_free(&fresh[i]);
		else
			put(s, &fresh[i]);
	return err;
}

/* ---- handles ------------------------------------------------------------ */

static void mem_close(struct ledger *l)
{
	struct handle *h = container_of(l, struct handle, base);

	if (h->term && h->term == h->store->term)
		h->store->who[0] = 0; /* nobody has to wait */
	if (h->owns_store)
		ledger_store_destroy(h->store);
	free(h);
}

static const struct ledger_ops mem_ops = {
	.lead = mem_lead,
	.keep = mem_keep,
	.leader = mem_leader,
	.term = mem_term,
	.raise = mem_raise,
	.read = mem_read,
	.commit = mem_commit,
	.close = mem_close,
};

int ledger_mem_open(struct ledger_store *s, struct ledger **out)
{
	struct handle *h = calloc(1, sizeof(*h));

	if (!h)
		return error_set(-ENOMEM, "no memory for a ledger");
	h->base.ops = &mem_ops;
	h->base.lease_ns = s->lease_ns;
	h->store = s;
	*out = &h->base;
	return 0;
}

int ledger_mem_alone(struct ledger **out)
{
	struct ledger_store *s;
	int err = ledger_store_create(&s);

	if (err)
		return err;
	err = ledger_mem_open(s, out);
	if (err)
		ledger_store_destroy(s);
	else
		container_of(*out, struct handle, base)->owns_store = true;
	return err;
}
