/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings in effect. For each key, a command-line option beats the
 * environment (AQUIFER_<SECTION>_<KEY>), which beats the file (rack.ini), which
 * beats the default; no file is needed.
 *
 * Every value is checked when it is set, even if another one beats it, so
 * reading cannot fail. Once it is set up, any thread may read a config.
 */
#ifndef AQ_CONFIG_H
#define AQ_CONFIG_H

#include <stdio.h>

#include "base.h"
#include "config_key.h"

enum {
	CONFIG_VALUE_MAX = 160, /* with the NUL */
	CONFIG_PATH_MAX = 256,
	CONFIG_WHERE_MAX = CONFIG_PATH_MAX + 16,
};

/* The rack that the file's [memory], [node], [engine] and [switch] sections are
 * about, when another is used: --rack sets it for this process and those that
 * it starts. Unset: they are about rack.name. */
#define CONFIG_RACK_VARIABLE "AQUIFER_CONFIG_RACK"

struct config;

/* Defaults and environment. -EINVAL names a variable with a bad value; a
 * variable of a known section with an unknown key only causes a warning in the
 * log, because the environment may come from an unrelated parent. */
int config_create(struct config **out) MUST_CHECK;
void config_destroy(struct config *c);

/*
 * Adds a file. The words of an error name file, line, key and what is allowed.
 * -EINVAL: syntax, unknown section or key (the known ones are listed), a value
 * that is not allowed, a key given twice, a line that is too long.
 */
int config_load(struct config *c, const char *path) MUST_CHECK;
/* The same from an open stream; `name` is for the words. */
int config_load_stream(struct config *c, FILE *stream,
		       const char *name) MUST_CHECK;

/*
 * The file to load when the command line names none: $AQUIFER_CONFIG (must
 * exist), $XDG_CONFIG_HOME or ~/.config + /aquifer/rack.ini,
 * /etc/aquifer/rack.ini. -ENOENT when there is none, which callers do not treat
 * as an error.
 */
int config_find_file(char path[CONFIG_PATH_MAX]) MUST_CHECK;

/* Everything in one call: `path`, or if NULL the file found, if any. */
int config_open(const char *path, struct config **out) MUST_CHECK;

/* A command-line option; `option` is for the words ("--nic"). */
int config_set(struct config *c, const char *option, const char *section,
	       const char *key, const char *text) MUST_CHECK;

/* Typed reading. ASSERTs that the key exists and is of that kind. Text lives
 * as long as the config. A choice is also readable as a string. */
const char *config_string(const struct config *c, const char *section,
			  const char *key);
bool config_bool(const struct config *c, const char *section, const char *key);
uint64_t config_int(const struct config *c, const char *section,
		    const char *key);

/* For `aquifer info`: the text in effect, and where it came from ("default",
 * "/etc/aquifer/rack.ini:3", "AQUIFER_NIC_MTU", "--nic"). */
const char *config_text_at(const struct config *c, unsigned index);
const char *config_where_at(const struct config *c, unsigned index);

#endif
