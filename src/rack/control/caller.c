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

void caller_key_format(const struct caller_key *key, char text[CALLER_TEXT])
{
	bool is_mapped = memcmp(key->bytes, mapped, sizeof(mapped)) == 0;
	uint32_t uid;

	memcpy(&uid, key->bytes, sizeof(uid));
	if (key->is_user)
		(void)snprintf(text, CALLER_TEXT, "uid %lu",
			       (unsigned long)uid);
	else if (!inet_ntop(is_mapped ? AF_INET : AF_INET6,
			    key->bytes + (is_mapped ? sizeof(mapped) : 0), text,
			    CALLER_TEXT))
		(void)snprintf(text, CALLER_TEXT, "?"); /* never: it fits */
}

/* ---- the table ------------------------------------------------------------
 */

static struct list *make_heads(unsigned count)
{
	struct list *heads = calloc(count, sizeof(*heads));

	for (unsigned i = 0; heads && i < count; i++)
		list_init(&heads[i]);
	return heads;
}

int callers_init(struct callers *t, unsigned max)
{
	*t = (struct callers){
		.max = max,
		.per_key = u32_max(max / 2, 1),
		.room = 2 * max,
		.caller = calloc(2 * (size_t)max, sizeof(struct caller)),
		.by_fd = make_heads(2 * max),
		.by_key = make_heads(2 * max),
	};
	pthread_mutex_init(&t->lock, NULL);
	if (!t->caller || !t->by_fd || !t->by_key)
		return -ENOMEM;
	for (unsigned i = 0; i < CALLER_PHASES; i++)
		list_init(&t->phase[i]);
	for (unsigned i = 0; i < t->room; i++) {
		list_init(&t->caller[i].in_fd);
		list_init(&t->caller[i].in_key);
		list_append(&t->phase[CALLER_FREE], &t->caller[i].in_phase);
	}
	return 0;
}

void callers_destroy(struct callers *t)
{
	pthread_mutex_destroy(&t->lock);
	free(t->caller);
	free(t->by_fd);
	free(t->by_key);
	t->caller = NULL;
	t->by_fd = t->by_key = NULL;
}

static struct list *head_of_fd(const struct callers *t, int fd)
{
	return &t->by_fd[(unsigned)fd % t->room];
}

static struct list *head_of_key(const struct callers *t,
				const struct caller_key *key)
{
	uint32_t hash = key->is_user;

	/* Whoever chooses addresses to meet in one list has few of them. */
	for (unsigned i = 0; i < sizeof(key->bytes); i++)
		hash = hash * 31 + key->bytes[i];
	return &t->by_key[hash % t->room];
}

static bool is_live(const struct caller *c)
{
	return c->phase != CALLER_FREE && c->phase != CALLER_ENDED;
}

static bool has_too_many(const struct callers *t, const struct caller_key *key)
{
	const struct list *head = head_of_key(t, key);
	unsigned n = 0;

	for (const struct list *l = head->next; l != head && n < t->per_key;
	     l = l->next)
		n += caller_key_equal(
			key, &container_of(l, struct caller, in_key)->key);
	return n >= t->per_key;
}

static void set_phase(struct callers *t, struct caller *c,
		      enum caller_phase phase, uint64_t now_ns)
{
	c->phase = phase;
	c->since_ns = now_ns;
	list_remove(&c->in_phase);
	list_append(&t->phase[phase], &c->in_phase);
}

static void forget_live(struct callers *t, struct caller *c)
{
	if (!is_live(c))
		return;
	list_remove(&c->in_key);
	t->live_count--;
}

static void end(struct callers *t, struct caller *c)
{
	forget_live(t, c);
	set_phase(t, c, CALLER_ENDED, c->since_ns);
	(void)shutdown(c->fd, SHUT_RDWR); /* it may have ended by itself */
}

/* The one of a phase that has been in it for longest, of this key or of any. */
static struct caller *oldest(const struct callers *t, enum caller_phase phase,
			     const struct caller_key *key)
{
	const struct list *head = &t->phase[phase];

	for (struct list *l = head->next; l != head; l = l->next) {
		struct caller *c = container_of(l, struct caller, in_phase);

		if (!key || caller_key_equal(key, &c->key))
			return c;
	}
	return NULL;
}

/* Who has not finished a request goes before who has, and the oldest of them
 * first; who is being served stays. */
static bool spare(struct callers *t, const struct caller_key *key)
{
	static const enum caller_phase order[] = {CALLER_SENDS, CALLER_READS,
						  CALLER_IDLE};

	for (unsigned i = 0; i < ARRAY_LEN(order); i++) {
		struct caller *c = oldest(t, order[i], key);

		if (!c)
			continue;
		end(t, c);
		t->ended_for_others++;
		return true;
	}
	return false;
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
	if (has_too_many(t, key) && !spare(t, key))
		return NULL;
	if (t->live_count >= t->max && !spare(t, NULL))
		return NULL;
	return oldest(t, CALLER_FREE, NULL);
}

int callers_admit(struct callers *t, int fd, uint64_t now_ns,
		  struct caller **out)
{
	char text[CALLER_TEXT];
	struct caller_key key;
	int err = caller_key_of(fd, &key, text);
	struct caller *c;

	if (err)
		return err;
	pthread_mutex_lock(&t->lock);
	c = place(t, &key);
	if (c) {
		c->fd = fd;
		c->is_linked = false;
		c->key = key;
		memcpy(c->text, text, sizeof(c->text));
		caller_key_format(&key, c->origin);
		c->bytes_before = 0;
		c->certificate[0] = 0;
		set_phase(t, c, CALLER_SENDS, now_ns);
		list_append(head_of_fd(t, fd), &c->in_fd);
		list_append(head_of_key(t, &key), &c->in_key);
		t->live_count++;
	} else {
		t->refused++;
	}
	pthread_mutex_unlock(&t->lock);
	*out = c;
	return c ? 0 : -EAGAIN;
}

struct caller *callers_link(struct callers *t, int fd)
{
	const struct list *head = head_of_fd(t, fd);
	struct caller *found = NULL;

	pthread_mutex_lock(&t->lock);
	for (struct list *l = head->next; l != head && !found; l = l->next) {
		struct caller *c = container_of(l, struct caller, in_fd);

		if (c->fd == fd && !c->is_linked)
			found = c;
	}
	if (found)
		found->is_linked = true;
	pthread_mutex_unlock(&t->lock);
	return found;
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

/* The system is asked before the lock is taken: all connections share it. */
void callers_phase(struct callers *t, struct caller *c, enum caller_phase phase,
		   uint64_t now_ns)
{
	uint64_t bytes = phase == CALLER_IDLE ? bytes_received(c) : 0;

	pthread_mutex_lock(&t->lock);
	if (c->phase != CALLER_ENDED && c->phase != phase) {
		set_phase(t, c, phase, now_ns);
		if (phase == CALLER_IDLE)
			c->bytes_before = bytes;
	}
	pthread_mutex_unlock(&t->lock);
}

void callers_leave(struct callers *t, struct caller *c)
{
	pthread_mutex_lock(&t->lock);
	forget_live(t, c);
	list_remove(&c->in_fd);
	set_phase(t, c, CALLER_FREE, 0);
	pthread_mutex_unlock(&t->lock);
}

/* Idle ones whose next request has begun, byte by byte perhaps. */
static void find_begun(struct callers *t, uint64_t now_ns)
{
	const struct list *head = &t->phase[CALLER_IDLE];
	struct list *next;

	for (struct list *l = head->next; l != head; l = next) {
		struct caller *c = container_of(l, struct caller, in_phase);

		next = l->next;
		if (bytes_received(c) != c->bytes_before)
			set_phase(t, c, CALLER_SENDS, now_ns);
	}
}

static void end_late(struct callers *t, enum caller_phase phase,
		     uint64_t most_ms, uint64_t now_ns)
{
	struct caller *c = oldest(t, phase, NULL);

	/* A phase may have begun since the caller looked at the clock. */
	for (; c && now_ns > c->since_ns + most_ms * 1000000;
	     c = oldest(t, phase, NULL)) {
		end(t, c);
		t->ended_late++;
	}
}

void callers_tick(struct callers *t, uint64_t now_ns)
{
	pthread_mutex_lock(&t->lock);
	find_begun(t, now_ns);
	end_late(t, CALLER_SENDS, CALLER_REQUEST_MS, now_ns);
	end_late(t, CALLER_READS, CALLER_REPLY_MS, now_ns);
	end_late(t, CALLER_IDLE, CALLER_IDLE_MS, now_ns);
	pthread_mutex_unlock(&t->lock);
}
