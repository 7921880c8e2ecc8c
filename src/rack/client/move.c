/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who moves regions: it tells both nodes what to do, step by step (their states
 * are in memnode/move.h), and copies. It may die anywhere: before the one node
 * has given them they stay there; afterwards they are the other node's, and the
 * controller tells it so. After an error it ends what it has begun.
 */
#include "move.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "base/log.h"
#include "client_priv.h"

enum {
	/* Without a sign of the mover for so long it counts as dead. Programs
	 * wait meanwhile, so it is less than their usual deadline. */
	LEASE_MS = 4000,
	SIGN_NS = 500000000,
};

/* A region that moves, as its node describes it. */
struct moved {
	char name[CLIENT_PIECE_NAME_MAX];
	struct client_piece piece;
	json_t *row;
};

struct mover {
	struct aq_rack *rack;
	struct client_thread *thread;
	struct client_copy *copy;
	char id[CLIENT_ID_MAX];
	uint32_t from, to;
	uint64_t sign_ns; /* when the next one is due */
	unsigned count;
	struct moved region[CLIENT_MOVE_MAX];
};

/* ---- requests ------------------------------------------------------------ */

/* `rest` is what follows the move's name in the path. */
static int tell(struct mover *m, uint32_t node, const char *method,
		const char *rest, json_t *body)
{
	char path[CLIENT_PATH_MAX];
	json_t *reply = NULL;
	int err;

	(void)snprintf(path, sizeof(path), "/v1/moves/%s%s", m->id, rest);
	err = client_thread_call(m->thread, node, method, path, body,
				 client_rack_deadline_ns(m->rack), &reply);
	json_decref(reply);
	return err;
}

/* -ESTALE: it heard nothing for too long, and has given the move up. */
static int given_up(const struct mover *m, uint32_t node, int err)
{
	return err == -ENOENT ? error_set(-ESTALE,
					  "node %s has given the move up: it "
					  "heard nothing of it for a while",
					  m->rack->node[node].name)
			      : err;
}

static int sign(struct mover *m, uint32_t node, bool seal)
{
	return given_up(
		m, node,
		tell(m, node, "PATCH", "",
		     json_pack("{s:i, s:b}", "ms", LEASE_MS, "seal", seal)));
}

static int look(struct mover *m, unsigned i)
{
	struct moved *r = &m->region[i];
	char path[CLIENT_PATH_MAX];
	int err;

	(void)snprintf(path, sizeof(path), "/v1/regions/%s", r->name);
	err = client_thread_call(m->thread, m->from, "GET", path, NULL,
				 client_rack_deadline_ns(m->rack), &r->row);
	return err ? err
		   : client_piece_stat(m->thread, m->from, r->name,
				       client_rack_deadline_ns(m->rack),
				       &r->piece);
}

static const char *word(const json_t *row, const char *key)
{
	const char *s = json_string_value(json_object_get(row, key));

	return s ? s : "";
}

/* Makes it at the other node, where nobody sees it yet. */
static int arrive(struct mover *m, unsigned i)
{
	const struct moved *r = &m->region[i];
	json_t *reply = NULL,
	       *body = json_pack("{s:s, s:I, s:s, s:s, s:s, s:s, s:s, s:i}",
				 "name", r->name, "size",
				 (json_int_t)r->piece.size_bytes, "memory",
				 word(r->row, "memory"), "move", m->id, "birth",
				 word(r->row, "birth"), "from",
				 m->rack->node[m->from].name, "from_run",
				 word(r->row, "incarnation"), "ms", LEASE_MS);
	int err;

	if (body && *word(r->row, "part_of"))
		(void)json_object_set_new(body, "part_of",
					  json_string(word(r->row, "part_of")));
	err = client_thread_call(m->thread, m->to, "POST", "/v1/regions", body,
				 client_rack_deadline_ns(m->rack), &reply);
	json_decref(reply);
	return err;
}

/* What leaves is what was looked at. By the name of the run, which the other
 * node was told, the controller judges what becomes of the copy. */
static int check_left(const struct moved *r, const json_t *row)
{
	uint64_t size =
		(uint64_t)json_integer_value(json_object_get(row, "size"));

	if (strcmp(word(row, "incarnation"), word(r->row, "incarnation")) != 0)
		return error_set(-ESTALE,
				 "the node of region %s was started anew",
				 r->name);
	if (strcmp(word(row, "birth"), word(r->row, "birth")) != 0)
		return error_set(-ESTALE, "region %s was made anew", r->name);
	return size == r->piece.size_bytes
		       ? 0
		       : error_set(-EBUSY, "region %s was resized", r->name);
}

/* All keys end. */
static int leave(struct mover *m)
{
	json_t *names = json_array(), *reply = NULL, *row;
	size_t i;
	int err;

	for (i = 0; i < m->count; i++)
		(void)json_array_append_new(names,
					    json_string(m->region[i].name));
	err = client_thread_call(m->thread, m->from, "POST", "/v1/moves",
				 json_pack("{s:s, s:o, s:i}", "move", m->id,
					   "regions", names, "ms", LEASE_MS),
				 client_rack_deadline_ns(m->rack), &reply);
	json_array_foreach(json_object_get(reply, "regions"), i, row)
	{
		if (!err && i < m->count)
			err = check_left(&m->region[i], row);
	}
	json_decref(reply);
	return err;
}

/* ---- the steps ------------------------------------------------------------
 */

/* A client_move_fn. */
static int keep(void *ctx)
{
	struct mover *m = ctx;
	uint64_t now_ns = client_rack_now_ns(m->rack);
	int err;

	if (now_ns < m->sign_ns)
		return 0;
	m->sign_ns = now_ns + SIGN_NS;
	err = sign(m, m->from, false);
	return err ? err : sign(m, m->to, false);
}

static int copy_all(struct mover *m)
{
	int err = 0;

	for (unsigned i = 0; i < m->count && !err; i++)
		err = client_copy_region(m->copy, m->region[i].name, m->id,
					 m->region[i].piece.size_bytes, keep,
					 m);
	return err;
}

static int prepare(struct mover *m, const struct client_move *w)
{
	uint64_t random, bytes = 0;
	int err = client_control_node(m->rack, w->from, &m->from);

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return error_set(-EIO, "the kernel gives no random numbers");
	(void)snprintf(m->id, sizeof(m->id), "%016" PRIx64, random | 1);
	for (unsigned i = 0; i < w->count && !err; i++) {
		(void)snprintf(m->region[i].name, sizeof(m->region[i].name),
			       "%s", w->name[i]);
		m->count++;
		err = look(m, i);
		if (!err && !m->region[i].piece.birth)
			err = error_set(-EOPNOTSUPP,
					"node %s is of a release that moves "
					"nothing",
					w->from);
		bytes += m->region[i].piece.size_bytes;
	}
	if (!err && !client_control_place(m->rack, bytes, 1, &m->to))
		err = error_set(-ENOSPC,
				"no other node takes %" PRIu64
				" bytes, or the controller does not "
				"answer",
				bytes);
	if (!err && m->to == m->from)
		err = error_set(-EINVAL, "node %s is not drained", w->from);
	return err;
}

/* Before the one node has given anything. */
static int bring(struct mover *m)
{
	int err = client_copy_open(m->rack, m->from, m->to, &m->copy);

	for (unsigned i = 0; i < m->count && !err; i++)
		err = arrive(m, i);
	if (!err)
		err = leave(m);
	if (!err)
		err = copy_all(m);
	if (!err)
		err = sign(m, m->to, true);
	return err;
}

/* What was begun ends, as far as the nodes can be told. */
static int give_up(struct mover *m, int err)
{
	char words[ERROR_TEXT_MAX];

	(void)snprintf(words, sizeof(words), "%s", error_last());
	if (tell(m, m->from, "DELETE", "", NULL))
		log_debug("client", "%s", error_last());
	if (tell(m, m->to, "DELETE", "", NULL))
		log_debug("client", "%s", error_last());
	return error_set(err, "%s", words);
}

/* The one step that counts. No answer to it: it may be done. */
static int give(struct mover *m)
{
	int err = tell(m, m->from, "POST", "/give",
		       json_pack("{s:s}", "to", m->rack->node[m->to].name));

	err = given_up(m, m->from, err);
	switch (err) {
	case 0:
		return 0;
	case -ESTALE:
	case -EBUSY:
	case -EAGAIN:
	case -EACCES:
	case -EINVAL:
		return give_up(m, err); /* a clear no */
	default:
		return error_set(-EINPROGRESS,
				 "node %s does not say whether it has given it "
				 "to %s; they settle it when it is back",
				 m->rack->node[m->from].name,
				 m->rack->node[m->to].name);
	}
}

int client_move(struct aq_rack *rack, const struct client_move *w,
		char to[CLIENT_NODE_NAME_MAX])
{
	struct mover m = {.rack = rack};
	char words[ERROR_TEXT_MAX];
	int err = client_thread_get(rack, &m.thread);

	if (!err)
		err = prepare(&m, w);
	if (!err) {
		err = bring(&m);
		if (err)
			err = give_up(&m, err);
		else
			err = give(&m);
	}
	if (!err) {
		/* Where this fails, the controller says it. */
		if (tell(&m, m.to, "POST", "/take", NULL) == 0)
			(void)!tell(&m, m.from, "DELETE", "", NULL);
		(void)snprintf(to, CLIENT_NODE_NAME_MAX, "%s",
			       rack->node[m.to].name);
	}
	(void)snprintf(words, sizeof(words), "%s", err ? error_last() : "");
	client_copy_close(m.copy);
	for (unsigned i = 0; i < m.count; i++)
		json_decref(m.region[i].row);
	return err ? error_set(err, "%s", words) : 0;
}

/* ---- what others have left ------------------------------------------------
 */

static int list(struct client_thread *t, uint32_t node, json_t **out)
{
	return client_thread_call(t, node, "GET", "/v1/moves", NULL,
				  client_rack_deadline_ns(t->rack), out);
}

/* What the node that it comes from says of a sealed one. */
static void settle_one(struct mover *m, const json_t *row, const json_t *source)
{
	const json_t *rows = json_object_get(source, "moves"), *one;
	const char *state = NULL;
	size_t i;

	(void)snprintf(m->id, sizeof(m->id), "%s", word(row, "move"));
	json_array_foreach(rows, i, one) if (strcmp(word(one, "move"), m->id) ==
					     0) state = word(one, "state");
	/* Whether a run that has ended had given it only the controller knows,
	 * and tells the node that has the copy. */
	if (strcmp(word(row, "from_run"), word(source, "incarnation")) != 0)
		return;
	if (state && strcmp(state, "given") != 0)
		return; /* somebody is moving it now */
	if (state && tell(m, m->to, "POST", "/take", NULL) == 0)
		(void)!tell(m, m->from, "DELETE", "", NULL);
	else if (!state && tell(m, m->to, "DELETE", "", NULL))
		log_warn("client", "a copy of region %s is left over: %s",
			 word(row, "region"), error_last());
}

int client_move_settle(struct aq_rack *rack, const char *from)
{
	struct mover m = {.rack = rack};
	json_t *there = NULL, *source = NULL;
	const json_t *row;
	size_t k;
	int err = client_thread_get(rack, &m.thread);

	if (!err)
		err = client_control_node(rack, from, &m.from);
	for (uint32_t i = 0; !err && i < client_rack_nodes(rack); i++) {
		if (i == m.from || list(m.thread, i, &there))
			continue;
		m.to = i;
		json_array_foreach(json_object_get(there, "moves"), k, row)
		{
			if (strcmp(word(row, "state"), "sealed") != 0 ||
			    strcmp(word(row, "from"), from) != 0)
				continue;
			/* Asked after what is sealed was seen. */
			err = list(m.thread, m.from, &source);
			if (err)
				break;
			settle_one(&m, row, source);
			json_decref(source);
			source = NULL;
		}
		json_decref(there);
		there = NULL;
	}
	return err;
}
