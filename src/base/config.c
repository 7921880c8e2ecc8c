/* SPDX-License-Identifier: Apache-2.0 */
/* Collects settings from defaults, environment, file and command line. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config_named.h"
#include "error.h"
#include "log.h"

enum {
	VARIABLE_MAX = 96,
};

enum config_source {
	CONFIG_FROM_DEFAULT,
	CONFIG_FROM_FILE,
	CONFIG_FROM_ENV,
	CONFIG_FROM_OPTION,
};

struct value {
	char text[CONFIG_VALUE_MAX];
	char where[CONFIG_WHERE_MAX];
	uint64_t number;
	enum config_source source;
	unsigned line; /* where the file being loaded sets it, 0: not */
};

struct config {
	struct value *values; /* one per key */
	struct config_named_set *named;
};

/* Keeps a value unless a stronger one is there; checks it in any case. */
static int store(struct config *c, unsigned index, const char *text,
		 enum config_source source, const char *where)
{
	const struct config_key *key = config_key_at(index);
	struct value *v = &c->values[index];
	uint64_t number;
	int err;

	if (strlen(text) >= sizeof(v->text))
		return error_set(-EINVAL, "%s: %s.%s: longer than %d bytes",
				 where, key->section, key->key,
				 CONFIG_VALUE_MAX - 1);
	err = config_key_parse(key, text, &number);
	if (err)
		return error_prefix(err, "%s: %s.%s: ", where, key->section,
				    key->key);
	if (source < v->source)
		return 0;
	v->number = number;
	v->source = source;
	snprintf(v->text, sizeof(v->text), "%s", text);
	snprintf(v->where, sizeof(v->where), "%s", where);
	return 0;
}

/* AQUIFER_NIC_MTU for nic.mtu; with key NULL the prefix AQUIFER_NIC_. */
static void variable_of(char out[VARIABLE_MAX], const char *section,
			const char *key)
{
	char *c;

	snprintf(out, VARIABLE_MAX, "AQUIFER_%s_%s", section, key ? key : "");
	for (c = out; *c; c++)
		*c = (char)toupper((unsigned char)*c);
}

static int load_env(struct config *c)
{
	char name[VARIABLE_MAX];
	unsigned i;

	for (i = 0; i < config_key_count(); i++) {
		const struct config_key *key = config_key_at(i);
		const char *text;
		int err;

		variable_of(name, key->section, key->key);
		text = secure_getenv(name);
		err = text ? store(c, i, text, CONFIG_FROM_ENV, name) : 0;
		if (err)
			return err;
	}
	return 0;
}

/* Whether `entry` (NAME=value) starts like a setting but is none. */
static bool is_misspelt(const char *entry)
{
	char name[VARIABLE_MAX];
	bool has_prefix = false;
	unsigned i;

	for (i = 0; i < config_key_count(); i++) {
		const struct config_key *key = config_key_at(i);
		size_t n;

		variable_of(name, key->section, NULL);
		has_prefix |= strncmp(entry, name, strlen(name)) == 0;
		variable_of(name, key->section, key->key);
		n = strlen(name);
		if (strncmp(entry, name, n) == 0 && entry[n] == '=')
			return false;
	}
	return has_prefix;
}

static void warn_misspelt(void)
{
	char **entry;

	for (entry = environ; entry && *entry; entry++)
		if (is_misspelt(*entry))
			log_warn("base",
				 "environment variable %.*s is no setting; "
				 "`aquifer info` lists them",
				 (int)strcspn(*entry, "="), *entry);
}

int config_create(struct config **out)
{
	struct config *c = calloc(1, sizeof(*c));
	unsigned i;
	int err;

	if (!c)
		return error_set(-ENOMEM, "no memory for the configuration");
	c->values = calloc(config_key_count(), sizeof(*c->values));
	if (!c->values) {
		err = error_set(-ENOMEM, "no memory for the configuration");
		goto err_free;
	}
	for (i = 0; i < config_key_count(); i++) {
		err = store(c, i, config_key_at(i)->fallback,
			    CONFIG_FROM_DEFAULT, "default");
		ASSERT(err == 0);
	}
	err = load_env(c);
	if (err)
		goto err_free;
	warn_misspelt();
	*out = c;
	return 0;

err_free:
	config_destroy(c);
	return err;
}

void config_destroy(struct config *c)
{
	if (!c)
		return;
	free(c->named);
	free(c->values);
	free(c);
}

struct config_named_set *config_named_set_of(const struct config *c)
{
	return c->named;
}

/* What the reader and the handler of inih share while a file is read. */
struct loading {
	struct config *c;
	FILE *stream;
	const char *name;
	unsigned line; /* inih's own count is not given to its handler */
	int err;       /* the first error; the rest is not looked at */
};

/* inih tells of keys only, but a section without any counts too. */
static void note_section(struct loading *l, const char *line)
{
	char section[64];

	if (sscanf(line, "[%63[^]\n]]", section) != 1 ||
	    !config_section_is_named(section))
		return;
	if (config_named_begin(&l->c->named, section))
		l->err = error_prefix(-EINVAL, "%s:%u: ", l->name, l->line);
}

/* One line for inih, without leading blanks: it would take an indented key for
 * the continuation of the value above. */
static char *read_line(char *buf, int size_bytes, void *stream)
{
	struct loading *l = stream;
	size_t len, blanks;

	if (l->err || !fgets(buf, size_bytes, l->stream))
		return NULL;
	l->line++;
	len = strlen(buf);
	if (len && buf[len - 1] != '\n' && !feof(l->stream)) {
		l->err = error_set(-EINVAL,
				   "%s:%u: the line is longer than %d bytes or "
				   "holds a NUL",
				   l->name, l->line, size_bytes - 2);
		return NULL;
	}
	blanks = strspn(buf, " \t");
	memmove(buf, buf + blanks, len - blanks + 1);
	note_section(l, buf);
	return l->err ? NULL : buf;
}

static int take_entry(void *user, const char *section, const char *key,
		      const char *text)
{
	char where[CONFIG_WHERE_MAX];
	struct loading *l = user;
	int index;

	if (l->err)
		return 0;
	snprintf(where, sizeof(where), "%s:%u", l->name, l->line);
	if (config_section_is_named(section)) {
		if (config_named_take(&l->c->named, section, key, text))
			l->err = error_prefix(-EINVAL, "%s: ", where);
		return l->err == 0;
	}
	index = config_key_find(section, key);
	if (index < 0) {
		l->err = error_prefix(-EINVAL, "%s: ", where);
	} else if (l->c->values[index].line) {
		l->err = error_set(-EINVAL,
				   "%s: %s.%s is already set in line %u", where,
				   section, key, l->c->values[index].line);
	} else {
		l->c->values[index].line = l->line;
		l->err = store(l->c, (unsigned)index, text, CONFIG_FROM_FILE,
			       where);
	}
	return l->err == 0;
}

int config_load_stream(struct config *c, FILE *stream, const char *name)
{
	struct loading l = {.c = c, .stream = stream, .name = name};
	unsigned i;
	int bad;

	for (i = 0; i < config_key_count(); i++)
		c->values[i].line = 0;
	bad = ini_parse_stream(read_line, &l, take_entry, &l);
	/* inih reads on after bad syntax; the first trouble is the one that
	 * explains the others. */
	if (bad > 0 && (!l.err || (unsigned)bad < l.line))
		return error_set(-EINVAL,
				 "%s:%d: expected [section], key = value or a "
				 "comment that starts with ; or #",
				 name, bad);
	if (l.err)
		return l.err;
	if (ferror(stream))
		return error_set(-EIO, "%s: cannot be read", name);
	if (bad < 0)
		return error_set(-ENOMEM, "%s: no memory to read it", name);
	return 0;
}

int config_load(struct config *c, const char *path)
{
	FILE *f = fopen(path, "re");
	int err;

	if (!f) {
		err = -errno;
		return error_set(err, "%s: cannot be opened: %s", path,
				 strerror(-err));
	}
	err = config_load_stream(c, f, path);
	fclose(f);
	return err;
}

static bool use_if_there(char path[CONFIG_PATH_MAX], const char *dir,
			 const char *rest)
{
	char text[CONFIG_PATH_MAX];
	int n = snprintf(text, sizeof(text), "%s%s", dir, rest);

	if (n < 0 || (size_t)n >= sizeof(text) || access(text, F_OK))
		return false;
	memcpy(path, text, sizeof(text));
	return true;
}

int config_find_file(char path[CONFIG_PATH_MAX])
{
	const char *given = secure_getenv("AQUIFER_CONFIG");
	const char *xdg = secure_getenv("XDG_CONFIG_HOME");
	const char *home = secure_getenv("HOME");

	if (given && given[0]) {
		if (strlen(given) >= CONFIG_PATH_MAX)
			return error_set(-ENAMETOOLONG,
					 "AQUIFER_CONFIG is longer than %d "
					 "bytes",
					 CONFIG_PATH_MAX - 1);
		snprintf(path, CONFIG_PATH_MAX, "%s", given);
		return 0;
	}
	if (xdg && xdg[0] == '/') {
		if (use_if_there(path, xdg, "/aquifer/rack.ini"))
			return 0;
	} else if (home && home[0] == '/') {
		if (use_if_there(path, home, "/.config/aquifer/rack.ini"))
			return 0;
	}
	return use_if_there(path, "/etc", "/aquifer/rack.ini") ? 0 : -ENOENT;
}

int config_open(const char *path, struct config **out)
{
	char found[CONFIG_PATH_MAX];
	struct config *c = NULL;
	int err;

	err = config_create(&c);
	if (err)
		return err;
	if (!path) {
		err = config_find_file(found);
		path = err ? NULL : found;
		if (err == -ENOENT)
			err = 0;
	}
	if (path)
		err = config_load(c, path);
	if (err) {
		config_destroy(c);
		return err;
	}
	config_named_leave(&c->named, config_string(c, "rack", "name"));
	*out = c;
	return 0;
}

int config_set(struct config *c, const char *option, const char *section,
	       const char *key, const char *text)
{
	int index = config_key_find(section, key);

	if (index < 0)
		return error_prefix(-EINVAL, "%s: ", option);
	return store(c, (unsigned)index, text, CONFIG_FROM_OPTION, option);
}

static const struct value *get(const struct config *c, const char *section,
			       const char *key, enum config_kind kind)
{
	int index = config_key_find(section, key);

	ASSERT(index >= 0);
	ASSERT(config_key_at((unsigned)index)->kind == kind);
	return &c->values[index];
}

const char *config_string(const struct config *c, const char *section,
			  const char *key)
{
	int index = config_key_find(section, key);

	ASSERT(index >= 0);
	return c->values[index].text;
}

bool config_bool(const struct config *c, const char *section, const char *key)
{
	return get(c, section, key, CONFIG_BOOL)->number;
}

uint64_t config_int(const struct config *c, const char *section,
		    const char *key)
{
	return get(c, section, key, CONFIG_INT)->number;
}

const char *config_text_at(const struct config *c, unsigned index)
{
	ASSERT(index < config_key_count());
	return c->values[index].text;
}

const char *config_where_at(const struct config *c, unsigned index)
{
	ASSERT(index < config_key_count());
	return c->values[index].where;
}
