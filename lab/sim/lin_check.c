/* SPDX-License-Identifier: Apache-2.0 */
/* Takes a history apart by keys, has each searched, and says what was found. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "lin_priv.h"

static const struct lin_limits limits_default = {
	.steps = UINT64_C(100000000), /* some seconds */
	.cache_bytes = UINT64_C(256) << 20,
};

/* ---- taking apart ------------------------------------------------------- */

struct parts {
	const struct lin_op **op; /* by key, inside a key by invocation */
	uint64_t *end;		  /* of each key's part */
	struct lin_value *seen;	  /* room for one key's observed values */
	bool *is_unseen;	  /* as lin_search_run wants it */
};

static void parts_release(struct parts *p)
{
	free(p->op);
	free(p->end);
	free(p->seen);
	free(p->is_unseen);
}

static int parts_make(const struct lin_history *h, struct parts *p)
{
	uint64_t keys = h->key_table.count, at = 0;
	uint64_t *start;

	*p = (struct parts){
		.op = malloc((h->ops + 1) * sizeof(*p->op)),
		.end = calloc(keys + 1, sizeof(*p->end)),
		.seen = malloc((h->ops + 1) * sizeof(*p->seen)),
		.is_unseen = malloc((h->ops + 1) * sizeof(*p->is_unseen)),
	};
	start = calloc(keys + 1, sizeof(*start));
	if (!p->op || !p->end || !p->seen || !p->is_unseen || !start) {
		free(start);
		parts_release(p);
		return -ENOMEM;
	}
	for (uint64_t i = 0; i < h->ops; i++)
		start[h->op[i].key] += h->op[i].type != LIN_FAIL;
	for (uint64_t k = 0; k < keys; k++) {
		uint64_t n = start[k];

		start[k] = at;
		p->end[k] = at;
		at += n;
	}
	for (uint64_t i = 0; i < h->ops; i++) {
		if (h->op[i].type != LIN_FAIL)
			p->op[p->end[h->op[i].key]++] = &h->op[i];
	}
	free(start);
	return 0;
}

/* ---- operations that cannot matter -------------------------------------- */

static int by_value(const void *x, const void *y)
{
	const struct lin_value *a = x, *b = y;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return a->bits < b->bits ? -1 : a->bits > b->bits;
}

/* Only equality with one value is ever observed: the values, or false when an
 * operation may tell otherwise what it met. */
static bool seen_values(const struct lin_op *const *op, uint64_t count,
			struct lin_value *seen, uint64_t *seen_count)
{
	*seen_count = 0;
	for (uint64_t i = 0; i < count; i++) {
		bool ended = op[i]->return_pos != LIN_NEVER;

		if (op[i]->call > LIN_CAS || op[i]->said == LIN_NO)
			return false;
		if (op[i]->call == LIN_READ && ended)
			seen[(*seen_count)++] = op[i]->got;
		if (op[i]->call != LIN_CAS)
			continue;
		if (ended && op[i]->said != LIN_YES)
			return false;
		seen[(*seen_count)++] = op[i]->a;
	}
	qsort(seen, *seen_count, sizeof(*seen), by_value);
	return true;
}

/*
 * Writes and swaps whose value nobody ever met. Without a known end such a one
 * is left out: an order with it stays one without it, and histories with many
 * crashes stay small. Reads without an end say nothing in any case. With an
 * end, writes are marked for the search. False: nothing is marked, because an
 * operation may tell otherwise what it met.
 */
static bool find_unseen(struct parts *p, const struct lin_op **op,
			uint64_t *count)
{
	uint64_t seen_count = 0, kept = 0;
	bool known = seen_values(op, *count, p->seen, &seen_count);

	for (uint64_t i = 0; i < *count; i++) {
		bool is_write = op[i]->call == LIN_WRITE;
		const struct lin_value *v =
			op[i]->call == LIN_CAS ? &op[i]->b : &op[i]->a;
		bool unseen = op[i]->call == LIN_READ ||
			      (known && !bsearch(v, p->seen, seen_count,
						 sizeof(*v), by_value));

		if (op[i]->return_pos == LIN_NEVER && unseen)
			continue;
		p->is_unseen[kept] = is_write && unseen;
		op[kept++] = op[i];
	}
	*count = kept;
	return known;
}

/* ---- words -------------------------------------------------------------- */

static void PRINTF(2, 3) add_text(char *text, const char *fmt, ...)
{
	size_t used = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + used, LIN_TEXT_MAX - used, fmt, ap);
	va_end(ap);
}

static void say(const struct lin_history *h, struct lin_result *res,
		const struct lin_op *blocked)
{
	char key[80], a[80], b[80], got[80];

	lin_value_text(h, res->key, key, sizeof(key));
	res->text[0] = '\0';
	if (res->verdict == LIN_UNKNOWN) {
		add_text(res->text,
			 "key %s: no answer within the limit of steps", key);
		return;
	}
	lin_value_text(h, blocked->a, a, sizeof(a));
	lin_value_text(h, blocked->b, b, sizeof(b));
	lin_value_text(h, blocked->got, got, sizeof(got));
	add_text(res->text, "key %s: no order explains that process %u's %s",
		 key, blocked->process,
		 lin_call_name((enum lin_call)blocked->call));
	if (blocked->call == LIN_CAS)
		add_text(res->text, " %s -> %s", a, b);
	else if (blocked->call != LIN_READ && blocked->call != LIN_DELETE)
		add_text(res->text, " %s", a);
	if (blocked->call == LIN_READ || blocked->call == LIN_FAA)
		add_text(res->text, " gave %s", got);
	else if (blocked->said != LIN_SAID_NOTHING)
		add_text(res->text, " %s",
			 blocked->said == LIN_YES ? "succeeded"
						  : "was refused");
	add_text(res->text, " (%" PRIu64 "..%" PRIu64 " ns)",
		 blocked->invoke_ns, blocked->return_ns);
}

/* ---- all keys ----------------------------------------------------------- */

struct run {
	const struct lin_history *h;
	struct lin_search *search;
	struct lin_result *res;
	uint64_t steps_left;
};

static int check_key(struct run *r, const struct lin_op **op,
		     const bool *is_unseen, uint64_t count,
		     struct lin_value key)
{
	struct lin_result *res = r->res;
	enum lin_verdict verdict;
	uint32_t blocked;
	int err;

	err = lin_search_run(r->search, op, is_unseen, (uint32_t)count,
			     r->h->initial, &r->steps_left, &verdict, &blocked);
	if (err)
		return err;
	res->keys_violated += verdict == LIN_VIOLATED;
	res->keys_unknown += verdict == LIN_UNKNOWN;
	if (verdict == LIN_LINEARIZABLE || res->verdict == LIN_VIOLATED ||
	    verdict == res->verdict)
		return 0;
	/* A violation is certain, whatever the other keys are. */
	res->verdict = verdict;
	res->key = key;
	res->op = verdict == LIN_VIOLATED ? op[blocked] - r->h->op : -1;
	say(r->h, res, op[blocked]);
	return 0;
}

static int check_calls(const struct lin_history *h, enum lin_model model)
{
	for (uint64_t i = 0; i < h->ops; i++) {
		enum lin_call call = (enum lin_call)h->op[i].call;

		if (!lin_model_has(model, call))
			return error_set(-EINVAL, "a %s has no %s",
					 lin_model_name(model),
					 lin_call_name(call));
	}
	return 0;
}

int lin_check(const struct lin_history *h, enum lin_model model,
	      const struct lin_limits *limits, struct lin_result *res)
{
	struct lin_limits l = limits ? *limits : limits_default;
	struct run r = {.h = h, .res = res, .search = NULL};
	struct parts p;
	uint64_t from = 0;
	int err;

	*res = (struct lin_result){.ops = h->ops,
				   .keys = h->key_table.count,
				   .key = lin_nil(),
				   .op = -1};
	err = check_calls(h, model);
	if (err)
		return err;
	l.steps = l.steps ? l.steps : limits_default.steps;
	l.cache_bytes =
		l.cache_bytes ? l.cache_bytes : limits_default.cache_bytes;
	r.steps_left = l.steps;
	err = parts_make(h, &p);
	if (err)
		return err;
	err = lin_search_create(l.cache_bytes, &r.search);
	for (uint64_t k = 0; !err && k < h->key_table.count; k++) {
		uint64_t n = p.end[k] - from;
		bool marked = find_unseen(&p, p.op + from, &n);

		if (n)
			err = check_key(&r, p.op + from,
					marked ? p.is_unseen : NULL, n,
					h->key[k]);
		from = p.end[k];
	}
	res->steps = l.steps - r.steps_left;
	lin_search_destroy(r.search);
	parts_release(&p);
	return err;
}
