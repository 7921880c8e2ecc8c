/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings that exist: one table, from which the file is checked, the
 * environment is read, `aquifer info` prints and the manual is written.
 */
#ifndef AQ_CONFIG_KEY_H
#define AQ_CONFIG_KEY_H

#include "base.h"

enum {
	CONFIG_ADDRESSES_MAX = 8,  /* in nic.addresses */
	CONFIG_INTERFACE_MAX = 16, /* with the NUL: IFNAMSIZ */
};

enum config_kind {
	CONFIG_STRING, /* text; `check` may narrow it */
	CONFIG_CHOICE, /* one of `choices`, separated by '|' */
	CONFIG_BOOL,   /* yes|no, true|false, on|off, 1|0 */
	CONFIG_INT,    /* decimal or 0x, min to max */
	CONFIG_SIZE, /* bytes; K, M, G, T are powers of 1024, as are KB and KiB
		      */
};

struct config_key {
	const char *section;
	const char *key;
	enum config_kind kind;
	const char *fallback; /* the default, as text */
	const char *help;
	uint64_t min, max; /* INT, SIZE; both included */
	bool is_pow2;	   /* INT, SIZE: powers of two only */
	const char *choices;
	bool (*check)(const char *text); /* STRING: NULL allows any text */
	const char *allowed;		 /* what check allows, in words */
};

unsigned config_key_count(void);
/* ASSERTs that the index is below the count. */
const struct config_key *config_key_at(unsigned index);
/* Returns the index, or -ENOENT with words that list the known keys. */
int config_key_find(const char *section, const char *key) MUST_CHECK;

/* Parses text as the key's kind. Numbers, bools (0 or 1) and the index of a
 * choice are stored in *number. -EINVAL with words that say what is allowed. */
int config_key_parse(const struct config_key *key, const char *text,
		     uint64_t *number) MUST_CHECK;

#endif
