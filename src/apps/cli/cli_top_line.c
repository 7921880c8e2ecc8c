/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of `aquifer top`: clients put together by process, kind, object or
 * tenant. */
#include <string.h>

#include "cli_top.h"

bool cli_top_same_kind(const struct cli_top_client *a,
		       const struct cli_top_client *b)
{
	return a->kind == b->kind;
}

bool cli_top_same_tenant(const struct cli_top_client *a,
			 const struct cli_top_client *b)
{
	return strcmp(a->tenant, b->tenant) == 0;
}

bool cli_top_same_object(const struct cli_top_client *a,
			 const struct cli_top_client *b)
{
	return a->kind == b->kind && strcmp(a->object, b->object) == 0 &&
	       cli_top_same_tenant(a, b);
}

bool cli_top_same_client(const struct cli_top_client *a,
			 const struct cli_top_client *b)
{
	return a->pid == b->pid && cli_top_same_object(a, b);
}

bool cli_top_same_all(const struct cli_top_client *a,
		      const struct cli_top_client *b)
{
	return true;
}

/* Whether an earlier client has begun the line. */
static bool is_begun(const struct cli_top_sample *s, unsigned at,
		     cli_top_same_fn is_same)
{
	for (unsigned i = 0; i < at; i++)
		if (is_same(&s->client[i], &s->client[at]))
			return true;
	return false;
}

bool cli_top_line_next(const struct cli_top_sample *s, cli_top_same_fn is_same,
		       unsigned *cursor, struct cli_top_line *line)
{
	unsigned i, k;

	while (*cursor < s->client_count && is_begun(s, *cursor, is_same))
		++*cursor;
	if (*cursor == s->client_count)
		return false;
	memset(line, 0, sizeof(*line));
	line->first = &s->client[*cursor];
	for (i = (*cursor)++; i < s->client_count; i++) {
		const struct cli_top_client *c = &s->client[i];

		if (!is_same(line->first, c))
			continue;
		line->clients++;
		for (k = 0; k < TALLY_COUNT; k++)
			line->count[k] += c->count[k];
		hist_merge(&line->latency, &c->latency);
	}
	for (k = 0; k < TALLY_OPERATIONS; k++)
		line->operations += line->count[k];
	return true;
}
