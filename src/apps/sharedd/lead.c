/* SPDX-License-Identifier: Apache-2.0 */
/* Join, connect, beat, leave. */
#include "lead.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/log.h"
#include "client/shared.h"
#include "coherence/lease.h"

enum {
	CALL_MS = 1000,
	CONNECT_MS = 2500, /* the lead asks the switch; beats wait meanwhile */
	RETRY_MS = 250,
	REPLY_MAX = 1 << 16,
	MEMBER_MAX = 64,
	NAME_MAX_BYTES = 64,
	WANTS = 256,
	MS = 1000000,
};

struct shd_lead {
	/* Of the thread. */
	struct client_http *http;
	struct client_node node;
	char token[CLIENT_TOKEN_MAX];
	char name[NAME_MAX_BYTES];
	char member[MEMBER_MAX]; /* "": not yet */
	uint64_t size_bytes;
	int event;
	pthread_t thread;
	bool is_started;
	/* Both threads, under the lock. */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool is_ending;
	bool has_ends;
	struct shd_ends ends;
	struct shd_news news;
	/* Rings; what was asked and not taken yet is WANTS at most. */
	struct shd_want want[WANTS];
	struct shd_got got[WANTS];
	uint32_t want_begin, want_end, got_begin, got_end;
};

static int call_within(struct shd_lead *l, uint32_t ms, const char *method,
		       const char *path, json_t *body, json_t **reply)
{
	const struct client_caller c = {.http = l->http, .token = l->token};

	return client_call(&c, &l->node, method, path, body, ms, REPLY_MAX,
			   reply);
}

static int call(struct shd_lead *l, const char *method, const char *path,
		json_t *body, json_t **reply)
{
	return call_within(l, CALL_MS, method, path, body, reply);
}

/* ---- bodies -------------------------------------------------------------- */

static json_t *gid_text(const union ibv_gid *gid)
{
	char text[2 * sizeof(gid->raw) + 1];

	hex_write(text, gid->raw, sizeof(gid->raw));
	return json_string(text);
}

static json_t *write_ends(const struct shd_lead *l, const struct shd_ends *e)
{
	json_t *lanes = json_array(), *body;

	for (uint32_t i = 0; i < e->lane_count; i++)
		(void)json_array_append_new(
			lanes, json_pack("{s:I, s:I}", "qpn",
					 (json_int_t)e->lane_qpn[i], "psn",
					 (json_int_t)e->lane_psn[i]));
	body = json_pack("{s:s, s:o, s:I, s:{s:I, s:I}, s:o}", "proto", "1.0",
			 "gid", gid_text(&e->gid), "mtu", (json_int_t)e->mtu,
			 "talk", "qpn", (json_int_t)e->talk_qpn, "psn",
			 (json_int_t)e->talk_psn, "lanes", lanes);
	if (body && !l->member[0])
		(void)json_object_set_new(body, "name", json_string(l->name));
	return body;
}

static int read_u32(const json_t *tree, const char *key, uint32_t max,
		    uint32_t *out)
{
	uint64_t v;
	int err = client_json_u64(tree, key, max, &v);

	if (!err)
		*out = (uint32_t)v;
	return err;
}

static int read_gid(const json_t *tree, union ibv_gid *out)
{
	const char *text = json_string_value(json_object_get(tree, "gid"));

	return hex_read(text, out->raw, sizeof(out->raw)) ? 0 : -EPROTO;
}

static int read_place(const json_t *tree, uint32_t lane_count,
		      struct shd_place *out)
{
	const json_t *talk = json_object_get(tree, "talk");
	const json_t *lanes = json_object_get(tree, "lanes");
	const json_t *keys = json_object_get(tree, "keys");
	struct shd_place p = {.was_member = json_is_true(
				      json_object_get(tree, "was_member"))};
	uint32_t number = 0;
	int err = read_u32(tree, "number", UINT8_MAX, &number);

	if (!err)
		err = read_u32(tree, "term", UINT32_MAX, &p.term);
	if (!err)
		err = read_gid(tree, &p.gid);
	if (!err)
		err = read_u32(tree, "mtu", 4096, &p.mtu);
	if (!err)
		err = read_u32(talk, "qpn", 0xffffff, &p.talk_qpn);
	if (!err)
		err = read_u32(talk, "psn", 0xffffff, &p.talk_psn);
	if (!err)
		err = read_u32(keys, "read", UINT32_MAX, &p.read_key);
	if (!err)
		err = read_u32(keys, "write", UINT32_MAX, &p.write_key);
	if (!err)
		err = read_u32(keys, "give", UINT32_MAX, &p.give_key);
	if (!err && json_array_size(lanes) != lane_count)
		err = -EPROTO;
	for (uint32_t i = 0; !err && i < lane_count; i++)
		err = read_u32(json_array_get(lanes, i), "qpn", 0xffffff,
			       &p.lane_qpn[i]);
	p.number = (uint8_t)number;
	if (!err)
		*out = p;
	return err ? error_set(err, "the lead's answer makes no sense") : 0;
}

/* ---- calls --------------------------------------------------------------- */

static void tell(const struct shd_lead *l)
{
	uint64_t one = 1;

	(void)!write(l->event, &one, sizeof(one)); /* full: it is readable */
}

static int try_connect(struct shd_lead *l, const struct shd_ends *ends,
		       struct shd_place *place)
{
	char path[128] = "/v1/shared/members";
	json_t *reply = NULL;
	int err;

	if (l->member[0])
		(void)snprintf(path, sizeof(path),
			       "/v1/shared/members/%s/connect", l->member);
	err = call_within(l, CONNECT_MS, "POST", path, write_ends(l, ends),
			  &reply);
	if (!err)
		err = read_place(reply, ends->lane_count, place);
	if (!err && !l->member[0])
		err = client_json_word(reply, "member", l->member,
				       sizeof(l->member));
	json_decref(reply);
	return err;
}

/* Returns when to try again; 0: it is done. */
static uint64_t go_connect(struct shd_lead *l, const struct shd_ends *ends)
{
	uint64_t sent_ns = clock_mono_ns();
	bool is_first = !l->member[0];
	struct shd_place place;
	int err = try_connect(l, ends, &place);

	pthread_mutex_lock(&l->lock);
	if (l->has_ends && memcmp(ends, &l->ends, sizeof(*ends)) != 0)
		err = -EAGAIN; /* they are others by now */
	else if (!err || err == -ESTALE)
		l->has_ends = false;
	l->news.err = err;
	l->news.is_stale |= err == -ESTALE;
	if (!err) {
		l->news.has_place = true;
		l->news.place = place;
		l->news.term = place.term;
		if (is_first)
			l->news.sent_ns = sent_ns;
	}
	pthread_mutex_unlock(&l->lock);
	tell(l);
	if (err && err != -EHOSTDOWN && err != -EAGAIN)
		log_warn("shared", "the lead: %s", error_last());
	return err && err != -ESTALE ? clock_mono_ns() + RETRY_MS * MS : 0;
}

static void beat(struct shd_lead *l)
{
	uint64_t sent_ns = clock_mono_ns();
	json_t *reply = NULL;
	uint64_t size_bytes = 0;
	uint32_t term = 0;
	char path[128];
	int err;

	(void)snprintf(path, sizeof(path), "/v1/shared/members/%s/beat",
		       l->member);
	err = call(l, "POST", path, json_object(), &reply);
	if (!err)
		err = read_u32(reply, "term", UINT32_MAX, &term);
	if (!err)
		err = client_json_u64(reply, "extent", INT64_MAX, &size_bytes);
	json_decref(reply);
	pthread_mutex_lock(&l->lock);
	if (!err) {
		l->news.size_bytes = size_bytes;
		l->news.term = term;
		l->news.sent_ns = sent_ns;
	} else if (err == -ESTALE) {
		l->news.is_stale = true;
	}
	pthread_mutex_unlock(&l->lock);
	tell(l);
}

static void leave(struct shd_lead *l)
{
	json_t *reply = NULL;
	char path[128];

	(void)snprintf(path, sizeof(path), "/v1/shared/members/%s", l->member);
	/* Or the lease ends. */
	(void)!call(l, "DELETE", path, NULL, &reply);
	json_decref(reply);
}

/* One of them, under the lock but for the call. */
static void do_want(struct shd_lead *l)
{
	const struct client_caller c = {.http = l->http, .token = l->token};
	struct shd_want want = l->want[l->want_begin++ % WANTS];
	struct shd_got got;

	pthread_mutex_unlock(&l->lock);
	shd_want_do(&c, &l->node, l->member, &want, &got);
	pthread_mutex_lock(&l->lock);
	l->got[l->got_end++ % WANTS] = got;
	tell(l);
}

int shd_lead_want(struct shd_lead *l, const struct shd_want *want)
{
	int err = 0;

	pthread_mutex_lock(&l->lock);
	if (l->want_end - l->got_begin == WANTS) {
		err = -EAGAIN;
	} else {
		l->want[l->want_end++ % WANTS] = *want;
		pthread_cond_signal(&l->wake);
	}
	pthread_mutex_unlock(&l->lock);
	return err;
}

bool shd_lead_got(struct shd_lead *l, struct shd_got *out)
{
	bool has;

	pthread_mutex_lock(&l->lock);
	has = l->got_begin != l->got_end;
	if (has)
		*out = l->got[l->got_begin++ % WANTS];
	pthread_mutex_unlock(&l->lock);
	return has;
}

/* ---- the thread ---------------------------------------------------------- */

static void wait_until(struct shd_lead *l, uint64_t at_ns)
{
	struct timespec t = {.tv_sec = (time_t)(at_ns / 1000000000u),
			     .tv_nsec = (long)(at_ns % 1000000000u)};

	(void)pthread_cond_timedwait(&l->wake, &l->lock, &t);
}

static void *run(void *arg)
{
	struct shd_lead *l = arg;
	uint64_t beat_ns = 0, retry_ns = 0;

	pthread_mutex_lock(&l->lock);
	while (!l->is_ending && !l->news.is_stale) {
		struct shd_ends ends = l->ends;
		uint64_t now_ns = clock_mono_ns();
		bool must_connect = l->has_ends && now_ns >= retry_ns;
		bool must_beat = l->member[0] && now_ns >= beat_ns;

		if (!must_connect && !must_beat && l->member[0] &&
		    l->want_begin != l->want_end) {
			do_want(l);
			continue;
		}
		if (!must_connect && !must_beat) {
			uint64_t at_ns = now_ns + COH_HEARTBEAT_NS;

			if (l->member[0])
				at_ns = u64_min(at_ns, beat_ns);
			if (l->has_ends)
				at_ns = u64_min(at_ns, retry_ns);
			wait_until(l, at_ns);
			continue;
		}
		pthread_mutex_unlock(&l->lock);
		if (must_beat) {
			beat_ns = now_ns + COH_HEARTBEAT_NS;
			beat(l);
		}
		if (must_connect)
			retry_ns = go_connect(l, &ends);
		if (!beat_ns && l->member[0])
			beat_ns = now_ns + COH_HEARTBEAT_NS;
		pthread_mutex_lock(&l->lock);
	}
	if (!l->news.is_stale && l->member[0]) {
		pthread_mutex_unlock(&l->lock);
		leave(l);
		return NULL;
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

int shd_lead_start(struct shd_lead *l)
{
	int err = pthread_create(&l->thread, NULL, run, l);

	l->is_started = !err;
	return err ? error_set(-err, "no thread: %s", strerror(err)) : 0;
}

void shd_lead_connect(struct shd_lead *l, const struct shd_ends *ends)
{
	pthread_mutex_lock(&l->lock);
	l->ends = *ends;
	l->has_ends = true;
	l->news.has_place = false;
	pthread_cond_signal(&l->wake);
	pthread_mutex_unlock(&l->lock);
}

int shd_lead_fd(const struct shd_lead *l)
{
	return l->event;
}

void shd_lead_news(struct shd_lead *l, struct shd_news *out)
{
	uint64_t count;

	(void)!read(l->event, &count, sizeof(count));
	pthread_mutex_lock(&l->lock);
	*out = l->news;
	l->news.has_place = false;
	pthread_mutex_unlock(&l->lock);
}

uint64_t shd_lead_size(const struct shd_lead *l)
{
	return l->size_bytes;
}

/* ---- beginning and end --------------------------------------------------- */

/* Whether this node leads. */
static bool is_lead(struct shd_lead *l)
{
	json_t *reply = NULL;
	int err = call(l, "GET", "/v1/status", NULL, &reply);

	l->size_bytes = err ? 0 : client_shared_size(reply);
	json_decref(reply);
	return l->size_bytes >= COHERENCE_PAGE_BYTES;
}

static int find(struct shd_lead *l, const struct config *config,
		const char *rundir)
{
	struct client_node nodes[CLIENT_NODE_MAX];
	unsigned count = client_nodes_find(config, rundir, nodes);

	for (unsigned i = 0; i < count; i++) {
		l->node = nodes[i];
		if (is_lead(l))
			return 0;
	}
	return error_set(-EOPNOTSUPP,
			 "no memory node of this rack has shared memory, or it "
			 "does not answer; give one a --shared SIZE");
}

int shd_lead_open(const struct config *config, const char *rundir,
		  const char *name, struct shd_lead **out)
{
	struct shd_lead *l = calloc(1, sizeof(*l));
	pthread_condattr_t attr;
	int err;

	if (!l)
		return error_set(-ENOMEM, "no memory");
	pthread_mutex_init(&l->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&l->wake, &attr);
	pthread_condattr_destroy(&attr);
	(void)snprintf(l->name, sizeof(l->name), "%s", name);
	l->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = l->event < 0 ? error_set(-errno, "eventfd: %s", strerror(errno))
			   : client_http_create(&l->http);
	if (!err)
		err = client_token_read(config, rundir, RACK_TOKEN_DEFAULT,
					l->token);
	if (!err)
		err = find(l, config, rundir);
	if (err) {
		shd_lead_close(l);
		return err;
	}
	*out = l;
	return 0;
}

void shd_lead_close(struct shd_lead *l)
{
	if (l->is_started) {
		pthread_mutex_lock(&l->lock);
		l->is_ending = true;
		pthread_cond_signal(&l->wake);
		pthread_mutex_unlock(&l->lock);
		(void)pthread_join(l->thread, NULL);
	}
	if (l->http)
		client_http_destroy(l->http);
	if (l->event >= 0)
		(void)close(l->event);
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->wake);
	free(l);
}
