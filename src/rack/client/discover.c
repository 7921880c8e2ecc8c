/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes a rack has, and the token for them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/config_named.h"
#include "base/error.h"
#include "base/log.h"
#include "base/rundir.h"
#include "base/trust.h"
#include "client.h"

bool client_node_name_is_valid(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return len > 0 && len < CLIENT_NODE_NAME_MAX && name[len] == '\0';
}

static struct client_node *find_or_add(struct client_node *nodes,
				       unsigned *count, const char *name)
{
	unsigned i;

	for (i = 0; i < *count; i++)
		if (strcmp(nodes[i].name, name) == 0)
			return &nodes[i];
	if (*count == CLIENT_NODE_MAX) {
		log_warn("client", "node %s is left out: a rack has at most %d",
			 name, CLIENT_NODE_MAX);
		return NULL;
	}
	memset(&nodes[i], 0, sizeof(nodes[i]));
	snprintf(nodes[i].name, sizeof(nodes[i].name), "%s", name);
	(*count)++;
	return &nodes[i];
}

/* Members of rack.group can make sockets, too: who listens there would be told
 * our token. In other racks nobody else can write. */
static bool is_served(const struct trust *t, DIR *dir, const char *name)
{
	struct stat st;

	if (!t->has_group)
		return true;
	if (fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISSOCK(st.st_mode) && trust_serves(t, st.st_uid))
		return true;
	log_warn("client", "%s is left out: it is no socket of the rack's own",
		 name);
	return false;
}

static void add_sockets(const char *rundir, const char *suffix,
			struct client_node *nodes, unsigned *count)
{
	DIR *dir = opendir(rundir);
	size_t tail = strlen(suffix);
	struct client_node *node;
	struct dirent *d;
	struct trust t;

	if (!dir)
		return;
	if (trust_load(&t)) {
		closedir(dir);
		return;
	}
	while ((d = readdir(dir))) {
		char name[CLIENT_NODE_NAME_MAX];
		size_t len = strlen(d->d_name);

		if (len <= tail || len - tail >= sizeof(name) ||
		    strcmp(d->d_name + len - tail, suffix) != 0 ||
		    !is_served(&t, dir, d->d_name))
			continue;
		memcpy(name, d->d_name, len - tail);
		name[len - tail] = '\0';
		if (!client_node_name_is_valid(name))
			continue;
		node = find_or_add(nodes, count, name);
		if (node &&
		    (size_t)snprintf(node->address, sizeof(node->address),
				     "unix:%s/%s%s", rundir, name,
				     suffix) >= sizeof(node->address))
			--*count;
	}
	closedir(dir);
}

static void add_configured(const struct config *config, const char *kind,
			   struct client_node *nodes, unsigned *count)
{
	unsigned i, total = config ? config_named_count(config, kind) : 0;

	for (i = 0; i < total; i++) {
		const char *name = config_named_name(config, kind, i);
		const char *address =
			config_named_text(config, kind, i, "address");
		struct client_node *node;

		if (!address[0])
			continue;
		node = find_or_add(nodes, count, name);
		if (!node)
			continue;
		/* A bare HOST:PORT is plain HTTP. */
		snprintf(node->address, sizeof(node->address), "%s%s",
			 strncmp(address, "unix:", 5) && !strstr(address, "://")
				 ? "http://"
				 : "",
			 address);
		snprintf(node->ca_path, sizeof(node->ca_path), "%s",
			 config_named_text(config, kind, i, "ca"));
		snprintf(node->cert_path, sizeof(node->cert_path), "%s",
			 config_named_text(config, kind, i, "cert"));
		snprintf(node->key_path, sizeof(node->key_path), "%s",
			 config_named_text(config, kind, i, "key"));
	}
}

static int by_name(const void *a, const void *b)
{
	const struct client_node *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static unsigned find(const struct config *config, const char *rundir,
		     const char *suffix, const char *kind,
		     struct client_node nodes[CLIENT_NODE_MAX])
{
	unsigned count = 0;

	add_sockets(rundir, suffix, nodes, &count);
	add_configured(config, kind, nodes, &count);
	qsort(nodes, count, sizeof(nodes[0]), by_name);
	return count;
}

unsigned client_nodes_find(const struct config *config, const char *rundir,
			   struct client_node nodes[CLIENT_NODE_MAX])
{
	return find(config, rundir, ".sock", "node", nodes);
}

unsigned client_engines_find(const struct config *config, const char *rundir,
			     struct client_node engines[CLIENT_NODE_MAX])
{
	return find(config, rundir, ".engine.sock", "engine", engines);
}

unsigned client_controllers_find(const struct config *config,
				 const char *rundir,
				 struct client_node out[CLIENT_CONTROL_MAX])
{
	const char *at =
		config ? config_string(config, "rack", "control") : "none";
	unsigned count = 0;

	if (strcmp(at, "none") == 0)
		return 0;
	for (; *at && count < CLIENT_CONTROL_MAX; at += *at == ',') {
		struct client_node *c = &out[count++];
		int len = (int)strcspn(at, ",");

		memset(c, 0, sizeof(*c));
		if (rundir_rack_is_valid(at)) {
			(void)snprintf(c->name, sizeof(c->name), "%s", at);
			(void)snprintf(c->address, sizeof(c->address),
				       "unix:%.200s/%s.control.sock", rundir,
				       at);
		} else {
			(void)snprintf(c->name, sizeof(c->name), "control");
			(void)snprintf(c->address, sizeof(c->address), "%.*s",
				       len, at);
		}
		client_node_trust(config, c);
		at += len;
	}
	return count;
}

void client_node_trust(const struct config *config, struct client_node *n)
{
	(void)snprintf(n->ca_path, sizeof(n->ca_path), "%s",
		       config_string(config, "rack", "ca"));
	(void)snprintf(n->cert_path, sizeof(n->cert_path), "%s",
		       config_string(config, "rack", "cert"));
	(void)snprintf(n->key_path, sizeof(n->key_path), "%s",
		       config_string(config, "rack", "key"));
}

/* Root's rack, which others do not find by themselves. */
static bool is_hidden(const char *rundir)
{
	static const char system[] = "/run/aquifer";

	return geteuid() != 0 &&
	       strncmp(rundir, system, sizeof(system) - 1) != 0 &&
	       access(system, F_OK) == 0;
}

int client_nodes_none(const char *rack, const char *rundir)
{
	DIR *dir = opendir(rundir);
	int err = dir ? 0 : -errno;

	if (dir)
		(void)closedir(dir); /* only looked */
	if (err == -EACCES)
		return error_set(err,
				 "user %u may not look into %s, where rack %s "
				 "is: run as the user that serves it, or have "
				 "rack.group set (rack.ini(5)), or use a node "
				 "that listens on TCP, by a [node] section and "
				 "a token",
				 (unsigned)geteuid(), rundir, rack);
	return error_set(
		-ENOENT,
		"rack %s has no memory node: no socket in %s and no [node] "
		"in rack.ini; 'aquifer up' starts one%s",
		rack, rundir,
		is_hidden(rundir) ? "; there is /run/aquifer too, of another "
				    "user: rack.user, rack.group and "
				    "AQUIFER_RUNDIR lead there"
				  : "");
}

bool client_token_is_valid(const char *token)
{
	return strlen(token) == CLIENT_TOKEN_MAX - 1 &&
	       strspn(token, "0123456789abcdefABCDEF") == CLIENT_TOKEN_MAX - 1;
}

void client_engine_token(const struct config *config, const char *rundir,
			 char token[CLIENT_TOKEN_MAX])
{
	/* Without one the engine says what it thinks of that. */
	if (client_token_read(config, rundir, RACK_TOKEN_ENGINE, token))
		token[0] = '\0';
}

int client_token_read(const struct config *config, const char *rundir,
		      enum rack_token_kind kind, char token[CLIENT_TOKEN_MAX])
{
	const struct rack_token_place place = {.config = config,
					       .rundir = rundir};

	STATIC_ASSERT((int)CLIENT_TOKEN_MAX == (int)SECRET_TEXT, "a token");
	return rack_token_find(&place, kind, token, NULL);
}

bool client_has_program(const struct config *config, const char *program)
{
	unsigned count = config ? config_named_count(config, "switch") : 0;
	size_t len = strlen(program);

	for (unsigned i = 0; i < count; i++) {
		const char *at =
			config_named_text(config, "switch", i, "programs");

		/* NAME or NAME:OPTIONS, separated by blanks. */
		for (; *at; at += strcspn(at, " \t")) {
			at += strspn(at, " \t");
			if (strncmp(at, program, len) == 0 &&
			    strchr(": \t", at[len]))
				return true;
		}
	}
	return false;
}
