/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer queue`: elastic queues, for people. */
#include <aquifer/elastic.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli_action.h"
#include "cli_report.h"

struct queue_args {
	struct cli_action_args common; /* PATH, ITEM */
	struct aq_elastic_options options;
	uint64_t count;	  /* get */
	uint32_t wait_ms; /* for items, or for room */
	bool is_loaded;
	struct aq_queue *queue;
};

const struct opt cmd_queue_options[] = {
	OPT_U64(struct queue_args, options.copies, "copies", "N", 1, 8,
		"put: copies of what is made, on as many nodes "
		"(default: as its root says, or 1)"),
	OPT_SIZE(struct queue_args, options.block_bytes, "block", "SIZE",
		 64 << 10, 1 << 30,
		 "put: bytes of a block of a queue that is made (default 8M)"),
	OPT_U64(struct queue_args, options.bound, "bound", "N", 1, INT64_MAX,
		"put: a queue that is made has so many items at "
		"most (default: as many as fit)"),
	OPT_U64(struct queue_args, count, "count", "N", 1, UINT32_MAX,
		"get: so many items, one per line (default 1)"),
	OPT_U32(struct queue_args, wait_ms, "wait", "MILLISECONDS", 0, 3600000,
		"put, get: for room, or for an item (default 0)"),
	OPT_FLAG(struct queue_args, is_loaded, "load",
		 "from the rack's vault, if its lease was over"),
	CLI_OPT_TIMEOUT(struct queue_args),
	OPT_FLAG(struct queue_args, common.json, "json", "print JSON"),
	OPT_END,
};

static int open_queue(struct queue_args *a, uint32_t flags)
{
	a->options.flags = flags | (a->is_loaded ? AQ_ELASTIC_LOAD : 0);
	return aq_queue_open(a->common.rack, a->common.word[0], &a->options,
			     &a->queue);
}

static void close_queue(void *args)
{
	struct queue_args *a = args;

	aq_queue_close(a->queue);
	a->queue = NULL;
}

static int put_lines(const struct queue_args *a, uint64_t *count)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	int err = 0;

	while (!err && (n = getline(&line, &room, stdin)) >= 0) {
		if (n && line[n - 1] == '\n')
			n--;
		err = aq_queue_put(a->queue, line, (size_t)n, a->wait_ms);
		*count += !err;
	}
	free(line);
	return err;
}

static int queue_put(void *args)
{
	struct queue_args *a = args;
	const char *item = a->common.word[1];
	uint64_t count = 0;
	int err = open_queue(a, AQ_ELASTIC_CREATE);

	if (!err && (!item || strcmp(item, "-") == 0)) {
		err = put_lines(a, &count);
	} else if (!err) {
		err = aq_queue_put(a->queue, item, strlen(item), a->wait_ms);
		count = !err;
	}
	if (err || !a->common.json)
		return err;
	return cli_report_print(json_pack("{s:s, s:I}", "path",
					  a->common.word[0], "put",
					  (json_int_t)count),
				true);
}

static int print_item(const struct queue_args *a, const char *data, size_t len,
		      json_t *items)
{
	if (a->common.json) {
		json_t *text = json_stringn(data, len);

		if (!text)
			return error_set(-EILSEQ, "an item is not UTF-8; "
						  "without --json it is "
						  "printed as it is");
		(void)json_array_append_new(items, text);
		return 0;
	}
	if (fwrite(data, 1, len, stdout) != len || putchar('\n') == EOF)
		return error_set(-EIO, "the output cannot be written");
	return 0;
}

/* Acknowledged when it is printed: who dies before leaves it to others. */
static int get_one(const struct queue_args *a, char **buf, size_t *room,
		   json_t *items)
{
	struct aq_taken taken;
	size_t len = 0;
	int err =
		aq_queue_take(a->queue, *buf, *room, &len, &taken, a->wait_ms);

	if (err == -EMSGSIZE && len > *room) {
		char *more = realloc(*buf, len);

		if (!more)
			return -ENOMEM;
		*buf = more;
		*room = len;
		err = aq_queue_take(a->queue, *buf, *room, &len, &taken,
				    a->wait_ms);
	}
	if (!err)
		err = print_item(a, *buf, len, items);
	if (!err && fflush(stdout))
		err = error_set(-errno, "the output cannot be written: %s",
				strerror(errno));
	return err ? err : aq_queue_ack(a->queue, &taken);
}

static int queue_get(void *args)
{
	struct queue_args *a = args;
	size_t room = 64 << 10;
	char *buf = malloc(room);
	json_t *items = json_array();
	int err = buf ? open_queue(a, 0) : -ENOMEM;

	for (uint64_t i = 0; i < a->count && !err; i++)
		err = get_one(a, &buf, &room, items);
	free(buf);
	if (a->common.json && json_array_size(items)) {
		int told = cli_report_print(json_pack("{s:s, s:O}", "path",
						      a->common.word[0],
						      "items", items),
					    true);

		err = err ? err : told;
	}
	json_decref(items);
	return err;
}

static int queue_len(void *args)
{
	struct queue_args *a = args;
	uint64_t items = 0;
	int err = open_queue(a, 0);

	if (!err)
		err = aq_queue_length(a->queue, &items);
	if (err)
		return err;
	if (a->common.json)
		return cli_report_print(json_pack("{s:s, s:I}", "path",
						  a->common.word[0], "items",
						  (json_int_t)items),
					true);
	return printf("%llu\n", (unsigned long long)items) > 0 ? 0 : -EIO;
}

int cmd_queue(const struct cli_command *self, int argc, char **argv)
{
	static const struct cli_action table[] = {
		{"put", 1, 2, NULL, CLI_NEEDS_RACK, queue_put,
		 "add an item, or each line of the input; make the queue if "
		 "it is missing: PATH [ITEM|-]"},
		{"get", 1, 1, NULL, CLI_NEEDS_RACK, queue_get,
		 "take the oldest item and print it: PATH"},
		{"len", 1, 1, NULL, CLI_NEEDS_RACK, queue_len,
		 "how many items there are: PATH"},
		{0},
	};
	static const struct cli_actions actions = {.action = table,
						   .close = close_queue};
	struct queue_args args = {.count = 1};

	return cli_actions_run(self, &actions, argc, argv, &args);
}
