/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a client, what it writes and reads, its connections. */
#include "play_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "client/verbs_api.h"
#include "sim/fiber.h"

enum {
	STREAM_MAKER = 999,
	STREAM_CLIENT = 1000, /* and its index */
	SLEEP_FAILURES = 5,   /* times as long as it takes to be given up */
};

/* ---- life --------------------------------------------------------------- */

static const struct play_moves *moves_of(const struct play_client *c)
{
	return &c->run->play->moves;
}

void play_client_init(struct play_run *r, struct play_client *c,
		      struct rig_host *host)
{
	ASSERT(r->client_count < PLAY_CLIENTS_MAX);
	c->run = r;
	c->index = r->client_count;
	c->host = host;
	sim_rand_init(&c->rand, r->opt->seed, STREAM_CLIENT + c->index);
	r->client[r->client_count++] = c;
}

int play_client_open(struct play_client *c)
{
	int err = moves_of(c)->open(c);

	c->is_open = err == 0;
	return err;
}

void play_client_close(struct play_client *c)
{
	if (c->is_open)
		moves_of(c)->close(c);
	c->is_open = false;
}

void play_client_come_back(struct play_client *c)
{
	c->countdown = 0;
	if (!moves_of(c)->is_crashed(c))
		return;
	play_client_close(c);
	if (play_client_open(c))
		play_fail(c->run, "a client cannot come back: %s",
			  error_last());
}

static void client_main(void *arg)
{
	struct play_client *c = arg;

	if (play_client_open(c))
		play_fail(c->run, "a client cannot start: %s", error_last());
	for (unsigned i = 0; i < c->run->ops && c->is_open; i++) {
		c->countdown = 0;
		moves_of(c)->step(c);
		play_client_come_back(c);
	}
	play_client_close(c);
	c->run->running--;
}

static void wait_for_all(struct play_run *r, const struct client_clock *clock)
{
	const struct sim_net_stats *st = sim_net_stats(r->net);
	uint64_t max = r->play->moves.frames_max;

	while (r->running) {
		client_clock_relax(clock);
		if (max && st->sent > max) {
			play_fail(r, "clients go round in circles");
			sim_stop(r->sim);
		}
	}
	for (unsigned i = 0; i < r->client_count; i++)
		r->client[i]->countdown = 0;
}

/* Where the checker runs: at the store. */
static struct rig_host *checker_host(const struct play_run *r)
{
	return r->store ? r->store->region->host : r->client[0]->host;
}

static void checker(void *arg)
{
	struct play_run *r = arg;
	const struct play_moves *moves = &r->play->moves;
	struct play_client *c = r->client[0];
	int err;

	if (moves->meanwhile)
		moves->meanwhile(r);
	wait_for_all(r, &checker_host(r)->clock);
	err = play_client_open(c);
	if (!err)
		err = moves->check(c);
	if (err)
		play_fail(r, "the store cannot be checked: %s", error_last());
	play_client_close(c);
	sim_stop(r->sim);
}

static int format(struct play_run *r)
{
	struct play_client maker = {.run = r, .host = r->client[0]->host};
	struct kit_remote remote = {0};
	int err;

	if (!r->store)
		return r->play->moves.format(r, NULL);
	sim_rand_init(&maker.rand, r->opt->seed, STREAM_MAKER);
	err = play_remote_open(&maker, &remote);
	if (err)
		return err;
	err = r->play->moves.format(r, &remote);
	play_remote_close(&maker, &remote);
	return err;
}

static void starter(void *arg)
{
	struct play_run *r = arg;
	int err = format(r);

	for (unsigned i = 0; i < r->client_count && !err; i++) {
		r->running++;
		err = rig_host_spawn(r->client[i]->host, "client", client_main,
				     r->client[i]);
	}
	if (!err)
		err = rig_host_spawn(checker_host(r), "checker", checker, r);
	if (!err && r->trouble)
		err = sim_fiber_spawn(r->sim, "trouble", r->trouble, r);
	if (err)
		play_fail(r, "the play cannot start: %d", err);
}

int play_clients_start(struct play_run *r)
{
	return rig_host_spawn(r->client[0]->host, "starter", starter, r);
}

/* ---- dying and sleeping ------------------------------------------------- */

void play_client_arm(struct play_client *c, uint32_t percent, uint32_t requests)
{
	if (sim_rand_below(&c->rand, 100) >= percent)
		return;
	c->countdown = sim_rand_range(&c->rand, 1, requests);
	c->sleeps = sim_rand_below(&c->rand, 3) == 0;
}

bool play_client_crash(void *client, int point)
{
	struct play_client *c = client;
	struct play_run *r = c->run;
	uint64_t end_ns;

	if (!c->countdown || --c->countdown)
		return false;
	if (!c->sleeps) {
		ASSERT(point >= 0 && point < PLAY_POINTS_MAX);
		++*play_count(r, "deaths");
		r->res->died_at[point]++;
		return true;
	}
	++*play_count(r, "sleeps");
	end_ns = play_now_ns(r) +
		 SLEEP_FAILURES * 1000000ull * moves_of(c)->failure_ms;
	while (play_now_ns(r) < end_ns)
		client_clock_relax(&c->host->clock);
	return false;
}

/* ---- values and history ------------------------------------------------- */

size_t play_value_make(const struct play_run *r, uint64_t id, uint8_t *out)
{
	size_t len = r->play->moves.value_bytes(r, id);

	ASSERT(len >= sizeof(id) && len <= PLAY_VALUE_MAX);
	memcpy(out, &id, sizeof(id));
	for (size_t i = sizeof(id); i < len; i++)
		out[i] = (uint8_t)(id * 31 + i);
	return len;
}

uint64_t play_value_read(struct play_run *r, const uint8_t *v, size_t len)
{
	uint8_t want[PLAY_VALUE_MAX];
	uint64_t id = 0;

	if (len >= sizeof(id))
		memcpy(&id, v, sizeof(id));
	if (len < sizeof(id) || play_value_make(r, id, want) != len ||
	    memcmp(v, want, len) != 0)
		play_fail(r, "a value is torn or foreign");
	return id;
}

int64_t play_invoke(struct play_client *c, uint64_t key, enum lin_call call,
		    uint64_t a, uint64_t b)
{
	int64_t op = lin_invoke(c->run->history, c->index, lin_int(key), call,
				lin_int(a), lin_int(b), play_now_ns(c->run));

	if (op < 0)
		play_fail(c->run, "the history is full");
	return op;
}

enum lin_type play_ended(struct play_client *c, int err)
{
	struct play_run *r = c->run;
	const uint64_t *killed = play_count(r, "nodes_killed");

	switch (err) {
	case 0:
		return LIN_OK;
	case -ENOSPC:
		++*play_count(r, "full");
		return LIN_FAIL;
	case -ETIMEDOUT:
		++*play_count(r, "timeouts");
		break;
	case -ESTALE:
		++*play_count(r, "stale");
		break;
	case -ESHUTDOWN: /* it has died */
		break;
	case -EHOSTDOWN:
		if (killed && *killed)
			break;
		/* fall through */
	default:
		play_fail(r, "an operation failed: %d, %s", err, error_last());
	}
	return LIN_INFO;
}

void play_return(struct play_client *c, int64_t op, enum lin_type type,
		 enum lin_said said)
{
	lin_return(c->run->history, op, type, said, lin_nil(),
		   play_now_ns(c->run));
}

uint64_t play_return_read(struct play_client *c, int64_t op, int err,
			  const uint8_t *v, size_t len)
{
	uint64_t id = 0;

	if (err && err != -ENOENT) {
		play_return(c, op, play_ended(c, err), LIN_SAID_NOTHING);
		return 0;
	}
	if (!err)
		id = play_value_read(c->run, v, len);
	lin_return_got(c->run->history, op, err ? lin_nil() : lin_int(id),
		       play_now_ns(c->run));
	return id;
}

uint64_t play_get(struct play_client *c, unsigned key)
{
	int64_t op = play_invoke(c, key, LIN_READ, 0, 0);
	uint8_t buf[PLAY_VALUE_MAX];
	size_t len = 0;
	int err = moves_of(c)->get(c, key, buf, &len);

	*play_count(c->run, "gets") += !err || err == -ENOENT;
	*play_count(c->run, "misses") += err == -ENOENT;
	return play_return_read(c, op, err, buf, len);
}

void play_put(struct play_client *c, unsigned key)
{
	uint64_t id = ++c->run->next_value;
	uint8_t value[PLAY_VALUE_MAX];
	size_t len = play_value_make(c->run, id, value);
	int64_t op = play_invoke(c, key, LIN_WRITE, id, 0);
	int err = moves_of(c)->put(c, key, value, len);

	++*play_count(c->run, "puts");
	play_return(c, op, play_ended(c, err), LIN_SAID_NOTHING);
}

void play_return_del(struct play_client *c, int64_t op, int err)
{
	bool tells = moves_of(c)->del_tells;

	if (tells && err == -ENOENT)
		play_return(c, op, LIN_OK, LIN_NO);
	else
		play_return(c, op, play_ended(c, err),
			    tells && !err ? LIN_YES : LIN_SAID_NOTHING);
}

void play_del(struct play_client *c, unsigned key)
{
	int64_t op = play_invoke(c, key, LIN_DELETE, 0, 0);
	int err = moves_of(c)->del(c, key);

	++*play_count(c->run, "deletes");
	play_return_del(c, op, err);
}

/* ---- a store on one node ------------------------------------------------ */

static void tell(struct play_client *c, struct rig_conn *conn, bool is_new)
{
	if (c->run->store->tell)
		c->run->store->tell(c, conn, is_new);
}

int play_store_fence(struct play_run *r, struct rig_conn *conn)
{
	if (!conn || !conn->link)
		return 0;
	tell(r->client[0], conn, false); /* whoever says so */
	return rig_conn_fence(conn);
}

static int remote_fence(void *client, const char *name)
{
	struct play_run *r = ((struct play_client *)client)->run;

	return play_store_fence(r, rig_conn_find(&r->store->conns, name));
}

static int remote_is_alive(void *client, const char *name)
{
	struct play_run *r = ((struct play_client *)client)->run;

	return rig_conn_is_alive(&r->store->conns, name);
}

void play_remote_close(void *client, struct kit_remote *remote)
{
	struct play_client *c = client;
	struct rig_conn *conn = &c->run->store->conns.at[atoi(remote->conn)];
	bool has_died = c->is_open && moves_of(c)->is_crashed(c);

	if (conn->link && !has_died)
		tell(c, conn, false);
	rig_conn_close(conn, has_died);
}

static int remote_renew(void *client, struct kit_remote *remote)
{
	play_remote_close(client, remote);
	return play_remote_open(client, remote);
}

int play_remote_open(struct play_client *c, struct kit_remote *remote)
{
	struct client_link_options o = {.rights = CLIENT_LINK_ALL};
	struct play_store *s = c->run->store;
	struct rig_conn *conn;
	int err;

	c->conn = s->conns.count;
	remote->fence = remote_fence;
	remote->is_alive = remote_is_alive;
	remote->renew = remote_renew;
	remote->close = play_remote_close;
	remote->ctx = c;
	err = rig_conn_open(&s->conns, c->host, s->region, &o, remote->conn,
			    sizeof(remote->conn), &conn);
	if (err)
		return err;
	tell(c, conn, true);
	remote->link = conn->link;
	remote->addr = s->region->addr;
	remote->size_bytes = s->region->size_bytes;
	remote->rkey = s->region->rkey;
	remote->lock_addr = s->locks ? s->locks->addr : 0;
	remote->lock_rkey = s->locks ? s->locks->rkey : 0;
	return 0;
}

int play_store_open(struct play_client *c,
		    int (*create)(struct play_client *c,
				  struct kit_remote *remote,
				  const void *config),
		    const void *config)
{
	struct kit_remote remote = {0};
	int err = -EAGAIN;

	for (unsigned i = 0; i < PLAY_OPEN_TRIES && err; i++) {
		err = play_remote_open(c, &remote);
		if (err)
			return err;
		err = create(c, &remote, config);
		if (err)
			play_remote_close(c, &remote);
	}
	return err;
}
