/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences of requests of two tenants and an administrator to one memory node,
 * beside a model of what each of them has. An input is a list of steps of four
 * bytes: what to do, as whom, and which of the things that earlier answers
 * named; so ids of things that have ended come again, also in the other
 * tenant's hands.
 *
 * Whatever comes: an answer never holds a name, an id or a key of the other
 * tenant (unless the request did), nobody reaches what is another's, and what a
 * tenant made is there until it ends it itself. A thing in the model is HERE,
 * GONE, or UNSURE when its own tenant did something that may have ended it.
 *
 * Connections that the processor answers are left out: they have a thread.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "../unit/switch_socket.h"
#include "../unit/verbs_loop.h"
#include "base/rng.h"
#include "control/ctl_http.h"
#include "fuzz.h"
#include "fuzz_count.h"
#include "memnode/memnode.h"
#include "verbs/verbs.h"
#include "wire/page_wire.h"

enum {
	STEP_BYTES = 4,
	STEPS_MAX = 256,
	POOL_BYTES = 4 << 20,
	SHARED_BYTES = 16 << 20,
	CONNS = 8, /* that the model remembers of a tenant, as the others */
	GRANTS = 8,
	REGIONS = 4,
	SEGMENTS = 3,
	MEMBERS = 4,
	SESSIONS = 3,
	ID_BYTES = 32,
	BODY_BYTES = 320,
	LINE_BYTES = 128,
	CALL_BYTES = 24, /* of a chain */
	CLIENT_PSN = 7,
	TENANTS = 2,
	DELETES_MIN = 250, /* of 256, in the second argument: rather seldom */
};

enum fate {
	GONE,
	HERE,
	UNSURE,
};

struct model_conn {
	enum fate fate;
	char id[ID_BYTES];
	bool is_member; /* works on the pages of another */
	int session;	/* or -1 */
	uint32_t qpn;
};

struct model_grant {
	enum fate fate;
	char id[ID_BYTES];
	char rkey[16];
	unsigned conn;
	unsigned region;
};

struct model_region {
	enum fate fate;
	int owner; /* the connection that it ends with, or -1 */
};

struct model_segment {
	enum fate fate;
	bool is_allowed; /* to the other tenant */
};

struct model_member {
	enum fate fate;
	char id[ID_BYTES];
};

struct model_tenant {
	const char *name; /* in all that it names; no answer has it by itself */
	const char *token;
	enum fate fate;
	struct model_conn conn[CONNS];
	struct model_grant grant[GRANTS];
	struct model_region region[REGIONS];
	struct model_segment segment[SEGMENTS];
	struct model_member member[MEMBERS];
	bool has_allowed; /* the other one something, so it knows the name */
	bool has_called;  /* a chain, which may have stopped */
	unsigned next_conn, next_grant, next_member;
};

struct world {
	struct env env;
	struct rng rng;
	uint64_t clock_ns;
	struct mem_node *node;
	struct model_tenant tenant[TENANTS];
	json_t *answer; /* of the last request, or NULL */
};

static const char token_default[] = "11111111111111111111111111111111"
				    "11111111111111111111111111111111";
static const char token_admin[] = "22222222222222222222222222222222"
				  "22222222222222222222222222222222";

static uint64_t now_ns(struct env *env)
{
	return container_of(env, struct world, env)->clock_ns += 1000;
}

static void random_bytes(struct env *env, void *buf, size_t len_bytes)
{
	rng_fill(&container_of(env, struct world, env)->rng, buf, len_bytes);
}

static const struct env_ops ops = {
	.now_ns = now_ns,
	.random = random_bytes,
	.relax = loop_relax,
};

/* ---- requests ----------------------------------------------------------- */

static bool holds(const char *text, size_t bytes, const char *what)
{
	size_t len = strlen(what);

	return text && len && memmem(text, bytes, what, len) != NULL;
}

/* That `r`, an answer to somebody else, says nothing about `t`. */
static void check_silence(const struct model_tenant *t, const char *path,
			  const char *body, const struct ctl_reply *r)
{
	const size_t body_bytes = strlen(body);

	if (!t->has_allowed && !holds(path, strlen(path), t->name) &&
	    !holds(body, body_bytes, t->name))
		ASSERT(!holds(r->body, r->body_bytes, t->name));
	for (unsigned i = 0; i < MEMBERS; i++)
		if (!holds(path, strlen(path), t->member[i].id))
			ASSERT(!holds(r->body, r->body_bytes, t->member[i].id));
	for (unsigned i = 0; i < CONNS; i++)
		if (!holds(path, strlen(path), t->conn[i].id) &&
		    !holds(body, body_bytes, t->conn[i].id))
			ASSERT(!holds(r->body, r->body_bytes, t->conn[i].id));
	for (unsigned i = 0; i < GRANTS; i++) {
		const struct model_grant *g = &t->grant[i];

		if (g->fate == HERE)
			ASSERT(!holds(r->body, r->body_bytes, g->rkey));
		if (!holds(path, strlen(path), g->id))
			ASSERT(!holds(r->body, r->body_bytes, g->id));
	}
}

/* As a tenant, or as the administrator (NULL). */
static unsigned ask(struct world *w, const struct model_tenant *as,
		    enum ctl_method method, const char *path, const char *body)
{
	struct ctl_reply r = {0};
	struct ctl_request q = {
		.method = method,
		.path = path,
		.token = as ? as->token : token_admin,
		.body = body,
		.body_bytes = strlen(body),
	};
	unsigned status;

	fuzz_operations++;
	mem_node_handle(w->node, &q, &r);
	status = r.status;
	ASSERT(status >= 200 && status < 600 && status != 500);
	for (unsigned i = 0; as && i < TENANTS; i++)
		if (&w->tenant[i] != as)
			check_silence(&w->tenant[i], path, body, &r);
	/* The token of a tenant that is not there opens nothing. */
	ASSERT(!as || as->fate == HERE || status == 401 ||
	       strcmp(path, "/v1/status") == 0);
	json_decref(w->answer);
	w->answer = NULL;
	if (r.body && strcmp(r.content_type, "application/json") == 0) {
		w->answer = json_loadb(r.body, r.body_bytes, 0, NULL);
		ASSERT(json_is_object(w->answer));
		ASSERT((status >= 400) ==
		       !!json_object_get(w->answer, "error"));
	}
	ctl_reply_release(&r);
	return status;
}

static const char *answer_text(const struct world *w, const char *name)
{
	const char *s = json_string_value(json_object_get(w->answer, name));

	ASSERT(s && strlen(s) < ID_BYTES);
	return s;
}

static uint64_t answer_u64(const struct world *w, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(w->answer, name));
}

/* ---- the model ---------------------------------------------------------- */

static void unsure(enum fate *fate)
{
	if (*fate == HERE)
		*fate = UNSURE;
}

/* Something may have ended this connection, and others with it. */
static void doubt_conn(struct model_tenant *t, unsigned which)
{
	unsure(&t->conn[which].fate);
	for (unsigned i = 0; i < CONNS; i++)
		if (t->conn[i].is_member)
			unsure(&t->conn[i].fate);
	for (unsigned i = 0; i < GRANTS; i++)
		if (t->conn[t->grant[i].conn].fate != HERE)
			unsure(&t->grant[i].fate);
	for (unsigned i = 0; i < REGIONS; i++)
		if (t->region[i].owner >= 0 &&
		    t->conn[t->region[i].owner].fate != HERE)
			unsure(&t->region[i].fate);
}

static void doubt_session(struct model_tenant *t, int session)
{
	/* Of connections that are remembered no more, one may have had this
	 * session and the pages that others joined. */
	const bool are_forgotten = t->next_conn > CONNS;

	for (unsigned i = 0; session >= 0 && i < CONNS; i++)
		if (t->conn[i].session == session ||
		    (are_forgotten && t->conn[i].is_member))
			doubt_conn(t, i);
}

static void forget_all(struct model_tenant *t)
{
	for (unsigned i = 0; i < CONNS; i++)
		t->conn[i].fate = GONE;
	for (unsigned i = 0; i < GRANTS; i++)
		t->grant[i].fate = GONE;
	for (unsigned i = 0; i < REGIONS; i++)
		t->region[i].fate = GONE;
	for (unsigned i = 0; i < SEGMENTS; i++)
		t->segment[i] = (struct model_segment){GONE, false};
	for (unsigned i = 0; i < MEMBERS; i++)
		t->member[i].fate = GONE;
	t->fate = GONE;
}

/* ---- steps -------------------------------------------------------------- */

struct step {
	struct world *w;
	struct model_tenant *me;    /* who asks */
	struct model_tenant *whose; /* whose things are asked for */
	uint8_t a, b, c;
};

static bool is_own(const struct step *s)
{
	return s->me == s->whose;
}

static const char *conn_path(const struct step *s, unsigned which,
			     const char *rest, char out[LINE_BYTES])
{
	snprintf(out, LINE_BYTES, "/v1/connections/%s%s",
		 s->whose->conn[which].id[0] ? s->whose->conn[which].id : "0",
		 rest);
	return out;
}

static const char *region_name(const struct model_tenant *t, unsigned which,
			       char out[ID_BYTES])
{
	snprintf(out, ID_BYTES, "%s.%u", t->name, which);
	return out;
}

static void region_make(struct step *s)
{
	unsigned which = s->a % REGIONS, owner = s->b % CONNS;
	struct model_region *r = &s->me->region[which];
	const struct model_conn *c = &s->whose->conn[owner];
	const bool owned = s->b & 0x80 && c->id[0];
	char body[BODY_BYTES], name[ID_BYTES], words[64] = "";
	unsigned status;

	if (owned)
		snprintf(words, sizeof(words), ",\"owner\":\"%s\"", c->id);
	snprintf(body, sizeof(body), "{\"name\":\"%s\",\"size\":%u%s%s}",
		 region_name(s->me, which, name), 1 + s->c * 997u,
		 s->b & 0x40 ? ",\"memory\":\"device\"" : "", words);
	status = ask(s->w, s->me, CTL_POST, "/v1/regions", body);
	if (status != 201)
		return;
	ASSERT(r->fate != HERE);
	/* Only a connection of one's own can be the owner. */
	ASSERT(!owned || (is_own(s) && c->fate != GONE));
	*r = (struct model_region){.fate = owned && c->fate != HERE ? UNSURE
								    : HERE,
				   .owner = owned ? (int)owner : -1};
}

static void region_change(struct step *s)
{
	unsigned which = s->a % REGIONS, status;
	struct model_region *r = &s->whose->region[which];
	char path[LINE_BYTES], body[BODY_BYTES] = "", name[ID_BYTES];
	enum ctl_method method = s->b % 3 == 0	 ? CTL_DELETE
				 : s->b % 3 == 1 ? CTL_PATCH
						 : CTL_GET;

	snprintf(path, sizeof(path), "/v1/regions/%s",
		 region_name(s->whose, which, name));
	if (method == CTL_PATCH)
		snprintf(body, sizeof(body), "{\"size\":%u}", 1 + s->c * 991u);
	status = ask(s->w, s->me, method, path, body);
	if (s->me->fate != HERE)
		return;
	if (!is_own(s) || r->fate == GONE)
		ASSERT(status == 404);
	else if (r->fate == HERE)
		ASSERT(status != 404);
	if (!is_own(s) || status >= 300)
		return;
	if (method == CTL_DELETE)
		r->fate = GONE;
	for (unsigned i = 0; method != CTL_GET && i < GRANTS; i++)
		if (s->me->grant[i].region == which)
			s->me->grant[i].fate = GONE;
}

/* Joins the pages of a connection if `c` says so. */
static void make_conn(struct step *s)
{
	static const char *const roles[] = {"load", "mapped", "unmapped",
					    "invalidate"};
	const struct model_conn *owner = &s->whose->conn[s->a % CONNS];
	int session = s->b % (SESSIONS + 1) - 1;
	bool joins = s->c & 1 && owner->id[0];
	char body[BODY_BYTES], words[2][96] = {"", ""};
	struct model_conn *c;
	unsigned status;

	if (joins)
		snprintf(words[0], sizeof(words[0]),
			 ",\"pages\":\"%s\",\"owner\":\"%s\"",
			 roles[s->c / 2 % ARRAY_LEN(roles)], owner->id);
	if (session >= 0) /* both may use the same: they are not the same */
		snprintf(words[1], sizeof(words[1]), ",\"session\":\"%032x\"",
			 (unsigned)session);
	snprintf(body, sizeof(body),
		 "{\"proto\":\"1.0\",\"gid\":"
		 "\"00000000000000000000ffff7f000001\",\"qpn\":99,"
		 "\"psn\":%d,\"access\":\"%s\",\"client\":\"%s\"%s%s}",
		 CLIENT_PSN, s->c & 0x40 ? "r" : "rw", s->me->name, words[0],
		 words[1]);
	doubt_session(s->me, session);
	status = ask(s->w, s->me, CTL_POST, "/v1/connect", body);
	if (status != 200)
		return;
	ASSERT(!joins || (is_own(s) && owner->fate != GONE));
	c = &s->me->conn[s->me->next_conn++ % CONNS];
	/* What hung on the one that was remembered here is not followed. */
	for (unsigned i = 0; i < GRANTS; i++)
		if (&s->me->conn[s->me->grant[i].conn] == c)
			unsure(&s->me->grant[i].fate);
	for (unsigned i = 0; i < REGIONS; i++)
		if (s->me->region[i].owner == (int)(c - s->me->conn))
			unsure(&s->me->region[i].fate);
	/* One that joins late waits for the answers of chains that are there,
	 * and stops with them. */
	*c = (struct model_conn){
		.fate = joins && s->me->has_called ? UNSURE : HERE,
		.is_member = joins,
		.session = session,
		.qpn = (uint32_t)answer_u64(s->w, "qpn"),
	};
	snprintf(c->id, sizeof(c->id), "%s", answer_text(s->w, "connection"));
}

/* One request about a connection; whether it was answered well. */
static bool ask_conn(struct step *s, unsigned which, enum ctl_method method,
		     const char *rest, const char *body)
{
	const struct model_conn *c = &s->whose->conn[which];
	char path[LINE_BYTES];
	unsigned status =
		ask(s->w, s->me, method, conn_path(s, which, rest, path), body);

	if (s->me->fate != HERE)
		return false;
	if (!is_own(s) || c->fate == GONE)
		ASSERT(status >= 400);
	else if (c->fate == HERE)
		ASSERT(status != 410);
	return status < 300;
}

static void conn_end(struct step *s)
{
	unsigned which = s->a % CONNS;

	if (ask_conn(s, which, CTL_DELETE, "", "")) {
		doubt_conn(s->me, which);
		s->me->conn[which].fate = GONE;
	}
}

static void conn_beat(struct step *s)
{
	(void)ask_conn(s, s->a % CONNS, CTL_POST, "/heartbeat", "");
}

static void grant_make(struct step *s)
{
	static const char *const rights[] = {"r", "rw", "rwa"};
	unsigned which = s->a % CONNS, region = s->b % REGIONS;
	struct model_tenant *t =
		s->b & 0x80 ? s->me : s->whose; /* whose region */
	char body[BODY_BYTES], name[ID_BYTES];
	struct model_grant *g;

	snprintf(body, sizeof(body),
		 "{\"region\":\"%s\",\"rights\":\"%s\",\"offset\":%u,"
		 "\"revocable\":%s}",
		 region_name(t, region, name), rights[s->c % 3],
		 s->c & 0x80 ? 8u * s->c : 0, s->c & 0x40 ? "true" : "false");
	if (!ask_conn(s, which, CTL_POST, "/grants", body))
		return;
	ASSERT(t == s->me && t->region[region].fate != GONE);
	g = &t->grant[t->next_grant++ % GRANTS];
	*g = (struct model_grant){
		.fate = t->conn[which].fate,
		.conn = which,
		.region = region,
	};
	snprintf(g->id, sizeof(g->id), "%s", answer_text(s->w, "grant"));
	snprintf(g->rkey, sizeof(g->rkey), "\"rkey\":%u",
		 (unsigned)answer_u64(s->w, "rkey"));
}

static void grant_end(struct step *s)
{
	struct model_grant *g = &s->whose->grant[s->b % GRANTS];
	unsigned which = s->c & 1 ? s->a % CONNS : g->conn;
	char rest[LINE_BYTES];

	snprintf(rest, sizeof(rest), "/grants/%s", g->id[0] ? g->id : "0");
	if (ask_conn(s, which, CTL_DELETE, rest, ""))
		g->fate = GONE;
}

static void pages_make(struct step *s)
{
	char body[BODY_BYTES];

	snprintf(body, sizeof(body),
		 "{\"version\":%d,\"count\":%u,\"bytes\":%u,\"depth\":%u%s}",
		 PAGE_WIRE_VERSION, 1 + s->b % 64u, 64u << s->c % 8,
		 1 + s->c % 16u, s->c & 0x80 ? ",\"sparse\":true" : "");
	(void)ask_conn(s, s->a % CONNS, CTL_POST, "/pages", body);
}

static void pages_look(struct step *s)
{
	unsigned which = s->a % CONNS;

	if (s->b & 1) {
		(void)ask_conn(s, which, CTL_GET, "/pages", "");
		return;
	}
	/* It ends chains that have stopped. */
	for (unsigned i = 0; i < CONNS; i++)
		if (is_own(s) && s->me->conn[i].is_member)
			doubt_conn(s->me, i);
	(void)ask_conn(s, which, CTL_POST, "/pages/mapped",
		       "{\"pages\":[0,1,2,63,64,-1,99999999]}");
}

static void lists(struct step *s)
{
	static const char *const paths[] = {"/v1/regions", "/v1/connections",
					    "/v1/grants", "/v1/status",
					    "/metrics"};

	(void)ask(s->w, s->me, CTL_GET, paths[s->a % ARRAY_LEN(paths)], "");
}

static void tick(struct step *s)
{
	static const uint64_t most_ns = 12000000000; /* a heartbeat is 1 s */

	if (s->a & 1) {
		s->w->clock_ns += most_ns / 255 * s->b;
		for (unsigned t = 0; t < TENANTS; t++)
			for (unsigned i = 0; i < CONNS; i++)
				doubt_conn(&s->w->tenant[t], i);
		for (unsigned t = 0; t < TENANTS; t++)
			for (unsigned i = 0; i < MEMBERS; i++)
				unsure(&s->w->tenant[t].member[i].fate);
	}
	mem_node_tick(s->w->node);
}

/* ---- shared memory ------------------------------------------------------- */

static struct model_tenant *other_of(struct step *s, struct model_tenant *t)
{
	return &s->w->tenant[t == s->w->tenant];
}

/* Of one's own, by its name alone; what another has under the same path is not
 * there. */
static void own_segment(struct step *s, unsigned which, bool deletes)
{
	struct model_segment *g = &s->whose->segment[which];
	char path[LINE_BYTES], name[ID_BYTES];
	unsigned status;

	snprintf(path, sizeof(path), "/v1/shared/segments/%s",
		 region_name(s->whose, which, name));
	status = ask(s->w, s->me, deletes ? CTL_DELETE : CTL_GET, path, "");
	if (s->me->fate != HERE)
		return;
	if (!is_own(s) || g->fate == GONE)
		ASSERT(status == 404);
	else
		ASSERT(status == (deletes ? 204 : 200));
	if (deletes && is_own(s))
		*g = (struct model_segment){GONE, false};
}

static void any_segment(struct step *s, unsigned which)
{
	const struct model_segment *g = &s->whose->segment[which];
	char path[LINE_BYTES], name[ID_BYTES];
	unsigned status;

	snprintf(path, sizeof(path), "/v1/shared/segments/%s/%s",
		 s->whose->name, region_name(s->whose, which, name));
	status = ask(s->w, s->me, CTL_GET, path, "");
	if (s->me->fate == HERE)
		ASSERT(status ==
		       (g->fate == HERE && (is_own(s) || g->is_allowed) ? 200
									: 404));
}

static void allow_segment(struct step *s, unsigned which)
{
	static const char *const rights[] = {"none", "r", "rw"};
	struct model_segment *g = &s->me->segment[which];
	char path[LINE_BYTES], body[BODY_BYTES], name[ID_BYTES];
	unsigned status;

	snprintf(path, sizeof(path), "/v1/shared/segments/%s/allow",
		 region_name(s->me, which, name));
	snprintf(body, sizeof(body), "{\"tenant\":\"%s\",\"right\":\"%s\"}",
		 other_of(s, s->me)->name, rights[s->c % 3]);
	status = ask(s->w, s->me, CTL_POST, path, body);
	if (status != 204)
		return;
	ASSERT(g->fate == HERE && other_of(s, s->me)->fate == HERE);
	g->is_allowed = s->c % 3;
	s->me->has_allowed |= g->is_allowed;
}

static void segment_step(struct step *s)
{
	unsigned which = s->a % SEGMENTS;
	char body[BODY_BYTES], name[ID_BYTES];
	struct model_segment *g = &s->me->segment[which];

	switch (s->b % 8) {
	case 0:
		own_segment(s, which, true);
		break;
	case 1:
		own_segment(s, which, false);
		break;
	case 2:
		any_segment(s, which);
		break;
	case 3:
	case 4:
		allow_segment(s, which);
		break;
	case 5:
		(void)ask(s->w, s->me, CTL_GET, "/v1/shared/segments", "");
		break;
	default:
		snprintf(body, sizeof(body), "{\"name\":\"%s\",\"size\":%u}",
			 region_name(s->me, which, name), 1 + s->c * 49999u);
		if (ask(s->w, s->me, CTL_POST, "/v1/shared/segments", body) !=
		    201)
			break;
		ASSERT(g->fate != HERE);
		*g = (struct model_segment){HERE, false};
		break;
	}
}

static void join(struct step *s)
{
	unsigned which = s->me->next_member % MEMBERS;
	char body[BODY_BYTES];

	snprintf(body, sizeof(body),
		 "{\"proto\":\"1.0\",\"name\":\"h\",\"gid\":"
		 "\"00000000000000000000ffff0a0000%02x\",\"talk\":{\"qpn\":5,"
		 "\"psn\":7},\"lanes\":[{\"qpn\":6,\"psn\":8}]}",
		 s->c);
	if (ask(s->w, s->me, CTL_POST, "/v1/shared/members", body) != 201)
		return;
	s->me->member[which].fate = HERE;
	snprintf(s->me->member[which].id, ID_BYTES, "%s",
		 answer_text(s->w, "member"));
	s->me->next_member++;
}

static void member_step(struct step *s)
{
	struct model_member *m = &s->whose->member[s->a % MEMBERS];
	static const struct {
		enum ctl_method method;
		const char *rest;
		unsigned status;
	} asks[] = {{CTL_DELETE, "", 204},
		    {CTL_POST, "/beat", 200},
		    {CTL_POST, "/connect", 400}};
	unsigned i = s->b % 5, status;
	char path[LINE_BYTES];

	if (i >= ARRAY_LEN(asks)) {
		join(s);
		return;
	}
	snprintf(path, sizeof(path), "/v1/shared/members/%s%s",
		 m->id[0] ? m->id : "0", asks[i].rest);
	status = ask(s->w, s->me, asks[i].method, path, "");
	if (s->me->fate != HERE || !m->id[0])
		return;
	if (!is_own(s) || m->fate == GONE)
		ASSERT(status == 410);
	else if (m->fate == HERE)
		ASSERT(status == asks[i].status);
	if (is_own(s) && i == 0)
		m->fate = GONE;
}

/* ---- packets to chains --------------------------------------------------- */

static int to_rts(struct ibv_qp *qp, uint32_t dest)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	int err = ibv_modify_qp(qp, &attr,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					IBV_QP_ACCESS_FLAGS);

	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.sgid_index = 1, .hop_limit = 64}},
	};
	attr.ah_attr.grh.dgid.raw[10] = attr.ah_attr.grh.dgid.raw[11] = 0xff;
	attr.ah_attr.grh.dgid.raw[12] = 127;
	attr.ah_attr.grh.dgid.raw[15] = 1;
	if (!err)
		err = ibv_modify_qp(qp, &attr,
				    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					    IBV_QP_MAX_DEST_RD_ATOMIC |
					    IBV_QP_MIN_RNR_TIMER);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.sq_psn = CLIENT_PSN,
	};
	if (!err)
		err = ibv_modify_qp(qp, &attr,
				    IBV_QP_STATE | IBV_QP_TIMEOUT |
					    IBV_QP_RETRY_CNT |
					    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					    IBV_QP_MAX_QP_RD_ATOMIC);
	return err;
}

/* The NIC's handle of the clients, which stays open for all inputs. */
static struct ibv_context *client_nic(void)
{
	static struct ibv_context *context;
	struct ibv_device **list;

	if (context)
		return context;
	verbs_set_provider(loop_provider());
	list = ibv_get_device_list(NULL);
	ASSERT(list && list[0]);
	context = ibv_open_device(list[0]);
	ASSERT(context);
	ibv_free_device_list(list);
	return context;
}

/* The first call that a chain gets; entries that do not exist stop it. */
static void call_chain(struct step *s)
{
	const struct model_conn *c = &s->me->conn[s->a % CONNS];
	struct ibv_pd *pd = ibv_alloc_pd(client_nic());
	struct ibv_cq *cq = ibv_create_cq(client_nic(), 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.cap = {4, 1, 1, 1, CALL_BYTES},
					.qp_type = IBV_QPT_RC};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	uint8_t call[CALL_BYTES] = {[2] = s->b & 0x80 ? 1 : 0, [7] = s->b & 63};
	struct ibv_sge sge = {.addr = (uintptr_t)call, .length = CALL_BYTES};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_INLINE};
	struct ibv_wc wc;

	ASSERT(pd && cq && qp);
	call[11] = s->c;
	s->me->has_called = true;
	if (c->qpn && c->is_member && to_rts(qp, c->qpn) == 0 &&
	    ibv_post_send(qp, &wr, &bad) == 0)
		for (unsigned i = 0; i < 4; i++)
			(void)!ibv_poll_cq(cq, 1,
					   &wc); /* only to move frames */
	for (unsigned i = 0; i < CONNS; i++)
		if (s->me->conn[i].is_member)
			doubt_conn(s->me, i);
	(void)ibv_destroy_qp(qp);
	(void)ibv_destroy_cq(cq);
	(void)ibv_dealloc_pd(pd);
}

/* ---- the administrator --------------------------------------------------- */

static void tenant_make(struct world *w, struct model_tenant *t)
{
	char body[BODY_BYTES];
	unsigned status;

	snprintf(body, sizeof(body), "{\"name\":\"%s\",\"token\":\"%s\"}",
		 t->name, t->token);
	status = ask(w, NULL, CTL_POST, "/v1/tenants", body);
	ASSERT(status == (t->fate == HERE ? 409 : 201));
	t->fate = HERE;
}

/* Another token, and back: the old one opens nothing meanwhile, and what was
 * connected with it has ended. */
static void token_change(struct step *s, const char *path)
{
	static const char other[] = "99999999999999999999999999999999"
				    "99999999999999999999999999999999";
	const unsigned want = s->me->fate == HERE ? 200 : 404;
	char at[LINE_BYTES + 8], body[BODY_BYTES];
	unsigned status;

	snprintf(at, sizeof(at), "%s/token", path);
	snprintf(body, sizeof(body), "{\"token\":\"%s\"}", other);
	status = ask(s->w, NULL, CTL_PATCH, at, body);
	ASSERT(status == want);
	status = ask(s->w, s->me, CTL_GET, "/v1/regions", "");
	ASSERT(status == 401);
	if (s->c & 1) {
		status = ask(s->w, NULL, CTL_DELETE, at, "");
		ASSERT(status == (want == 200 ? 204 : 404));
	}
	snprintf(body, sizeof(body), "{\"token\":\"%s\"}", s->me->token);
	status = ask(s->w, NULL, CTL_PATCH, at, body);
	ASSERT(status == want);
	for (unsigned i = 0; i < CONNS; i++)
		doubt_conn(s->me, i);
}

static void administer(struct step *s)
{
	char path[LINE_BYTES], body[BODY_BYTES];
	unsigned status;

	snprintf(path, sizeof(path), "/v1/tenants/%s", s->me->name);
	if (s->a & 1) {
		tenant_make(s->w, s->me);
	} else if (s->b >= DELETES_MIN) {
		status = ask(s->w, NULL, CTL_DELETE, path, "");
		ASSERT(status == (s->me->fate == HERE ? 204 : 404));
		forget_all(s->me);
	} else if ((s->b & 3) == 2) {
		token_change(s, path);
	} else if (s->b & 1) {
		snprintf(body, sizeof(body), "{\"quota\":%u}",
			 (unsigned)s->c << 13);
		(void)ask(s->w, NULL, CTL_PATCH, path, body);
	} else {
		(void)ask(s->w, NULL, CTL_GET, "/v1/tenants", "");
	}
}

/* ---- all together -------------------------------------------------------- */

static void run_step(struct world *w, const uint8_t *at)
{
	static void (*const does[])(struct step *) = {
		region_make, region_change, make_conn,	  conn_end,
		conn_beat,   grant_make,    grant_end,	  pages_make,
		pages_look,  lists,	    tick,	  call_chain,
		administer,  make_conn,	    segment_step, member_step,
	};
	struct step s = {
		.w = w,
		.me = &w->tenant[at[0] >> 7],
		.a = at[1],
		.b = at[2],
		.c = at[3],
	};
	bool crosses = (at[0] & 0x70) == 0x70;

	s.whose = crosses ? &w->tenant[!(at[0] >> 7)] : s.me;
	does[at[0] & 0xf](&s);
}

static bool is_listed(const struct world *w, const char *list, const char *key,
		      const char *value)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(w->answer, list), i, row)
	{
		const char *s = json_string_value(json_object_get(row, key));

		if (s && strcmp(s, value) == 0)
			return true;
	}
	return false;
}

/* What is surely there is listed, what is surely gone is not. */
static void check_all(struct world *w, struct model_tenant *t)
{
	char name[ID_BYTES];

	if (t->fate != HERE)
		return;
	(void)ask(w, t, CTL_GET, "/v1/regions", "");
	for (unsigned i = 0; i < REGIONS; i++) {
		region_name(t, i, name);
		if (t->region[i].fate != UNSURE)
			ASSERT(is_listed(w, "regions", "name", name) ==
			       (t->region[i].fate == HERE));
	}
	(void)ask(w, t, CTL_GET, "/v1/shared/segments", "");
	for (unsigned i = 0; i < SEGMENTS; i++)
		ASSERT(is_listed(w, "segments", "name",
				 region_name(t, i, name)) ==
		       (t->segment[i].fate == HERE));
	(void)ask(w, t, CTL_GET, "/v1/connections", "");
	for (unsigned i = 0; i < CONNS; i++)
		if (t->conn[i].id[0] && t->conn[i].fate != UNSURE)
			ASSERT(is_listed(w, "connections", "connection",
					 t->conn[i].id) ==
			       (t->conn[i].fate == HERE));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
	struct world w = {
		.env = {.ops = &ops},
		.clock_ns = 1000000000,
		.tenant = {{.name = "alpha",
			    .token = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
				     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
			   {.name = "bravo",
			    .token = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
				     "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"}},
	};
	struct mem_node_config config = {
		.name = "m0",
		.pool_bytes = POOL_BYTES,
		.shared_bytes = SHARED_BYTES,
		.switch_path = "here",
		.switch_carry = switch_socket_carry,
		.switch_ctx = switch_socket_one(),
		.default_token = token_default,
		.admin_token = token_admin,
		.env = &w.env,
	};
	int err;

	(void)client_nic();
	rng_init(&w.rng, 1);
	err = mem_node_create(&config, &w.node);
	ASSERT(err == 0);
	for (unsigned i = 0; i < TENANTS; i++)
		tenant_make(&w, &w.tenant[i]);
	for (unsigned i = 0; i < STEPS_MAX && len_bytes >= STEP_BYTES; i++) {
		run_step(&w, data);
		data += STEP_BYTES;
		len_bytes -= STEP_BYTES;
	}
	for (unsigned i = 0; i < TENANTS; i++)
		check_all(&w, &w.tenant[i]);
	json_decref(w.answer);
	mem_node_destroy(w.node);
	return 0;
}
