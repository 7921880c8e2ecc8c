/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of what clients may use up. */
#include "bound.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"

enum {
	/* Descriptors that are no client's: listeners, the NIC, the nodes. */
	OWN_DESCRIPTORS = 128,
	/* A wrong password is answered so late. Nobody else waits. */
	WRONG_PASSWORD_MS = 1000,
};

static bool is_loopback(const char *address)
{
	struct in6_addr six;
	struct in_addr four;

	if (inet_pton(AF_INET, address, &four) == 1)
		return ntohl(four.s_addr) >> 24 == 127;
	return inet_pton(AF_INET6, address, &six) == 1 &&
	       IN6_IS_ADDR_LOOPBACK(&six);
}

int bound_check_address(const struct redis_options *o)
{
	if (o->port < 0 || o->password || o->is_open_to_all || !o->bind ||
	    is_loopback(o->bind))
		return 0;
	return error_set(-EACCES,
			 "without a password the gateway listens on loopback "
			 "addresses only, not on %.64s: give --password-file, "
			 "or --protected-mode no if everybody there may have "
			 "the table",
			 o->bind);
}

uint32_t bound_clients(uint32_t wanted)
{
	struct rlimit limit;
	uint64_t fit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return wanted;
	if (limit.rlim_cur < limit.rlim_max) {
		struct rlimit all = {limit.rlim_max, limit.rlim_max};

		if (setrlimit(RLIMIT_NOFILE, &all) == 0)
			limit = all;
	}
	if (limit.rlim_cur == RLIM_INFINITY)
		return wanted;
	fit = limit.rlim_cur >= 2 * OWN_DESCRIPTORS
		      ? limit.rlim_cur - OWN_DESCRIPTORS
		      : u64_max(limit.rlim_cur / 2, 1);
	if (wanted <= fit)
		return wanted;
	log_warn("redis",
		 "at most %u clients instead of %u: the process may have %llu "
		 "descriptors (ulimit -n)",
		 (uint32_t)fit, wanted, (unsigned long long)limit.rlim_cur);
	return (uint32_t)fit;
}

/* ---- memory ------------------------------------------------------------- */

static uint64_t bytes_of(const struct client *s)
{
	return s->in_capacity + s->out.capacity + s->multi.bytes +
	       (uint64_t)s->parser.capacity * sizeof(*s->parser.span);
}

void bound_count(struct gateway *g, uint64_t more)
{
	if (!more)
		return;
	(void)atomic_fetch_add_explicit(&g->client_bytes, more,
					memory_order_relaxed);
	(void)atomic_fetch_add_explicit(&g->group->client_bytes, more,
					memory_order_relaxed);
}

void bound_account(struct gateway *g, struct client *s)
{
	uint64_t now = bytes_of(s);

	bound_count(g, now - s->counted_bytes);
	s->counted_bytes = now;
}

struct client *bound_largest(const struct gateway *g)
{
	struct client *most = NULL;
	struct list *at;

	if (!group_is_largest(g))
		return NULL;
	for (at = g->clients.next; at != &g->clients; at = at->next) {
		struct client *s = container_of(at, struct client, link);

		if (!most || s->counted_bytes > most->counted_bytes)
			most = s;
	}
	return most;
}

/* ---- passwords ---------------------------------------------------------- */

void bound_pause(struct gateway *g, struct client *s)
{
	g->stats.wrong_passwords++;
	if (!s->resume_ms)
		g->paused_count++;
	s->resume_ms = clock_mono_ms() + WRONG_PASSWORD_MS;
}

bool bound_resume(struct gateway *g, struct client *s, uint64_t mono_ms)
{
	if (!s->resume_ms || mono_ms < s->resume_ms)
		return false;
	s->resume_ms = 0;
	g->paused_count--;
	return true;
}
