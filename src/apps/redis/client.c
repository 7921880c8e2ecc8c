/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of one client, and the loop over its commands. */
#include "client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bound.h"
#include "command.h"

void client_init(struct client *s, struct gateway *g, const char *address)
{
	*s = (struct client){
		.id = 1 + atomic_fetch_add_explicit(&g->group->last_id, 1,
						    memory_order_relaxed),
		.since_ms = clock_mono_ms(),
		.is_trusted = !g->options->password,
		.out = {.proto = 2, .limit = g->options->output_bytes_max},
	};
	s->active_ms = s->since_ms;
	(void)snprintf(s->address, sizeof(s->address), "%s", address);
	list_append(&g->clients, &s->link);
	g->client_count++;
	g->stats.connections++;
}

void client_release(struct gateway *g, struct client *s)
{
	g->client_count--;
	bound_count(g, 0 - s->counted_bytes);
	if (s->resume_ms)
		g->paused_count--;
	list_remove(&s->link);
	multi_release(&s->multi);
	resp_parser_release(&s->parser);
	reply_release(&s->out);
	free(s->in);
}

/* Moves what is left to the front: nothing points into the buffer now. */
static void compact(struct client *s)
{
	memmove(s->in, s->in + s->in_at, s->in_len - s->in_at);
	s->in_len -= s->in_at;
	s->in_at = 0;
}

int client_space(const struct gateway *g, struct client *s, char **at,
		 size_t *len)
{
	size_t limit = g->options->query_bytes_max;
	size_t want = resp_want_bytes(&s->parser);

	if (s->in_at)
		compact(s);
	if (s->in_len >= limit || want > limit)
		return -E2BIG;
	if (s->in_capacity == s->in_len) {
		/* Not at once what it says will come: saying it is free. */
		size_t capacity = u64_max(2 * s->in_len, GATEWAY_READ_BYTES);

		if (s->parser.in_bulk)
			capacity = u64_min(capacity, want + GATEWAY_READ_BYTES);
		capacity = u64_min(capacity, limit);
		char *more = realloc(s->in, capacity);

		if (!more)
			return -ENOMEM;
		s->in = more;
		s->in_capacity = capacity;
	}
	*at = s->in + s->in_len;
	*len = s->in_capacity - s->in_len;
	return 0;
}

void client_run(struct gateway *g, struct client *s)
{
	struct resp_limits limits = {.bulk_max = AQ_KV_VALUE_MAX};
	int ready;

	while (!s->is_ending && !client_is_full(s) && !s->resume_ms &&
	       !s->out.is_lost && s->in_at < s->in_len) {
		char *buf = s->in + s->in_at;

		limits.is_stranger = !s->is_trusted;
		ready = resp_parse(&s->parser, buf, s->in_len - s->in_at,
				   &limits);
		if (ready == 0)
			break;
		if (ready < 0) {
			batch_flush(g);
			g->stats.errors_protocol++;
			reply_error(&s->out, "ERR %s",
				    ready == -EPROTO ? s->parser.error
						     : "no memory");
			s->is_ending = true;
			break;
		}
		if (s->parser.argc)
			command_run(g, s, buf);
		s->in_at += s->parser.at;
		resp_parser_next(&s->parser);
	}
}

void client_sent(struct client *s, size_t len)
{
	s->out_at += len;
	if (s->out_at < s->out.len)
		return;
	s->out_at = 0;
	s->out.len = 0;
	if (s->out.capacity > GATEWAY_KEEP_BYTES)
		reply_release(&s->out);
	if (s->in_at == s->in_len && s->in_capacity > GATEWAY_KEEP_BYTES) {
		free(s->in);
		s->in = NULL;
		s->in_at = s->in_len = s->in_capacity = 0;
	}
}

void client_filled(struct gateway *g, struct client *s, size_t len)
{
	s->in_len += len;
	s->active_ms = clock_mono_ms();
	g->stats.bytes_in += len;
	client_run(g, s);
}
