/* SPDX-License-Identifier: Apache-2.0 */
/* The words that follow an action, as its summary names them after a colon:
 * "make a table: NAME CAPACITY". Says what is missing, or too much. */
#include <aquifer/aquifer.h>
#include <stdio.h>
#include <string.h>

#include "cli_action.h"
#include "client/map.h"

enum {
	WORD_MAX = 32,
	EXAMPLE_MAX = 200,
};

/* What a word of the usage stands for. */
struct meaning {
	const char *word;
	const char *command; /* NULL: any */
	const char *a, *the; /* "a key", "the key" */
	const char *example;
	const char *kind; /* of a name */
};

static const struct meaning meanings[] = {
	{"NAME", "kv", "the name of a table", "the name", "users",
	 "name of a table"},
	{"NAME", "index", "the name of an index", "the name", "orders",
	 "name of an index"},
	{"NAME", "region", "the name of a region", "the name", "scratch",
	 "name of a region"},
	{"NAME", NULL, "a name", "the name", "one", "name"},
	{"CAPACITY", NULL, "a number of keys", "the number of keys", "100000",
	 NULL},
	{"SIZE", NULL, "a size", "the size", "64M", NULL},
	{"KEY", NULL, "a key", "the key", "7", NULL},
	{"VALUE", NULL, "a value", "the value", "hello", NULL},
	{"TENANT", NULL, "the name of a tenant", "the tenant", "alice", NULL},
	{"FILE", "walk", "a file", "the file", "find.walk", NULL},
	{"FILE", NULL, "a file", "the file", "users.aq", NULL},
	{"REGION", NULL, "the name of a region", "the region", "scratch", NULL},
	{"SEGMENT", NULL, "the name of a segment", "the segment", "board",
	 NULL},
	{"START", NULL, "an offset to start at", "the start", "4096", NULL},
	{"HASH", NULL, "the hash or name of a walk", "the walk", "find", NULL},
};

/* The next word of the usage, without brackets and alternatives; false at the
 * end, or where options begin. */
static bool next(const char **usage, char word[WORD_MAX], bool *is_optional)
{
	const char *from = *usage + strspn(*usage, " ");
	size_t len = strcspn(from, " ");

	*usage = from + len;
	*is_optional = *from == '[';
	from += *is_optional;
	len = strcspn(from, " ]|");
	if (!len || *from == '-')
		return false;
	(void)snprintf(word, WORD_MAX, "%.*s", (int)len, from);
	return true;
}

static struct meaning meaning_of(const char *command, const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(meanings); i++)
		if (strcmp(meanings[i].word, word) == 0 &&
		    (!meanings[i].command ||
		     strcmp(meanings[i].command, command) == 0))
			return meanings[i];
	return (struct meaning){word, NULL, word, word, word, NULL};
}

static const char *usage_of(const struct cli_action *a)
{
	const char *colon = strrchr(a->summary, ':');

	return colon ? colon + 1 : "";
}

bool cli_action_name_is_valid(const struct cli_command *self,
			      const struct cli_action *a, const char *name)
{
	const char *usage = usage_of(a);
	char word[WORD_MAX];
	bool is_optional;

	if (!next(&usage, word, &is_optional) || strcmp(word, "NAME") != 0 ||
	    piece_region_is_valid(name))
		return true;
	cli_error("'%.60s' is no %s; letters, digits, '_' and '-' are allowed, "
		  "and up to %d of them",
		  name, meaning_of(self->name, word).kind, AQ_REGION_NAME_MAX);
	return false;
}

/* Joins "aquifer kv get users 7". */
static void make_example(const struct cli_command *self,
			 const struct cli_action *a, char out[EXAMPLE_MAX])
{
	const char *usage = usage_of(a);
	char word[WORD_MAX];
	bool is_optional;
	int n = snprintf(out, EXAMPLE_MAX, "aquifer %s %s", self->name,
			 a->name);

	while (n < EXAMPLE_MAX && next(&usage, word, &is_optional))
		n += snprintf(out + n, (size_t)(EXAMPLE_MAX - n), " %s",
			      meaning_of(self->name, word).example);
}

void cli_action_explain(const struct cli_command *self,
			const struct cli_action *a,
			const struct cli_words *words)
{
	char word[2][WORD_MAX] = {"", ""}, example[EXAMPLE_MAX];
	const char *usage = usage_of(a), *before = a->name;
	bool is_optional, is_more = words->count > a->most;
	int count = is_more ? a->most : words->count;
	struct meaning m;

	for (int i = 0; i < count; i++)
		if (next(&usage, word[0], &is_optional))
			before = meaning_of(self->name, word[0]).the;
	make_example(self, a, example);
	if (is_more) {
		cli_error("%s %s does not understand '%.80s' after %s; for "
			  "example: %s",
			  self->name, a->name, words->word[count], before,
			  example);
		return;
	}
	if (!next(&usage, word[1], &is_optional))
		(void)snprintf(word[1], WORD_MAX, "another word");
	m = meaning_of(self->name, word[1]);
	cli_error("%s %s needs %s%s%s; for example: %s", self->name, a->name,
		  m.a, count ? " after " : "", count ? before : "", example);
}
