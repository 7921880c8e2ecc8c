/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sections of rack.ini that describe a named process: [memory NAME] is a memory
 * node that `aquifer up` starts, [node NAME] one that runs elsewhere, [engine
 * NAME] an engine and [switch NAME] a switch. They come from the file only, and
 * are checked like all other settings.
 */
#ifndef AQ_CONFIG_NAMED_H
#define AQ_CONFIG_NAMED_H

#include "base.h"
#include "config_key.h"

struct config;

enum {
	CONFIG_NAMED_MAX = 128, /* sections of a file */
	CONFIG_NAME_MAX = 33,	/* with the NUL */
};

/* How many of a kind ("memory", "node") there are, and their names, in the
 * order of the file. */
unsigned config_named_count(const struct config *c, const char *kind);
const char *config_named_name(const struct config *c, const char *kind,
			      unsigned index);
/* The value in effect; ASSERTs that the kind has such a key. */
const char *config_named_text(const struct config *c, const char *kind,
			      unsigned index, const char *key);

/* ---- for config.c ------------------------------------------------------- */

struct config_named_set; /* one allocation */

/* Whether a section's name has a blank, which makes it one of these. */
bool config_section_is_named(const char *section);
/* A section begins; -EINVAL with words for a kind or name that is not allowed.
 * *set may be NULL at first. */
int config_named_begin(struct config_named_set **set,
		       const char *section) MUST_CHECK;
int config_named_take(struct config_named_set **set, const char *section,
		      const char *key, const char *text) MUST_CHECK;
struct config_named_set *config_named_set_of(const struct config *c);
/* Sections about another rack than this one must not be taken for its nodes:
 * forgets them where CONFIG_RACK_VARIABLE says so. */
void config_named_leave(struct config_named_set **set, const char *rack);

#endif
