/* SPDX-License-Identifier: Apache-2.0 */
/* Values and operations of a history as text for people. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lin_priv.h"

enum {
	SHOWN_BYTES = 24,
	VALUE_TEXT = 80,
};

/* Printable bytes in quotes, others as hexadecimal digits. */
static size_t bytes_text(const uint8_t *p, uint64_t len, char *buf, size_t room)
{
	char text[2 * SHOWN_BYTES + 32];
	uint64_t shown = u64_min(len, SHOWN_BYTES);
	bool plain = true;
	size_t n = 0;

	for (uint64_t i = 0; i < shown; i++)
		plain = plain && isprint(p[i]);
	if (plain)
		n = (size_t)snprintf(text, sizeof(text), "\"%.*s\"", (int)shown,
				     (const char *)p);
	for (uint64_t i = 0; !plain && i < shown; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%02x", p[i]);
	if (shown < len)
		snprintf(text + n, sizeof(text) - n, "..%" PRIu64 " B", len);
	return (size_t)snprintf(buf, room, "%s", text);
}

size_t lin_value_text(const struct lin_history *h, struct lin_value v,
		      char *buf, size_t len_bytes)
{
	if (v.kind == LIN_NIL)
		return (size_t)snprintf(buf, len_bytes, "nil");
	if (v.kind == LIN_INT)
		return (size_t)snprintf(buf, len_bytes, "%" PRId64,
					(int64_t)v.bits);
	return bytes_text(h->bytes + h->text[v.bits].offset,
			  h->text[v.bits].len_bytes, buf, len_bytes);
}

static void show_op(const struct lin_history *h, const struct lin_op *op,
		    bool marked, FILE *out)
{
	static const char *const said[] = {"", " yes", " no"};
	static const char *const types[] = {"open", "ok", "fail", "info"};
	char a[VALUE_TEXT], b[VALUE_TEXT];

	fprintf(out, "%c process %-4u %6" PRIu64, marked ? '*' : ' ',
		op->process, op->invoke_pos);
	if (op->return_pos == LIN_NEVER)
		fprintf(out, "..%-6s", "");
	else
		fprintf(out, "..%-6" PRIu64, op->return_pos);
	fprintf(out, " %-6s", lin_call_name((enum lin_call)op->call));
	lin_value_text(h, op->a, a, sizeof(a));
	lin_value_text(h, op->b, b, sizeof(b));
	if (op->call == LIN_CAS)
		fprintf(out, " %s -> %s", a, b);
	else if (op->call != LIN_READ && op->call != LIN_DELETE)
		fprintf(out, " %s", a);
	fprintf(out, " %s%s", types[op->type], said[op->said]);
	lin_value_text(h, op->got, a, sizeof(a));
	if ((op->call == LIN_READ || op->call == LIN_FAA) &&
	    op->said == LIN_YES)
		fprintf(out, " %s", a);
	fputc('\n', out);
}

static bool in_part(const struct lin_history *h, uint64_t i,
		    struct lin_value key, uint64_t until)
{
	return lin_value_equal(h->key[h->op[i].key], key) &&
	       h->op[i].invoke_pos <= until;
}

void lin_show_key(const struct lin_history *h, struct lin_value key, int64_t op,
		  unsigned lines, FILE *out)
{
	uint64_t until = op < 0 ? LIN_NEVER : h->op[op].return_pos;
	uint64_t count = 0, skip;

	for (uint64_t i = 0; i < h->ops; i++)
		count += in_part(h, i, key, until);
	skip = count > lines ? count - lines : 0;
	if (skip)
		fprintf(out, "  (%" PRIu64 " earlier operations)\n", skip);
	for (uint64_t i = 0; i < h->ops; i++) {
		if (!in_part(h, i, key, until))
			continue;
		if (skip)
			skip--;
		else
			show_op(h, &h->op[i], (int64_t)i == op, out);
	}
}
