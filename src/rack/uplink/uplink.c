/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that joins and beats. A beat waits at the controller for orders;
 * when there is news here, the next one is sent beside it, and the controller
 * ends the one that waits. So no connection ends while all is well, and one
 * that does is a sign. */
#include "uplink.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/rng.h"

enum {
	ASK_MS = 4000, /* an answer may wait for orders, for a second */
	LEAVE_MS = 500,
	PAUSE_FIRST_MS = 100,
	PAUSE_MAX_MS = 1600,
	ANSWER_MAX = 1 << 20,
	PATH_BYTES = 80,
	HOPS_MAX = 2,
};

/* A request under way, which needs what it was made from. */
struct errand {
	struct client_http *http;
	struct client_http_request request;
	char path[PATH_BYTES];
	char *text; /* NULL: it is idle */
};

struct uplink {
	struct client_node control[CLIENT_CONTROL_MAX];
	unsigned control_count;
	unsigned at; /* the one that is asked */
	/* The one that leads, where another one has named it; or "". */
	struct client_node leader;
	bool was_told; /* just now */
	char token[CLIENT_TOKEN_MAX];
	char kind[16], name[UP_NAME_MAX + 1], zone[UP_NAME_MAX + 1];
	char address[CLIENT_ADDRESS_MAX];
	uint64_t size_bytes;
	struct uplink_config call; /* only the functions */
	struct errand errand[2];
	unsigned last; /* of them */
	struct client_http_set *set;
	struct rng rng;
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows */
	struct up_state state;
	bool ends;
	bool is_awake;		   /* news */
	bool was_heard, has_tried; /* for the log */
};

bool uplink_is_wanted(const struct config *config)
{
	return strcmp(config_string(config, "rack", "control"), "none") != 0;
}

/* ---- one request -------------------------------------------------------- */

static bool ends(struct uplink *u)
{
	bool is;

	pthread_mutex_lock(&u->lock);
	is = u->ends;
	pthread_mutex_unlock(&u->lock);
	return is;
}

static bool has_news(struct uplink *u)
{
	bool news;

	pthread_mutex_lock(&u->lock);
	news = u->is_awake || u->ends;
	pthread_mutex_unlock(&u->lock);
	return news;
}

static const struct client_node *asked(const struct uplink *u)
{
	return u->leader.address[0] ? &u->leader : &u->control[u->at];
}

/* From now on the one that leads is asked. */
static void follow(struct uplink *u, const struct client_node *from,
		   const struct client_http_reply *http)
{
	struct client_node to = *from;

	u->was_told = client_reply_leader(from, http, to.address);
	if (u->was_told)
		u->leader = to;
}

static void finish(struct errand *e)
{
	free(e->text);
	e->text = NULL;
}

static void drop(struct uplink *u, struct errand *e)
{
	client_http_set_drop(u->set, e->http);
	finish(e);
}

/* Waits for the answer, or for news. -EINTR: there is news; the request is left
 * to itself, and its answer tells nothing any more. */
static int await(struct uplink *u, struct errand *e, bool may_wait,
		 json_t **answer)
{
	const struct client_node *c = asked(u);
	struct errand *other = &u->errand[e == u->errand];
	struct client_http_reply http;
	struct client_http *ended;
	int err;

	for (;;) {
		ended = client_http_set_next(u->set, &err, &http);
		if (ended == e->http) {
			finish(e);
			if (!err)
				follow(u, c, &http);
			return client_reply_take(c, err, &http, answer);
		}
		if (ended)
			finish(other);
		else if (may_wait && (ends(u) || (!other->text && has_news(u))))
			return -EINTR;
		else
			client_http_set_wait(u->set, ASK_MS);
	}
}

/* One that is idle, or whose answer nobody waits for. */
static struct errand *next_errand(struct uplink *u)
{
	struct errand *e = &u->errand[u->last];

	if (!e->text)
		return e;
	u->last = !u->last;
	e = &u->errand[u->last];
	if (e->text)
		drop(u, e);
	return e;
}

static int ask(struct uplink *u, const char *path, json_t *body, uint32_t ms,
	       bool may_wait, json_t **answer)
{
	const struct client_node *c = asked(u);
	struct errand *e = next_errand(u);
	int err;

	*answer = NULL;
	u->was_told = false;
	(void)snprintf(e->path, sizeof(e->path), "%s", path);
	e->text = json_dumps(body, JSON_COMPACT);
	json_decref(body);
	if (!e->text)
		return error_set(-ENOMEM, "no memory for a beat");
	e->request = (struct client_http_request){
		.method = "POST",
		.address = c->address,
		.path = e->path,
		.token = u->token,
		.ca_path = c->ca_path[0] ? c->ca_path : NULL,
		.cert_path = c->cert_path[0] ? c->cert_path : NULL,
		.key_path = c->key_path,
		.body = e->text,
		.timeout_ms = ms,
		.max_bytes = ANSWER_MAX,
	};
	err = client_http_set_start(u->set, e->http, &e->request);
	if (err)
		finish(e);
	return err ? err : await(u, e, may_wait, answer);
}

/* ---- joining, beating --------------------------------------------------- */

static int take(struct uplink *u, const json_t *answer, uint64_t sent_ns)
{
	int err;

	pthread_mutex_lock(&u->lock);
	err = up_state_hear(&u->state, answer, sent_ns);
	pthread_mutex_unlock(&u->lock);
	return err;
}

static int join(struct uplink *u)
{
	uint64_t sent_ns = clock_mono_ns();
	json_t *answer;
	int err = ask(u, "/v1/nodes",
		      json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:s}", "name",
				u->name, "kind", u->kind, "address", u->address,
				"zone", u->zone, "incarnation",
				u->state.incarnation, "size",
				(json_int_t)u->size_bytes, "proto", "1.0"),
		      ASK_MS, false, &answer);

	if (!err)
		err = take(u, answer, sent_ns);
	json_decref(answer);
	if (!err && u->call.joined)
		u->call.joined(u->call.ctx);
	return err;
}

static int beat(struct uplink *u)
{
	uint64_t sent_ns = clock_mono_ns();
	char path[PATH_BYTES];
	json_t *answer, *body;
	int err;

	pthread_mutex_lock(&u->lock);
	u->is_awake = false;
	body = up_state_say(&u->state);
	pthread_mutex_unlock(&u->lock);
	if (u->call.say)
		u->call.say(u->call.ctx, body);
	(void)snprintf(path, sizeof(path), "/v1/nodes/%s/beat", u->name);
	err = ask(u, path, body, ASK_MS, true, &answer);
	/* Without an answer another beat was taken for a later one. */
	if (!err && answer)
		err = take(u, answer, sent_ns);
	if (!err && answer && u->call.hear)
		u->call.hear(u->call.ctx, answer);
	json_decref(answer);
	return err;
}

static void say_goodbye(struct uplink *u)
{
	char path[PATH_BYTES];
	json_t *answer;

	(void)snprintf(path, sizeof(path), "/v1/nodes/%s/leave", u->name);
	/* Who does not hear it misses the beats. */
	if (u->state.epoch &&
	    ask(u, path,
		json_pack("{s:s}", "incarnation", u->state.incarnation),
		LEAVE_MS, false, &answer) == 0)
		json_decref(answer);
}

/* ---- the thread --------------------------------------------------------- */

/* Says once what is wrong, and once that it is well again. */
static void tell(struct uplink *u, int err)
{
	if (!err && !u->was_heard)
		log_info("uplink", "%s has joined the controller at %s",
			 u->name, asked(u)->address);
	else if (err && (u->was_heard || !u->has_tried))
		log_warn("uplink", "the controller does not answer: %s",
			 error_last());
	u->was_heard = !err;
	u->has_tried = true;
}

static void rest(struct uplink *u, unsigned *pause_ms)
{
	/* Others that lost the same controller rest for another time. */
	uint64_t until = clock_mono_ms() +
			 rng_between(&u->rng, *pause_ms / 2, *pause_ms);

	drop(u, &u->errand[0]);
	drop(u, &u->errand[1]);
	while (!has_news(u) && clock_mono_ms() < until)
		client_http_set_wait(u->set, *pause_ms);
	pthread_mutex_lock(&u->lock);
	u->is_awake = false;
	pthread_mutex_unlock(&u->lock);
	*pause_ms = *pause_ms * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS : *pause_ms * 2;
}

static void *run(void *arg)
{
	struct uplink *u = arg;
	unsigned pause_ms = PAUSE_FIRST_MS, hops = 0;

	while (!ends(u)) {
		int err = u->state.epoch ? beat(u) : join(u);

		if (err == -EINTR)
			continue;
		if (!err) {
			pause_ms = PAUSE_FIRST_MS;
			hops = 0;
			tell(u, 0);
			continue;
		}
		if (u->was_told && hops++ < HOPS_MAX)
			continue;
		if (err == -ESTALE) {
			pthread_mutex_lock(&u->lock);
			u->state.epoch = 0;
			pthread_mutex_unlock(&u->lock);
			if (u->was_heard && pause_ms == PAUSE_FIRST_MS)
				continue;
		}
		tell(u, err);
		if (!u->leader.address[0])
			u->at = (u->at + 1) % u->control_count;
		u->leader.address[0] = 0;
		hops = 0;
		rest(u, &pause_ms);
	}
	say_goodbye(u);
	drop(u, &u->errand[0]);
	drop(u, &u->errand[1]);
	return NULL;
}

/* ---- life --------------------------------------------------------------- */

static int fill(struct uplink *u, const struct uplink_config *c)
{
	u->control_count =
		client_controllers_find(c->config, c->rundir, u->control);
	if (!u->control_count)
		return error_set(-EINVAL, "rack.control names no controller");
	(void)snprintf(u->token, sizeof(u->token), "%s", c->token);
	(void)snprintf(u->kind, sizeof(u->kind), "%s", c->kind);
	(void)snprintf(u->name, sizeof(u->name), "%s", c->name);
	(void)snprintf(u->zone, sizeof(u->zone), "%s",
		       config_string(c->config, "rack", "zone"));
	(void)snprintf(u->address, sizeof(u->address), "%s", c->address);
	(void)snprintf(u->state.incarnation, sizeof(u->state.incarnation), "%s",
		       c->incarnation);
	u->size_bytes = c->size_bytes;
	rng_init_text(&u->rng, c->incarnation);
	u->call = *c;
	return 0;
}

static void release(struct uplink *u)
{
	if (u->set)
		client_http_set_destroy(u->set);
	for (unsigned i = 0; i < ARRAY_LEN(u->errand); i++)
		if (u->errand[i].http)
			client_http_destroy(u->errand[i].http);
	pthread_mutex_destroy(&u->lock);
	secret_forget(u->token);
	free(u);
}

int uplink_start(const struct uplink_config *c, struct uplink **out)
{
	struct uplink *u = calloc(1, sizeof(*u));
	int err;

	if (!u)
		return error_set(-ENOMEM, "no memory for the way to the "
					  "controller");
	pthread_mutex_init(&u->lock, NULL);
	err = fill(u, c);
	for (unsigned i = 0; !err && i < ARRAY_LEN(u->errand); i++)
		err = client_http_create(&u->errand[i].http);
	if (!err)
		err = client_http_set_create(&u->set);
	if (!err && (err = -pthread_create(&u->thread, NULL, run, u)))
		err = error_set(err, "no thread: %s", strerror(-err));
	if (err) {
		release(u);
		return err;
	}
	*out = u;
	return 0;
}

void uplink_wake(struct uplink *u)
{
	pthread_mutex_lock(&u->lock);
	u->is_awake = true;
	pthread_mutex_unlock(&u->lock);
	client_http_set_wake(u->set);
}

void uplink_stop(struct uplink *u)
{
	if (!u)
		return;
	pthread_mutex_lock(&u->lock);
	u->ends = true;
	pthread_mutex_unlock(&u->lock);
	client_http_set_wake(u->set);
	(void)pthread_join(u->thread, NULL); /* it cannot fail */
	release(u);
}

bool uplink_is_fresh(struct uplink *u)
{
	bool is;

	pthread_mutex_lock(&u->lock);
	is = up_state_is_fresh(&u->state, clock_mono_ns());
	pthread_mutex_unlock(&u->lock);
	return is;
}
