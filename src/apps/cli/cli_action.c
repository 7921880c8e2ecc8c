/* SPDX-License-Identifier: Apache-2.0 */
/* Runs an action: its words, the rack, what it works on, what went wrong. */
#include "cli_action.h"

#include <aquifer/aquifer.h>
#include <errno.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <string.h>

#include "base/error.h"

enum {
	ACTIONS_MAX = 16,
	OPTION_NAME_MAX = 32,
};

/* Whether the list "create, resize: ..." has the name. */
static bool list_has(const char *list, size_t len, const char *name)
{
	const size_t name_len = strlen(name);

	for (size_t at = 0; at < len; at += strcspn(list + at, ",:") + 2)
		if (strncmp(list + at, name, name_len) == 0 &&
		    (list[at + name_len] == ',' || list[at + name_len] == ':'))
			return true;
	return false;
}

/* An option whose help begins with names of actions belongs to those. False: it
 * stands behind another one; that was said. */
static bool is_of_action(const struct cli_command *self,
			 const struct cli_actions *actions,
			 const struct cli_action *a, const struct opt *o)
{
	const size_t len = strcspn(o->help, ":");
	bool is_list = false;

	for (const struct cli_action *i = actions->action; i->name; i++)
		is_list |= list_has(o->help, len, i->name);
	if (!is_list || !o->help[len] || list_has(o->help, len, a->name))
		return true;
	cli_error("%s %s does not take --%s, which is for: %.*s", self->name,
		  a->name, o->name, (int)len, o->help);
	return false;
}

/* The option of a word "--name" or "--name=value", and how many words it takes;
 * NULL: it is none. */
static const struct opt *find_option(const struct opt *table, const char *word,
				     int *words)
{
	const size_t len = strcspn(word, "=");
	char name[OPTION_NAME_MAX];
	const struct opt *o;

	if (strncmp(word, "--", 2) != 0 || len - 2 >= sizeof(name))
		return NULL;
	snprintf(name, sizeof(name), "%.*s", (int)len - 2, word + 2);
	o = opt_find(table, name);
	*words = o && o->value && !word[len] ? 2 : 1;
	return o;
}

static bool options_are_of_action(const struct cli_command *self,
				  const struct cli_actions *actions,
				  const struct cli_action *a, int argc,
				  char **argv)
{
	struct opt table[OPT_ROWS_MAX];
	int words = 1;

	cli_command_options(self, table);
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i += words) {
		const struct opt *o = find_option(table, argv[i], &words);

		if (!o)
			words = 1;
		else if (!is_of_action(self, actions, a, o))
			return false;
	}
	return true;
}

/* argv[0] is the action's name. CLI_GO, or the exit code. */
static int parse(const struct cli_command *self,
		 const struct cli_actions *actions, const struct cli_action *a,
		 int argc, char **argv, struct cli_action_args *args)
{
	struct cli_words rest;
	int code;

	if (!options_are_of_action(self, actions, a, argc, argv))
		return CLI_USAGE;
	code = cli_parse(self, argc, argv, OPT_WORDS_ANY, args, &rest);
	if (code != CLI_GO)
		return code;
	if (rest.count < a->least || rest.count > a->most) {
		cli_action_explain(self, a, &rest);
		return CLI_USAGE;
	}
	if (rest.count && !cli_action_name_is_valid(self, a, rest.word[0]))
		return CLI_USAGE;
	for (int i = 0; i < rest.count; i++)
		args->word[i] = rest.word[i];
	if (!a->size)
		return CLI_GO;
	if (cli_parse_size(a->size, rest.word[rest.count - 1], &args->size))
		return CLI_USAGE;
	if (args->size)
		return CLI_GO;
	cli_error("%s %s: %s is not 0", self->name, a->name, a->size);
	return CLI_USAGE;
}

static int run(const struct cli_actions *actions, const struct cli_action *a,
	       struct cli_action_args *args)
{
	int err = a->needs >= CLI_NEEDS_RACK ? aq_rack_open(NULL, &args->rack)
					     : 0;
	bool is_open;

	if (!err && args->rack && args->deadline_ms)
		err = aq_rack_set_deadline(args->rack, args->deadline_ms);
	if (!err && a->needs == CLI_NEEDS_OPEN && actions->open)
		err = actions->open(args);
	is_open = !err;
	if (is_open)
		err = a->run(args);
	if (err < 0)
		cli_error_last(err);
	/* It was said: main need not say it again at the end. */
	if (err == -EIO && ferror(stdout)) {
		__fpurge(stdout);
		clearerr(stdout);
	}
	if (actions->close)
		actions->close(args);
	aq_rack_close(args->rack);
	/* What cannot be opened is not there, or not what it should be: the
	 * words of the user were right. */
	return err >= 0 ? err : is_open ? cli_error_exit(err) : CLI_FAILED;
}

/* Options may stand before the action, too: puts its name in front. */
static void put_first(const struct cli_command *self, int argc, char **argv)
{
	struct opt table[OPT_ROWS_MAX];
	int i = 1, words = 0;
	char *name;

	cli_command_options(self, table);
	for (; i < argc && strncmp(argv[i], "--", 2) == 0; i += words)
		if (!find_option(table, argv[i], &words))
			return;
	if (i >= argc)
		return;
	name = argv[i];
	memmove(&argv[2], &argv[1], (size_t)(i - 1) * sizeof(*argv));
	argv[1] = name;
}

int cli_actions_run(const struct cli_command *self,
		    const struct cli_actions *actions, int argc, char **argv,
		    void *args)
{
	struct cli_entry names[ACTIONS_MAX + 1] = {{0}};
	const struct cli_entry *row;
	const struct cli_action *a;
	int code;

	for (unsigned i = 0; actions->action[i].name; i++) {
		ASSERT(i < ACTIONS_MAX);
		names[i] = (struct cli_entry){actions->action[i].name, NULL,
					      actions->action[i].summary};
	}
	put_first(self, argc, argv);
	row = cli_group_find(self, names, argc, argv, &code);
	if (!row)
		return code;
	a = &actions->action[row - names];
	code = parse(self, actions, a, argc - 1, argv + 1, args);
	return code == CLI_GO ? run(actions, a, args) : code;
}

int cli_action_key_result(int err)
{
	return err == -ENOENT ? error_set(err, "there is no such key; `scan` "
					       "lists those that there are")
			      : err;
}
