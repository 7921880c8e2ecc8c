/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program asks the rack's controller: which nodes there are, where a
 * name is, where new memory should go. Each of them is a hint: without an
 * answer the nodes themselves are asked, as in a rack without a controller, and
 * one that does not answer is left alone for a while.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "client_priv.h"

enum {
	ASK_MS = 1000,
	OFF_MS = 2000, /* after no answer, at most */
};

struct question {
	const char *method, *path;
	json_t *body;	     /* is taken over; or NULL */
	uint32_t timeout_ms; /* 0: ASK_MS */
};

/* The first controller that answers, from *first on, which is it then; what it
 * does not know, the others do not know either. */
static int ask_by(struct client_http *http, const struct config *config,
		  const char *rundir, const char *token, unsigned *first,
		  const struct question *q, json_t **reply)
{
	struct client_node control[CLIENT_CONTROL_MAX];
	unsigned count = client_controllers_find(config, rundir, control);
	struct client_caller caller = {.http = http, .token = token};
	int err = -ENOENT;

	for (unsigned i = 0; i < count; i++) {
		unsigned at = (*first + i) % count;

		*reply = NULL;
		err = client_call(&caller, &control[at], q->method, q->path,
				  json_incref(q->body),
				  q->timeout_ms ? q->timeout_ms : ASK_MS,
				  CLIENT_LIST_MAX, reply);
		if (err == -EHOSTDOWN)
			continue;
		*first = at;
		break;
	}
	return err;
}

/* ---- nodes -------------------------------------------------------------- */

static bool is_reachable(const char *address)
{
	return strncmp(address, "unix:", 5) != 0 ||
	       access(address + 5, R_OK | W_OK) == 0;
}

static bool is_known(const struct client_node *nodes, unsigned count,
		     const char *name)
{
	for (unsigned i = 0; i < count; i++)
		if (strcmp(nodes[i].name, name) == 0)
			return true;
	return false;
}

static unsigned add(const struct config *config, const json_t *rows,
		    const char *kind, struct client_node *nodes, unsigned count)
{
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		const char *name =
			json_string_value(json_object_get(row, "name"));
		const char *address =
			json_string_value(json_object_get(row, "address"));
		const char *is =
			json_string_value(json_object_get(row, "kind"));
		struct client_node *n = &nodes[count];

		if (!name || !address || !is || strcmp(is, kind) != 0 ||
		    count == CLIENT_NODE_MAX ||
		    !client_node_name_is_valid(name) ||
		    strlen(address) >= sizeof(n->address) ||
		    is_known(nodes, count, name) || !is_reachable(address))
			continue;
		memset(n, 0, sizeof(*n));
		(void)snprintf(n->name, sizeof(n->name), "%s", name);
		(void)snprintf(n->address, sizeof(n->address), "%s", address);
		client_node_trust(config, n);
		count++;
	}
	return count;
}

int client_control_nodes(const struct config *config, const char *rundir,
			 const char *token, const char *kind,
			 struct client_node nodes[CLIENT_NODE_MAX],
			 unsigned *count)
{
	const struct question q = {"GET", "/v1/nodes", NULL, 0};
	struct client_http *http = NULL;
	json_t *reply = NULL;
	unsigned first = 0;
	int err = client_http_create(&http);

	if (!err)
		err = ask_by(http, config, rundir, token, &first, &q, &reply);
	client_http_destroy(http);
	if (!err)
		*count = add(config, json_object_get(reply, "nodes"), kind,
			     nodes, *count);
	json_decref(reply);
	return err;
}

/* ---- for a rack --------------------------------------------------------- */

static bool is_off(struct aq_rack *rack)
{
	uint64_t off = atomic_load_explicit(&rack->control_off_ns,
					    memory_order_relaxed);

	return off && client_rack_now_ns(rack) < off;
}

/* Programs that lost the same controller come back at different times, so that
 * it is not stormed when it is there again. */
static uint64_t off_ns(void)
{
	uint64_t spread = (uint32_t)getpid() * 2654435761u % (OFF_MS / 2);

	return (OFF_MS - spread) * 1000000ull;
}

/* Only a controller that does not answer is left alone; its no is an answer. */
static void note(struct aq_rack *rack, int err)
{
	uint64_t off =
		err == -EHOSTDOWN ? client_rack_now_ns(rack) + off_ns() : 0;

	atomic_store_explicit(&rack->control_off_ns, off, memory_order_relaxed);
	if (err)
		log_debug("client", "the controller: %s", error_last());
	error_clear();
}

static bool has_control(struct aq_rack *rack)
{
	const struct config *c = client_rack_listed(rack);

	return c && rack->transport == client_transport_verbs() &&
	       strcmp(config_string(c, "rack", "control"), "none") != 0 &&
	       !is_off(rack);
}

static void token_of(struct aq_rack *rack, char token[CLIENT_TOKEN_MAX])
{
	pthread_mutex_lock(&rack->lock);
	memcpy(token, rack->token, CLIENT_TOKEN_MAX);
	pthread_mutex_unlock(&rack->lock);
}

/* The handle of the last question, whose connections are still there: making
 * both takes longer than the question. A child of fork does not take its
 * parent's, which goes on with them. */
static int take_http(struct aq_rack *rack, struct client_http **out)
{
	pthread_mutex_lock(&rack->lock);
	*out = rack->control_by == getpid() ? rack->control_http : NULL;
	if (*out)
		rack->control_http = NULL;
	pthread_mutex_unlock(&rack->lock);
	return *out ? 0 : client_http_create(out);
}

/* One is kept. */
static void give_http(struct aq_rack *rack, struct client_http *h)
{
	pthread_mutex_lock(&rack->lock);
	if (!rack->control_http) {
		rack->control_http = h;
		rack->control_by = getpid();
		h = NULL;
	}
	pthread_mutex_unlock(&rack->lock);
	client_http_destroy(h);
}

/* The body is taken over. Which of the controllers answered last is only a
 * hint. */
static int ask(struct aq_rack *rack, const struct question *q, json_t **reply)
{
	char token[CLIENT_TOKEN_MAX];
	struct client_http *http;
	unsigned first =
		atomic_load_explicit(&rack->control_at, memory_order_relaxed);
	int err = take_http(rack, &http);

	if (!err) {
		token_of(rack, token);
		err = ask_by(http, rack->config, rack->rundir, token, &first, q,
			     reply);
		atomic_store_explicit(&rack->control_at, first,
				      memory_order_relaxed);
		give_http(rack, http);
	}
	json_decref(q->body);
	return err;
}

static int ask_for(struct aq_rack *rack, const struct question *q,
		   json_t **reply)
{
	int err = ask(rack, q, reply);

	note(rack, err);
	return err;
}

unsigned client_control_scan(struct aq_rack *rack,
			     struct client_node nodes[CLIENT_NODE_MAX],
			     unsigned count)
{
	char token[CLIENT_TOKEN_MAX];

	if (!has_control(rack))
		return count;
	token_of(rack, token);
	note(rack, client_control_nodes(rack->config, rack->rundir, token,
					"memory", nodes, &count));
	return count;
}

int client_control_call(struct aq_rack *rack, const char *method,
			const char *path, json_t *body, uint64_t deadline_ns,
			json_t **reply)
{
	struct question q = {method, path, body, 0};
	const struct config *c = client_rack_listed(rack);

	if (!c || strcmp(config_string(c, "rack", "control"), "none") == 0) {
		json_decref(body);
		return error_set(-ENOENT,
				 "rack %s has no controller, and names of "
				 "elastic memory are kept there; "
				 "aquifer-control(1) says how to start one",
				 rack->name);
	}
	q.timeout_ms = client_rack_left_ms(rack, deadline_ns);
	return ask(rack, &q, reply);
}

int client_control_node(struct aq_rack *rack, const char *name, uint32_t *out)
{
	uint32_t count = client_rack_nodes(rack);

	for (unsigned look = 0; look < 2; look++) {
		for (uint32_t i = 0; i < count; i++)
			if (strcmp(rack->node[i].name, name) == 0) {
				*out = i;
				return 0;
			}
		client_rack_rescan(rack);
		count = client_rack_nodes(rack);
	}
	return error_set(-EHOSTDOWN, "node %s cannot be found", name);
}

static bool find_node(struct aq_rack *rack, const char *name, uint32_t *out)
{
	uint32_t i, count = client_rack_nodes(rack);

	for (i = 0; name && i < count; i++) {
		if (strcmp(rack->node[i].name, name) != 0)
			continue;
		*out = i;
		return true;
	}
	return false;
}

bool client_control_find(struct aq_rack *rack, const char *region,
			 uint32_t *node)
{
	char path[CLIENT_PATH_MAX];
	const struct question q = {"GET", path, NULL, 0};
	const json_t *rows, *row;
	json_t *reply = NULL;
	bool found = false;
	size_t i;

	if (!has_control(rack))
		return false;
	(void)snprintf(path, sizeof(path), "/v1/names/%s", region);
	if (ask_for(rack, &q, &reply))
		return false;
	rows = json_object_get(reply, "pieces");
	json_array_foreach(rows, i, row)
	{
		const char *name =
			json_string_value(json_object_get(row, "name"));

		/* Pieces of a striped one are asked for at all nodes. */
		if (!found && name && strcmp(name, region) == 0)
			found = find_node(
				rack,
				json_string_value(json_object_get(row, "node")),
				node);
	}
	json_decref(reply);
	return found;
}

bool client_control_place(struct aq_rack *rack, uint64_t size_bytes,
			  uint32_t copies, uint32_t *nodes)
{
	struct question q = {"POST", "/v1/place", NULL, 0};
	const json_t *rows, *row;
	json_t *reply = NULL;
	uint32_t found = 0;
	size_t i;

	if (!has_control(rack))
		return false;
	q.body = json_pack("{s:I, s:I}", "size", (json_int_t)size_bytes,
			   "copies", (json_int_t)copies);
	if (ask_for(rack, &q, &reply))
		return false;
	rows = json_object_get(reply, "nodes");
	json_array_foreach(rows, i, row) if (found < copies) found +=
		find_node(rack, json_string_value(json_object_get(row, "name")),
			  &nodes[found]);
	json_decref(reply);
	return found == copies;
}
