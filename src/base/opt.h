/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of a command as a table: one row says what an option is called, what
 * follows it, where its value goes, and what --help says about it.
 *
 *	static const struct opt options[] = {
 *		OPT_TEXT(struct args, name, "name", "NAME", "the node's name"),
 *		OPT_SIZE(struct args, bytes, "size", "SIZE", 1, 1 << 30,
 *			 "limit of the pool"),
 *		OPT_END,
 *	};
 *
 * A row that writes to a member of another type does not compile. --help and -h
 * need no row. Text is not copied: it lives as long as argv.
 */
#ifndef AQ_OPT_H
#define AQ_OPT_H

#include <stddef.h>
#include <stdio.h>

#include "base.h"

enum opt_kind {
	OPT_KIND_FLAG,	 /* bool: true if given */
	OPT_KIND_BITS,	 /* uint32_t: the bits of `max` are set */
	OPT_KIND_TEXT,	 /* const char * */
	OPT_KIND_WORD,	 /* const char *: one of the words in `value` */
	OPT_KIND_CHOICE, /* uint32_t: index of the word in `value`, from 0 */
	OPT_KIND_U32,	 /* min to max */
	OPT_KIND_U64,
	OPT_KIND_SIZE,	   /* uint64_t bytes: 4096, 64K, 8G */
	OPT_KIND_REAL,	   /* double: 0 to max */
	OPT_KIND_SCALED32, /* uint32_t: a number up to max, times `min` */
	OPT_KIND_SCALED64,
	OPT_KIND_CALL, /* `take` does it */
};

struct opt {
	const char *name;  /* "size"; NULL ends the table */
	const char *value; /* what follows, in the words of --help: "SIZE",
			      "soft|hw"; NULL: nothing */
	const char *help;  /* without a line break */
	enum opt_kind kind;
	size_t at; /* in the caller's struct */
	uint64_t min, max;
	/* 0, or -EINVAL with words by error_set. */
	int (*take)(void *args, const char *word);
};

/* Where a member is; comparing pointers checks its type. */
#define OPT_AT(args, member, type) \
	(offsetof(args, member) + 0 * sizeof((type *)0 == &((args *)0)->member))

#define OPT_ROW(args, member, type, kind, name, value, min, max, help)         \
	{                                                                      \
		name, value, help, kind, OPT_AT(args, member, type), min, max, \
			NULL                                                   \
	}

#define OPT_FLAG(args, member, name, help) \
	OPT_ROW(args, member, bool, OPT_KIND_FLAG, name, NULL, 0, 0, help)
#define OPT_BITS(args, member, bits, name, help)                            \
	OPT_ROW(args, member, uint32_t, OPT_KIND_BITS, name, NULL, 0, bits, \
		help)
#define OPT_TEXT(args, member, name, value, help)                             \
	OPT_ROW(args, member, const char *, OPT_KIND_TEXT, name, value, 0, 0, \
		help)
#define OPT_WORD(args, member, name, words, help)                             \
	OPT_ROW(args, member, const char *, OPT_KIND_WORD, name, words, 0, 0, \
		help)
#define OPT_CHOICE(args, member, name, words, help)                         \
	OPT_ROW(args, member, uint32_t, OPT_KIND_CHOICE, name, words, 0, 0, \
		help)
#define OPT_U32(args, member, name, value, min, max, help)                   \
	OPT_ROW(args, member, uint32_t, OPT_KIND_U32, name, value, min, max, \
		help)
#define OPT_U64(args, member, name, value, min, max, help)                   \
	OPT_ROW(args, member, uint64_t, OPT_KIND_U64, name, value, min, max, \
		help)
#define OPT_SIZE(args, member, name, value, min, max, help)                   \
	OPT_ROW(args, member, uint64_t, OPT_KIND_SIZE, name, value, min, max, \
		help)
#define OPT_REAL(args, member, name, value, max, help) \
	OPT_ROW(args, member, double, OPT_KIND_REAL, name, value, 0, max, help)
#define OPT_SCALED32(args, member, name, value, max, scale, help)              \
	OPT_ROW(args, member, uint32_t, OPT_KIND_SCALED32, name, value, scale, \
		max, help)
#define OPT_SCALED64(args, member, name, value, max, scale, help)              \
	OPT_ROW(args, member, uint64_t, OPT_KIND_SCALED64, name, value, scale, \
		max, help)
#define OPT_CALL(take, name, value, help)                       \
	{                                                       \
		name, value, help, OPT_KIND_CALL, 0, 0, 0, take \
	}
#define OPT_END                                                \
	{                                                      \
		NULL, NULL, NULL, OPT_KIND_FLAG, 0, 0, 0, NULL \
	}

enum {
	OPT_ROWS_MAX = 64, /* of a table, with its end */
};

enum opt_words {
	OPT_WORDS_NONE,	   /* a word that is no option is wrong */
	OPT_WORDS_ANY,	   /* words may stand between options */
	OPT_WORDS_PROGRAM, /* options end at the first word */
};

enum opt_result {
	OPT_DONE,
	OPT_HELP,  /* --help was given; the other options do not count */
	OPT_WRONG, /* error_last() says what, beginning with `who` or the option
		    */
};

/* argv[0] is skipped. argv is reordered so that all words stand at its end;
 * `words` gets the index of the first. Uses getopt(3): one thread. */
enum opt_result opt_parse(const struct opt *table, const char *who, int argc,
			  char **argv, enum opt_words accept, void *args,
			  int *words) MUST_CHECK;

/* One table of two, each of which may be NULL. */
void opt_join(struct opt out[OPT_ROWS_MAX], const struct opt *first,
	      const struct opt *second);

/* The row of that name, without dashes; NULL: there is none. */
const struct opt *opt_find(const struct opt *table, const char *name);
/* What `--name word` does. -EINVAL with words. */
int opt_set(const struct opt *table, void *args, const char *name,
	    const char *word) MUST_CHECK;

/* Parses a word as an option of kind SIZE would be. -EINVAL with words. */
int opt_size(const char *what, const char *word, uint64_t *bytes) MUST_CHECK;

/* A number from 1 to max, or "all", which is the number `all`. */
int opt_count_or_all(const char *what, const char *word, uint32_t max,
		     uint32_t all, uint32_t *out) MUST_CHECK;

/* The lines of --help, in columns. */
void opt_help(const struct opt *table, FILE *out);
/* A paragraph of it. */
void opt_help_text(const char *text, FILE *out);

#endif
