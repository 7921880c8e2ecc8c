/* SPDX-License-Identifier: Apache-2.0 */
/* Runs an action: its words, the rack, what it works on, what went wrong. */
#include "cli_action.h"

#include <aquifer/aquifer.h>
#include <errno.h>

enum {
	ACTIONS_MAX = 16,
};

/* argv[0] is the action's name. CLI_GO, or the exit code. */
static int parse(const struct cli_command *self, const struct cli_action *a,
		 int argc, char **argv, struct cli_action_args *args)
{
	struct cli_words rest;
	int code = cli_parse(self, argc, argv, OPT_WORDS_ANY, args, &rest);

	if (code != CLI_GO)
		return code;
	if (rest.count < a->least || rest.count > a->most) {
		cli_error("%s %s takes %s%d word%s; see 'aquifer help %s'",
			  self->name, a->name,
			  a->least < a->most ? "up to " : "", a->most,
			  a->most == 1 ? "" : "s", self->name);
		return CLI_USAGE;
	}
	for (int i = 0; i < rest.count; i++)
		args->word[i] = rest.word[i];
	return a->size && cli_parse_size(a->size, rest.word[rest.count - 1],
					 &args->size)
		       ? CLI_USAGE
		       : CLI_GO;
}

static int run(const struct cli_actions *actions, const struct cli_action *a,
	       struct cli_action_args *args)
{
	int err = a->needs >= CLI_NEEDS_RACK ? aq_rack_open(NULL, &args->rack)
					     : 0;

	if (!err && a->needs == CLI_NEEDS_OPEN)
		err = actions->open(args);
	if (!err)
		err = a->run(args);
	if (err < 0)
		cli_error("%s (%s)", aq_last_error(), aq_strerror(err));
	if (actions->close)
		actions->close(args);
	aq_rack_close(args->rack);
	return err < 0 ? CLI_FAILED : err;
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
	row = cli_group_find(self, names, argc, argv, &code);
	if (!row)
		return code;
	a = &actions->action[row - names];
	code = parse(self, a, argc - 1, argv + 1, args);
	return code == CLI_GO ? run(actions, a, args) : code;
}

int cli_action_key_result(int err)
{
	if (err != -ENOENT)
		return err;
	cli_error("there is no such key (%s)", aq_strerror(err));
	return CLI_FAILED;
}
