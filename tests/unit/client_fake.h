/* SPDX-License-Identifier: Apache-2.0 */
/* A rack in memory: nodes that answer HTTP and move bytes, and that can be told
 * to die, refuse and forget. */
#ifndef AQ_TEST_CLIENT_FAKE_H
#define AQ_TEST_CLIENT_FAKE_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
/* cmocka wants the four above. */
#include <cmocka.h>

#include "base/error.h"
#include "client/client_priv.h"

enum {
	FAKE_NODES = 3,
	FAKE_REGIONS = 16,
	FAKE_QUEUE = 64,
};

struct fake_region {
	char name[CLIENT_PIECE_NAME_MAX]; /* "": free */
	uint32_t id;
	uint32_t epoch;
	uint64_t size;
	uint8_t *mem;
};

struct fake_node {
	bool is_down;
	bool is_silent;	      /* takes requests and never answers */
	bool forgets_conns;   /* once: the next operation of a connection is
			       * lost */
	bool is_claimed;      /* the name of the next region */
	bool is_others_claim; /* so it cannot be */
	uint64_t pool, used, quota;
	unsigned incarnation;
	uint32_t next_id;
	const char *proto;
	struct fake_region region[FAKE_REGIONS];
};

struct fake_rack {
	struct fake_node node[FAKE_NODES];
	uint64_t now_ns;
	uint32_t conns; /* ever made */
	uint32_t grants;
	uint32_t revocable_grants; /* of them */
	uint32_t deletes;	   /* of connections */
	uint32_t posts;
	unsigned fail_status; /* 0; else the next request gets it */
	const char *fail_body;
	const char *passes; /* once: node 1's region of this name goes to node
			     * 0 before node 1 is asked for it */
	char reply[8192];
	/* Requests that were posted, in order. */
	struct {
		struct client_conn *conn;
		uint32_t generation;
		struct client_op op;
	} queue[FAKE_QUEUE];
	unsigned queue_count;
	char dir[64];
};

#define FAKE_TOKEN \
	"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static struct fake_region *fake_region(struct fake_node *n, const char *name)
{
	for (unsigned i = 0; i < FAKE_REGIONS; i++)
		if (strcmp(n->region[i].name, name) == 0)
			return &n->region[i];
	return NULL;
}

static int fake_say(struct fake_rack *f, struct client_http_reply *r,
		    long status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->reply, sizeof(f->reply), fmt, ap);
	va_end(ap);
	r->status = status;
	r->text = f->reply[0] ? f->reply : NULL;
	r->len_bytes = strlen(f->reply);
	return 0;
}

static int fake_error(struct fake_rack *f, struct client_http_reply *r,
		      long status, const char *code)
{
	return fake_say(f, r, status,
			"{\"error\":{\"code\":\"%s\",\"message\":\"no\","
			"\"advice\":\"be nice\"}}",
			code);
}

static int fake_show(struct fake_rack *f, const struct fake_node *n,
		     struct client_http_reply *r, long status,
		     const struct fake_region *g)
{
	return fake_say(f, r, status,
			"{\"name\":\"%s\",\"size\":%llu,\"id\":%u,"
			"\"epoch\":%u,\"incarnation\":\"%016x\"}",
			g->name, (unsigned long long)g->size, g->id, g->epoch,
			n->incarnation);
}

static int fake_resize(struct fake_rack *f, struct fake_node *n,
		       struct fake_region *g, uint64_t size,
		       struct client_http_reply *r, long status)
{
	uint8_t *mem;

	if (n->used - g->size + size > n->quota)
		return fake_error(f, r, 507, "-EDQUOT");
	if (n->used - g->size + size > n->pool)
		return fake_error(f, r, 507, "-ENOSPC");
	mem = realloc(g->mem, size);
	assert_non_null(mem);
	if (size > g->size)
		memset(mem + g->size, 0, size - g->size);
	n->used += size - g->size;
	g->mem = mem;
	g->size = size;
	g->epoch++;
	return fake_show(f, n, r, status, g);
}

static int fake_create(struct fake_rack *f, struct fake_node *n,
		       const json_t *body, struct client_http_reply *r)
{
	const char *name = json_string_value(json_object_get(body, "name"));
	uint64_t size =
		(uint64_t)json_integer_value(json_object_get(body, "size"));
	struct fake_region *g;
	int err;

	for (unsigned i = 0; i < FAKE_NODES; i++)
		assert_true(f->node[i].is_claimed || f->node[i].is_down);
	if (fake_region(n, name))
		return fake_error(f, r, 409, "-EEXIST");
	g = fake_region(n, "");
	assert_non_null(g);
	g->size = 0;
	g->id = ++n->next_id;
	err = fake_resize(f, n, g, size, r, 201);
	if (r->status == 201) {
		snprintf(g->name, sizeof(g->name), "%s", name);
		return fake_show(f, n, r, 201, g);
	}
	return err;
}

static int fake_claim(struct fake_rack *f, struct fake_node *n,
		      const char *method, struct client_http_reply *r)
{
	if (n->is_others_claim)
		return fake_error(f, r, 409, "-EBUSY");
	n->is_claimed = strcmp(method, "POST") == 0;
	/* In the order of their names. */
	for (const struct fake_node *k = f->node; n->is_claimed && k < n; k++)
		assert_true(k->is_claimed || k->is_down);
	return fake_say(f, r, 204, "%s", "");
}

static int fake_list(struct fake_rack *f, struct fake_node *n,
		     struct client_http_reply *r)
{
	char text[4096] = "";
	size_t used = 0;

	for (unsigned i = 0; i < FAKE_REGIONS; i++) {
		const struct fake_region *g = &n->region[i];

		if (g->name[0])
			used += (size_t)snprintf(
				text + used, sizeof(text) - used,
				"%s{\"name\":\"%s\",\"size\":%llu,\"id\":%u,"
				"\"epoch\":%u,\"incarnation\":\"%016x\"}",
				used ? "," : "", g->name,
				(unsigned long long)g->size, g->id, g->epoch,
				n->incarnation);
	}
	return fake_say(f, r, 200, "{\"regions\":[%s]}", text);
}

static void fake_pass(struct fake_rack *f)
{
	struct fake_region *to = fake_region(&f->node[0], ""),
			   *from = fake_region(&f->node[1], f->passes);

	assert_non_null(to);
	assert_non_null(from);
	*to = *from;
	*from = (struct fake_region){0};
	f->passes = NULL;
}

static int fake_one(struct fake_rack *f, struct fake_node *n,
		    const char *method, const char *name, const json_t *body,
		    struct client_http_reply *r)
{
	struct fake_region *g;

	if (f->passes && n == &f->node[1] && strcmp(name, f->passes) == 0)
		fake_pass(f);
	g = name[0] ? fake_region(n, name) : NULL;
	if (!g)
		return fake_error(f, r, 404, "-ENOENT");
	if (strcmp(method, "DELETE") == 0) {
		n->used -= g->size;
		free(g->mem);
		memset(g, 0, sizeof(*g));
		return fake_say(f, r, 204, "%s", "");
	}
	if (strcmp(method, "PATCH") == 0)
		return fake_resize(f, n, g,
				   (uint64_t)json_integer_value(
					   json_object_get(body, "size")),
				   r, 200);
	return fake_show(f, n, r, 200, g);
}

/* The rkey is the id and the epoch, the address always 4096. */
static int fake_grant(struct fake_rack *f, struct fake_node *n,
		      const json_t *body, struct client_http_reply *r)
{
	const char *name = json_string_value(json_object_get(body, "region"));
	struct fake_region *g = fake_region(n, name);

	if (!g)
		return fake_error(f, r, 404, "-ENOENT");
	f->grants++;
	f->revocable_grants += json_is_true(json_object_get(body, "revocable"));
	return fake_say(f, r, 201,
			"{\"grant\":\"g%u\",\"rkey\":%u,\"addr\":4096,"
			"\"length\":%llu,\"epoch\":%u,\"region_id\":%u,"
			"\"incarnation\":\"%016x\"}",
			f->grants, g->id << 16 | g->epoch,
			(unsigned long long)g->size, g->epoch, g->id,
			n->incarnation);
}

static int fake_route(struct fake_rack *f, struct fake_node *n,
		      const struct client_http_request *q, const json_t *body,
		      struct client_http_reply *r)
{
	if (strcmp(q->path, "/v1/status") == 0)
		return fake_say(f, r, 200,
				"{\"proto\":\"%s\",\"pool\":{\"free\":%llu}}",
				n->proto,
				(unsigned long long)(n->pool - n->used));
	if (!q->token || strcmp(q->token, FAKE_TOKEN) != 0)
		return fake_error(f, r, 401, "-EACCES");
	if (strncmp(q->path, "/v1/claims", 10) == 0)
		return fake_claim(f, n, q->method, r);
	if (strcmp(q->path, "/v1/regions") == 0)
		return strcmp(q->method, "POST") == 0
			       ? fake_create(f, n, body, r)
			       : fake_list(f, n, r);
	if (strncmp(q->path, "/v1/regions/", 12) == 0)
		return fake_one(f, n, q->method, q->path + 12, body, r);
	if (strstr(q->path, "/grants") && strcmp(q->method, "POST") == 0)
		return fake_grant(f, n, body, r);
	if (strncmp(q->path, "/v1/connections/", 16) == 0) {
		f->deletes += strcmp(q->method, "DELETE") == 0;
		return fake_say(f, r, 204, "%s", "");
	}
	return fake_error(f, r, 404, "-ENOENT");
}

static int fake_http(void *ctx, struct client_http *h,
		     const struct client_http_request *q,
		     struct client_http_reply *r)
{
	struct fake_rack *f = ctx;
	const char *slash = strrchr(q->address, '/');
	struct fake_node *n = &f->node[slash[2] - '0'];
	json_t *body = q->body ? json_loads(q->body, 0, NULL) : NULL;
	int err;

	if (n->is_down)
		err = error_set(-EHOSTDOWN, "nobody listens");
	else if (f->fail_status)
		err = fake_say(f, r, f->fail_status, "%s", f->fail_body);
	else
		err = fake_route(f, n, q, body, r);
	json_decref(body);
	return err;
}

/* ---- data --------------------------------------------------------------- */

static uint64_t fake_now(void *ctx)
{
	struct fake_rack *f = ctx;

	return f->now_ns;
}

/* Waiting makes time pass: one millisecond a turn. */
static void fake_relax(void *ctx)
{
	struct fake_rack *f = ctx;

	f->now_ns += 1000000;
}

static int fake_thread_open(struct client_thread *t)
{
	t->staging = malloc(CLIENT_SLOT_COUNT * CLIENT_SLOT_BYTES);
	return t->staging ? 0 : -ENOMEM;
}

static void fake_thread_close(struct client_thread *t)
{
	free(t->staging);
}

static int fake_conn_open(struct client_conn *conn, uint64_t deadline_ns)
{
	struct fake_rack *f = conn->thread->rack->transport_ctx;

	if (f->node[conn->node].is_down)
		return error_set(-EHOSTDOWN, "nobody listens");
	snprintf(conn->bond.id, sizeof(conn->bond.id), "c%u", ++f->conns);
	return 0;
}

static void fake_conn_close(struct client_conn *conn)
{
	struct fake_rack *f = conn->thread->rack->transport_ctx;
	unsigned kept = 0;

	for (unsigned i = 0; i < f->queue_count; i++)
		if (f->queue[i].conn != conn)
			f->queue[kept++] = f->queue[i];
	f->queue_count = kept;
}

static int fake_post(struct client_conn *conn, const struct client_op *op)
{
	struct fake_rack *f = conn->thread->rack->transport_ctx;

	assert_true(f->queue_count < FAKE_QUEUE);
	f->queue[f->queue_count].conn = conn;
	f->queue[f->queue_count++].op = *op;
	f->posts++;
	return 0;
}

static int fake_execute(struct fake_node *n, uint8_t *local,
			const struct client_op *op)
{
	struct fake_region *g = NULL;
	uint64_t offset = op->remote_addr - 4096;
	uint64_t *word;

	if (n->is_down || n->forgets_conns) {
		n->forgets_conns = false;
		return -EHOSTDOWN;
	}
	for (unsigned i = 0; i < FAKE_REGIONS; i++)
		if (n->region[i].name[0] &&
		    (n->region[i].id << 16 | n->region[i].epoch) == op->rkey)
			g = &n->region[i];
	if (!g || offset + op->len_bytes > g->size)
		return -ESTALE;
	word = (uint64_t *)(void *)(g->mem + offset);
	switch (op->kind) {
	case CLIENT_READ:
		memcpy(local, g->mem + offset, op->len_bytes);
		break;
	case CLIENT_WRITE:
		memcpy(g->mem + offset, local, op->len_bytes);
		break;
	case CLIENT_CAS:
		memcpy(local, word, 8);
		if (*word == op->compare_add)
			*word = op->swap;
		break;
	case CLIENT_FAA:
		memcpy(local, word, 8);
		*word += op->compare_add;
		break;
	}
	return 0;
}

/* One at a time, so that the window is seen to fill. */
static int fake_poll(struct client_thread *t, struct client_done *done,
		     unsigned max)
{
	struct fake_rack *f = t->rack->transport_ctx;
	struct client_conn *conn;
	struct client_op op;

	if (!f->queue_count)
		return 0;
	conn = f->queue[0].conn;
	op = f->queue[0].op;
	if (f->node[conn->node].is_silent)
		return 0;
	memmove(f->queue, f->queue + 1, --f->queue_count * sizeof(f->queue[0]));
	done->slot = op.slot;
	done->err = fake_execute(
		&f->node[conn->node],
		t->staging + (size_t)op.slot * CLIENT_SLOT_BYTES, &op);
	return 1;
}

static const struct client_transport fake_transport = {
	.http = fake_http,
	.now_ns = fake_now,
	.relax = fake_relax,
	.thread_open = fake_thread_open,
	.thread_close = fake_thread_close,
	.conn_open = fake_conn_open,
	.conn_close = fake_conn_close,
	.post = fake_post,
	.poll = fake_poll,
};

/* ---- a rack ------------------------------------------------------------- */

static void fake_write_file(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fchmod(fileno(file), 0600), 0);
	fputs(text, file);
	fclose(file);
}

static int fake_setup(void **state)
{
	struct fake_rack *f = calloc(1, sizeof(*f));
	char rack[96], name[16];

	assert_non_null(f);
	f->now_ns = 1000000000000ull;
	snprintf(f->dir, sizeof(f->dir), "/tmp/aquifer-client.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(rack, sizeof(rack), "%s/local", f->dir);
	assert_int_equal(mkdir(rack, 0700), 0);
	fake_write_file(rack, "token", FAKE_TOKEN "\n");
	for (unsigned i = 0; i < FAKE_NODES; i++) {
		snprintf(name, sizeof(name), "m%u.sock", i);
		fake_write_file(rack, name, "");
		f->node[i].pool = (8 - i) << 20;
		f->node[i].quota = 64 << 20;
		f->node[i].proto = "1.0";
		f->node[i].incarnation = 100;
	}
	fake_write_file(f->dir, "rack.ini", "");
	setenv("AQUIFER_RUNDIR", f->dir, 1);
	snprintf(rack, sizeof(rack), "%s/rack.ini", f->dir);
	setenv("AQUIFER_CONFIG", rack, 1);
	unsetenv("AQUIFER_TOKEN");
	unsetenv("AQUIFER_RACK_NAME");
	*state = f;
	return 0;
}

static int fake_teardown(void **state)
{
	struct fake_rack *f = *state;
	char command[128];

	for (unsigned i = 0; i < FAKE_NODES; i++)
		for (unsigned k = 0; k < FAKE_REGIONS; k++)
			free(f->node[i].region[k].mem);
	snprintf(command, sizeof(command), "rm -rf %s", f->dir);
	assert_int_equal(system(command), 0);
	free(f);
	return 0;
}

#endif
