/* SPDX-License-Identifier: Apache-2.0 */
/* The table of connections of one listening socket. */
#include "caller_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- who ----------------------------------------------------------------- */

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
static const uint8_t loopback4[16] = {[10] = 0xff, 0xff, 127, 0, 0, 1};

static int key_of_user(int fd, struct caller_key *key, char text[CALLER_TEXT])
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	key->is_user = true;
	memcpy(key->bytes, &cred.uid, sizeof(cred.uid));
	(void)snprintf(text, CALLER_TEXT, "uid %lu", (unsigned long)cred.uid);
	return 0;
}

int caller_key_of(int fd, struct caller_key *key, char text[CALLER_TEXT])
{
	struct sockaddr_storage ss;
	const struct sockaddr_in *in = (struct sockaddr_in *)&ss;
	const struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&ss;
	socklen_t len = sizeof(ss);
	char ip[INET6_ADDRSTRLEN] = "?";

	*key = (struct caller_key){.is_user = false};
	if (getpeername(fd, (struct sockaddr *)&ss, &len) < 0)
		return -errno;
	if (ss.ss_family == AF_UNIX)
		return key_of_user(fd, key, text);
	if (ss.ss_family == AF_INET) {
		memcpy(key->bytes, mapped, sizeof(mapped));
		memcpy(key->bytes + 12, &in->sin_addr, 4);
		(void)inet_ntop(AF_INET, &in->sin_addr, ip, sizeof(ip));
		(void)snprintf(text, CALLER_TEXT, "%s:%u", ip,
			       ntohs(in->sin_port));
	} else {
		memcpy(key->bytes, &in6->sin6_addr, 16);
		(void)inet_ntop(AF_INET6, &in6->sin6_addr, ip, sizeof(ip));
		(void)snprintf(text, CALLER_TEXT, "[%s]:%u", ip,
			       ntohs(in6->sin6_port));
	}
	if (memcmp(key->bytes, &in6addr_loopback, 16) == 0 ||
	    (memcmp(key->bytes, mapped, sizeof(mapped)) == 0 &&
	     key->bytes[12] == 127))
		memcpy(key->bytes, loopback4, sizeof(loopback4));
	else if (memcmp(key->bytes, mapped, sizeof(mapped)) != 0)
		memset(key->bytes + 8, 0, 8); /* a host may have all of it */
	return 0;
}

bool caller_key_equal(const struct caller_key *a, const struct caller_key *b)
{
	return a->is_user == b->is_user &&
	       memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

bool caller_key_is_loopback(const struct caller_key *key)
{
	return key->is_user ||
	       memcmp(key->bytes, loopback4, sizeof(loopback4)) == 0;
}

/* ---- the table ------------------------------------------------------------
 */

int callers_init(struct callers *t, unsigned max)
{
	*t = (struct callers){
		.max = max,
		.per_key = u32_max(max / 2, 1),
		.room = 2 * max,
		.caller = calloc(2 * (size_t)max, sizeof(struct caller)),
	};
	if (!t->caller)
		return -ENOMEM;
	pthread_mutex_init(&t->lock, NULL);
	return 0;
}

void callers_destroy(struct callers *t)
{
	if (!t->caller)
		return;
	pthread_mutex_destroy(&t->lock);
	free(t->caller);
	t->caller = NULL;
}

static bool is_live(const struct caller *c)
{
	return c->phase != CALLER_FREE && c->phase != CALLER_ENDED;
}

/* How many of this key, or of all (NULL), there are. */
static unsigned count(const struct callers *t, const struct caller_key *key)
{
	unsigned n = 0;

	for (unsigned i = 0; i < t->room; i++)
		n += is_live(&t->caller[i]) &&
		     (!key || caller_key_equal(key, &t->caller[i].key));
	return n;
}

static void end(struct caller *c)
{
	c->phase = CALLER_ENDED;
	(void)shutdown(c->fd, SHUT_RDWR); /* it may have ended by itself */
}

/* Who has not finished a request goes before who has, and the oldest of them
 * first; who is being served stays. */
static bool spare(struct callers *t, const struct caller_key *key)
{
	struct caller *best = NULL;

	for (unsigned i = 0; i < t->room; i++) {
		struct caller *c = &t->caller[i];

		if (!is_live(c) || c->phase == CALLER_SERVED ||
		    (key && !caller_key_equal(key, &c->key)))
			continue;
		if (!best || c->phase < best->phase ||
		    (c->phase == best->phase && c->since_ns < best->since_ns))
			best = c;
	}
	if (!best)
		return false;
	end(best);
	t->ended_for_others++;
	return true;
}

bool callers_spare(struct callers *t)
{
	bool done;

	pthread_mutex_lock(&t->lock);
	done = spare(t, NULL);
	pthread_mutex_unlock(&t->lock);
	return done;
}

static struct caller *place(struct callers *t, const struct caller_key *key)
{
	if (count(t, key) >= t->per_key && !spare(t, key))
		return NULL;
	if (count(t, NULL) >= t->max && !spare(t, NULL))
		return NULL;
	for (unsigned i = 0; i < t->room; i++)
		if (t->caller[i].phase == CALLER_FREE)
			return &t->caller[i];
	return NULL;
}

int callers_admit(struct callers *t, int fd, uint64_t now_ns,
		  struct caller **out)
{
	struct caller fresh = {
		.phase = CALLER_SENDS, .fd = fd, .since_ns = now_ns};
	int err = caller_key_of(fd, &fresh.key, fresh.text);
	struct caller *c;

	if (err)
		return err;
	pthread_mutex_lock(&t->lock);
	c = place(t, &fresh.key);
	if (c)
		*c = fresh;
	else
		t->refused++;
	pthread_mutex_unlock(&t->lock);
	*out = c;
	return c ? 0 : -EAGAIN;
}

struct caller *callers_link(struct callers *t, int fd)
{
	struct caller *c = NULL;

	pthread_mutex_lock(&t->lock);
	for (unsigned i = 0; i < t->room && !c; i++)
		if (t->caller[i].phase != CALLER_FREE &&
		    t->caller[i].fd == fd && !t->caller[i].is_linked)
			c = &t->caller[i];
	if (c)
		c->is_linked = true;
	pthread_mutex_unlock(&t->lock);
	return c;
}

/* 0 where it cannot be known. */
static uint64_t bytes_received(const struct caller *c)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	if (c->key.is_user ||
	    getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		return 0;
	return info.tcpi_bytes_received;
}

void callers_phase(struct callers *t, struct caller *c, enum caller_phase phase,
		   uint64_t now_ns)
{
	pthread_mutex_lock(&t->lock);
	if (c->phase != CALLER_ENDED && c->phase != phase) {
		c->phase = phase;
		c->since_ns = now_ns;
		c->bytes_before = bytes_received(c);
	}
	pthread_mutex_unlock(&t->lock);
}

void callers_leave(struct callers *t, struct caller *c)
{
	pthread_mutex_lock(&t->lock);
	c->phase = CALLER_FREE;
	pthread_mutex_unlock(&t->lock);
}

static bool is_late(const struct caller *c, uint64_t now_ns)
{
	static const uint64_t most_ms[] = {
		[CALLER_SENDS] = CALLER_REQUEST_MS,
		[CALLER_READS] = CALLER_REPLY_MS,
		[CALLER_IDLE] = CALLER_IDLE_MS,
	};

	return is_live(c) && c->phase != CALLER_SERVED &&
	       now_ns - c->since_ns > most_ms[c->phase] * 1000000;
}

void callers_tick(struct callers *t, uint64_t now_ns)
{
	pthread_mutex_lock(&t->lock);
	for (unsigned i = 0; i < t->room; i++) {
		struct caller *c = &t->caller[i];

		/* The next request has begun, byte by byte perhaps. */
		if (c->phase == CALLER_IDLE &&
		    bytes_received(c) != c->bytes_before) {
			c->phase = CALLER_SENDS;
			c->since_ns = now_ns;
		}
		if (is_late(c, now_ns)) {
			end(c);
			t->ended_late++;
		}
	}
	pthread_mutex_unlock(&t->lock);
}
