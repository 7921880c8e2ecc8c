/* SPDX-License-Identifier: Apache-2.0 */
/* The sections with names: their keys, and what a file says in them. */
#include "config_named.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "error.h"
#include "rundir.h"

static bool is_address(const char *text)
{
	const char *colon = strrchr(text, ':');

	return text[0] == '\0' ||
	       (strncmp(text, "unix:/", 6) == 0 && strlen(text) < 120) ||
	       (colon && colon != text && colon[1] >= '0' && colon[1] <= '9');
}

static bool is_number(const char *text)
{
	return strspn(text, "0123456789") == strlen(text) && strlen(text) < 5;
}

static const struct config_key keys[] = {
	{"memory", "size", CONFIG_SIZE, "1G",
	 .help = "memory that the node offers", .min = 1 << 20,
	 .max = 1ull << 47},
	{"memory", "shared", CONFIG_SIZE, "0",
	 .help = "memory that machines share coherently, beside the pool",
	 .max = 1ull << 40},
	{"memory", "lead", CONFIG_STRING, "",
	 .help = "memory node that leads shared memory; default: the first of "
		 "this file that has some"},
	{"memory", "numa", CONFIG_STRING, "",
	 .help = "NUMA node that its memory lies on", .check = is_number,
	 .allowed = "the number of a NUMA node, or nothing"},
	{"memory", "spill", CONFIG_STRING, "",
	 .help = "/FOLDER:SIZE for blocks that find no room in the pool"},
	{"memory", "ready", CONFIG_SIZE, "128M",
	 .help = "memory that is made before blocks need it, at most",
	 .max = 1ull << 40},
	{"memory", "listen", CONFIG_STRING, "",
	 .help = "ADDRESS:PORT for other machines, beside the unix socket",
	 .check = is_address, .allowed = "ADDRESS:PORT"},
	{"memory", "tls_cert", CONFIG_STRING, "",
	 .help = "certificate for the TCP port, a PEM file"},
	{"memory", "tls_key", CONFIG_STRING, "",
	 .help = "private key of the certificate"},
	{"memory", "tls_ca", CONFIG_STRING, "",
	 .help = "callers need a certificate of this authority, a PEM file"},
	{"memory", "insecure", CONFIG_CHOICE, "no",
	 .help = "listen without TLS also where others can connect",
	 .choices = "no|yes"},
	{"memory", "audit", CONFIG_STRING, "",
	 .help = "file for a JSON line for each change and each refusal"},
	{"node", "address", CONFIG_STRING, "",
	 .help = "where the node's HTTP interface is", .check = is_address,
	 .allowed = "HOST:PORT, http://HOST:PORT, https://HOST:PORT or "
		    "unix:/PATH"},
	{"node", "ca", CONFIG_STRING, "",
	 .help = "certificates to trust with https, a PEM file"},
	{"node", "cert", CONFIG_STRING, "",
	 .help = "certificate to show it, where it asks for one, a PEM file"},
	{"node", "key", CONFIG_STRING, "",
	 .help = "private key of that certificate"},
	{"engine", "address", CONFIG_STRING, "",
	 .help = "where its HTTP interface is, if it runs elsewhere",
	 .check = is_address,
	 .allowed = "HOST:PORT, http://HOST:PORT, https://HOST:PORT or "
		    "unix:/PATH"},
	{"engine", "ca", CONFIG_STRING, "",
	 .help = "certificates to trust with https, a PEM file"},
	{"engine", "cert", CONFIG_STRING, "",
	 .help = "certificate to show it, where it asks for one, a PEM file"},
	{"engine", "key", CONFIG_STRING, "",
	 .help = "private key of that certificate"},
	{"engine", "listen", CONFIG_STRING, "",
	 .help = "ADDRESS:PORT for other machines, beside the unix socket",
	 .check = is_address, .allowed = "ADDRESS:PORT"},
	{"engine", "tls_cert", CONFIG_STRING, "",
	 .help = "certificate for the TCP port, a PEM file"},
	{"engine", "tls_key", CONFIG_STRING, "",
	 .help = "private key of the certificate"},
	{"engine", "tls_ca", CONFIG_STRING, "",
	 .help = "callers need a certificate of this authority, a PEM file"},
	{"engine", "insecure", CONFIG_CHOICE, "no",
	 .help = "listen without TLS also where others can connect",
	 .choices = "no|yes"},
	{"engine", "batch", CONFIG_INT, "32",
	 .help = "completions that may be told together; 1: each at once",
	 .min = 1, .max = 65536},
	{"engine", "flush_us", CONFIG_INT, "10",
	 .help = "the longest that a completion waits for others", .min = 1,
	 .max = 1000000},
	{"engine", "sessions", CONFIG_INT, "256",
	 .help = "application threads that it serves at most", .min = 1,
	 .max = 256},
	{"engine", "threads", CONFIG_INT, "1",
	 .help = "threads of the engine that share them", .min = 1, .max = 32},
	{"engine", "gather", CONFIG_CHOICE, "on",
	 .help = "small reads leave many at a time, where the memory node can",
	 .choices = "on|off"},
	{"engine", "switch", CONFIG_STRING, "auto",
	 .help = "the switch whose program cowbird moves the data; auto: one "
		 "that has it, if any; none"},
	{"control", "listen", CONFIG_STRING, "",
	 .help = "ADDRESS:PORT for other machines, beside the unix socket",
	 .check = is_address, .allowed = "ADDRESS:PORT"},
	{"control", "tls_cert", CONFIG_STRING, "",
	 .help = "certificate for the TCP port, a PEM file"},
	{"control", "tls_key", CONFIG_STRING, "",
	 .help = "private key of the certificate"},
	{"control", "tls_ca", CONFIG_STRING, "",
	 .help = "callers need a certificate of this authority, a PEM file"},
	{"control", "insecure", CONFIG_CHOICE, "no",
	 .help = "listen without TLS also where others can connect",
	 .choices = "no|yes"},
	{"control", "store", CONFIG_STRING, "",
	 .help = "where its state is: sqlite:PATH, etcd:URL,URL,..., or "
		 "memory, which forgets. None: a file in the state directory"},
	{"control", "store_ca", CONFIG_STRING, "",
	 .help = "certificates to trust where etcd has https, a PEM file"},
	{"control", "store_cert", CONFIG_STRING, "",
	 .help = "certificate for an etcd that asks for one, a PEM file"},
	{"control", "store_key", CONFIG_STRING, "",
	 .help = "private key of that certificate"},
	{"control", "audit", CONFIG_STRING, "",
	 .help = "file for a JSON line for each change and each refusal"},
	{"switch", "ports", CONFIG_STRING, "",
	 .help = "ports beside the NICs that plug in, separated by blanks"},
	{"switch", "address", CONFIG_STRING, "",
	 .help = "IP addresses of the switch itself, separated by blanks"},
	{"switch", "programs", CONFIG_STRING, "",
	 .help = "NAME or NAME:OPTIONS, in their order, separated by blanks"},
	{"switch", "listen", CONFIG_STRING, "",
	 .help = "ADDRESS:PORT for control calls and metrics over HTTP",
	 .check = is_address, .allowed = "ADDRESS:PORT"},
	{"switch", "tls_cert", CONFIG_STRING, "",
	 .help = "certificate for the TCP port, a PEM file"},
	{"switch", "tls_key", CONFIG_STRING, "",
	 .help = "private key of the certificate"},
	{"switch", "tls_ca", CONFIG_STRING, "",
	 .help = "callers need a certificate of this authority, a PEM file"},
	{"switch", "insecure", CONFIG_CHOICE, "no",
	 .help = "listen without TLS also where others can connect",
	 .choices = "no|yes"},
};

struct section {
	char kind[16];
	char name[CONFIG_NAME_MAX];
	struct {
		char text[CONFIG_VALUE_MAX];
		bool is_set;
	} value[ARRAY_LEN(keys)];
};

struct config_named_set {
	unsigned count;
	struct section section[CONFIG_NAMED_MAX];
};

bool config_section_is_named(const char *section)
{
	return strchr(section, ' ') != NULL;
}

static int split(const char *text, struct section *out)
{
	size_t len = strcspn(text, " ");
	const char *name = text + len + strspn(text + len, " ");
	unsigned i;

	memset(out, 0, sizeof(*out));
	if (len < sizeof(out->kind))
		memcpy(out->kind, text, len);
	for (i = 0; i < ARRAY_LEN(keys); i++)
		if (strcmp(keys[i].section, out->kind) == 0)
			break;
	if (i == ARRAY_LEN(keys))
		return error_set(-EINVAL,
				 "unknown section [%.40s]; with a name there "
				 "are [memory NAME], [node NAME], [engine "
				 "NAME], [switch NAME] and [control NAME]",
				 text);
	/* Nodes are named like racks. */
	if (!rundir_rack_is_valid(name))
		return error_set(-EINVAL,
				 "[%.60s]: a node's name has 1 to 32 of a-z, "
				 "0-9 and '-'",
				 text);
	snprintf(out->name, sizeof(out->name), "%s", name);
	return 0;
}

static void set_defaults(struct section *s)
{
	for (unsigned i = 0; i < ARRAY_LEN(keys); i++)
		snprintf(s->value[i].text, sizeof(s->value[i].text), "%s",
			 keys[i].fallback);
}

static int begin(struct config_named_set **set, const char *text,
		 struct section **out)
{
	struct section want;
	unsigned i;
	int err = split(text, &want);

	if (err)
		return err;
	if (!*set) {
		*set = calloc(1, sizeof(**set));
		if (!*set)
			return error_set(-ENOMEM,
					 "no memory for the configuration");
	}
	for (i = 0; i < (*set)->count; i++) {
		struct section *s = &(*set)->section[i];

		if (strcmp(s->kind, want.kind) || strcmp(s->name, want.name))
			continue;
		*out = s;
		return 0;
	}
	if ((*set)->count == CONFIG_NAMED_MAX)
		return error_set(-EINVAL, "more than %d sections with names",
				 CONFIG_NAMED_MAX);
	set_defaults(&want);
	(*set)->section[(*set)->count] = want;
	*out = &(*set)->section[(*set)->count++];
	return 0;
}

int config_named_begin(struct config_named_set **set, const char *section)
{
	struct section *s;

	return begin(set, section, &s);
}

int config_named_take(struct config_named_set **set, const char *section,
		      const char *key, const char *text)
{
	struct section *s;
	uint64_t number; /* who starts the daemon passes the text on */
	unsigned i;
	int err = begin(set, section, &s);

	if (err)
		return err;
	for (i = 0; i < ARRAY_LEN(keys); i++)
		if (strcmp(keys[i].section, s->kind) == 0 &&
		    strcmp(keys[i].key, key) == 0)
			break;
	if (i == ARRAY_LEN(keys))
		return error_set(-EINVAL, "unknown key '%.40s' in [%s %s]", key,
				 s->kind, s->name);
	if (s->value[i].is_set)
		return error_set(-EINVAL, "%s of [%s %s] is set twice", key,
				 s->kind, s->name);
	if (strlen(text) >= CONFIG_VALUE_MAX)
		return error_set(-EINVAL, "%s of [%s %s] is too long", key,
				 s->kind, s->name);
	err = config_key_parse(&keys[i], text, &number);
	if (err)
		return error_prefix(err, "%s of [%s %s]: ", key, s->kind,
				    s->name);
	snprintf(s->value[i].text, CONFIG_VALUE_MAX, "%s", text);
	s->value[i].is_set = true;
	return 0;
}

/* ---- reading ------------------------------------------------------------ */

static const struct section *find(const struct config *c, const char *kind,
				  unsigned index)
{
	const struct config_named_set *set = config_named_set_of(c);
	unsigned i;

	for (i = 0; set && i < set->count; i++)
		if (strcmp(set->section[i].kind, kind) == 0 && index-- == 0)
			return &set->section[i];
	return NULL;
}

unsigned config_named_count(const struct config *c, const char *kind)
{
	unsigned count = 0;

	while (find(c, kind, count))
		count++;
	return count;
}

const char *config_named_name(const struct config *c, const char *kind,
			      unsigned index)
{
	const struct section *s = find(c, kind, index);

	ASSERT(s);
	return s->name;
}

static unsigned key_index(const char *kind, const char *key)
{
	unsigned i = 0;

	while (i < ARRAY_LEN(keys) &&
	       (strcmp(keys[i].section, kind) || strcmp(keys[i].key, key)))
		i++;
	ASSERT(i < ARRAY_LEN(keys));
	return i;
}

const char *config_named_text(const struct config *c, const char *kind,
			      unsigned index, const char *key)
{
	const struct section *s = find(c, kind, index);

	ASSERT(s);
	return s->value[key_index(kind, key)].text;
}

void config_named_leave(struct config_named_set **set, const char *rack)
{
	const char *about = secure_getenv(CONFIG_RACK_VARIABLE);

	if (!about || !about[0] || strcmp(about, rack) == 0)
		return;
	free(*set);
	*set = NULL;
}
