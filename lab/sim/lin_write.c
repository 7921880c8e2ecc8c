/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a history as JSON lines. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "lin_file.h"
#include "lin_priv.h"

/* Numbers for processes: an operation that runs beside another one has a
 * number of its own, and one whose operation never ended is not used again. */
struct numbers {
	uint32_t *free; /* a stack */
	uint32_t frees;
	uint32_t next;
	uint32_t *of; /* by operation */
};

struct event {
	uint64_t pos;
	uint32_t op;
	bool is_return;
};

static int by_pos(const void *x, const void *y)
{
	const struct event *a = x, *b = y;

	return a->pos < b->pos ? -1 : a->pos > b->pos;
}

/* Bytes that are no plain text become hexadecimal digits behind 0x. */
static void put_bytes(const struct lin_history *h, struct lin_value v,
		      FILE *out)
{
	const struct lin_span *s = &h->text[v.bits];
	const uint8_t *p = h->bytes + s->offset;
	bool plain = true;

	for (uint64_t i = 0; i < s->len_bytes; i++)
		plain = plain && isprint(p[i]) && p[i] != '"' && p[i] != '\\';
	fputs(plain ? "\"" : "\"0x", out);
	for (uint64_t i = 0; i < s->len_bytes; i++) {
		if (plain)
			fputc(p[i], out);
		else
			fprintf(out, "%02x", p[i]);
	}
	fputc('"', out);
}

static void put_value(const struct lin_history *h, struct lin_value v,
		      FILE *out)
{
	if (v.kind == LIN_NIL)
		fputs("null", out);
	else if (v.kind == LIN_INT)
		fprintf(out, "%" PRId64, (int64_t)v.bits);
	else
		put_bytes(h, v, out);
}

static void put_argument(const struct lin_history *h, const struct lin_op *op,
			 FILE *out)
{
	if (op->call != LIN_CAS) {
		put_value(h, op->a, out);
		return;
	}
	fputc('[', out);
	put_value(h, op->a, out);
	fputc(',', out);
	put_value(h, op->b, out);
	fputc(']', out);
}

static void put_result(const struct lin_history *h, const struct lin_op *op,
		       FILE *out)
{
	if (op->type != LIN_OK || op->call == LIN_WRITE)
		put_argument(h, op, out);
	else if (op->call == LIN_READ || op->call == LIN_FAA)
		put_value(h, op->got, out);
	else if (op->said == LIN_SAID_NOTHING)
		fputs("null", out);
	else
		fputs(op->said == LIN_YES ? "true" : "false", out);
}

static void put_line(const struct lin_history *h, const struct event *e,
		     uint32_t process, uint64_t index, FILE *out)
{
	static const char *const types[] = {"open", "ok", "fail", "info"};
	const struct lin_op *op = &h->op[e->op];

	fprintf(out,
		"{\"index\":%" PRIu64 ",\"process\":%u,\"type\":\"%s\","
		"\"f\":\"%s\",\"key\":",
		index, process, e->is_return ? types[op->type] : "invoke",
		lin_call_name((enum lin_call)op->call));
	put_value(h, h->key[op->key], out);
	fputs(",\"value\":", out);
	if (e->is_return)
		put_result(h, op, out);
	else
		put_argument(h, op, out);
	fprintf(out, ",\"time\":%" PRIu64 ",\"thread\":%u}\n",
		e->is_return ? op->return_ns : op->invoke_ns, op->process);
}

static uint32_t number_take(struct numbers *n, uint32_t op)
{
	n->of[op] = n->frees ? n->free[--n->frees] : n->next++;
	return n->of[op];
}

static uint32_t number_give(struct numbers *n, const struct lin_history *h,
			    uint32_t op)
{
	if (h->op[op].type != LIN_INFO)
		n->free[n->frees++] = n->of[op];
	return n->of[op];
}

/* Failed and unknown ends have no place among the events: a failed operation's
 * may be anywhere after its call, an unknown one's at the end. */
static uint64_t events_make(const struct lin_history *h, struct event *ev)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < h->ops; i++) {
		const struct lin_op *op = &h->op[i];

		ev[n++] = (struct event){2 * op->invoke_pos, i, false};
		if (op->type == LIN_OK)
			ev[n++] = (struct event){2 * op->return_pos, i, true};
		else if (op->type == LIN_FAIL)
			ev[n++] =
				(struct event){2 * op->invoke_pos + 1, i, true};
		else if (op->type == LIN_INFO)
			ev[n++] = (struct event){LIN_NEVER, i, true};
	}
	qsort(ev, n, sizeof(*ev), by_pos);
	return n;
}

int lin_history_write(const struct lin_history *h, FILE *out)
{
	struct event *ev = malloc((2 * h->ops + 1) * sizeof(*ev));
	struct numbers n = {.free = malloc((h->ops + 1) * sizeof(*n.free)),
			    .of = malloc((h->ops + 1) * sizeof(*n.of))};
	int err = -ENOMEM;

	if (ev && n.free && n.of) {
		uint64_t count = events_make(h, ev);

		for (uint64_t i = 0; i < count; i++)
			put_line(h, &ev[i],
				 ev[i].is_return ? number_give(&n, h, ev[i].op)
						 : number_take(&n, ev[i].op),
				 i, out);
		err = ferror(out) ? -EIO : 0;
	}
	free(ev);
	free(n.free);
	free(n.of);
	return err;
}
